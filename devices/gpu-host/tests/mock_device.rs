//! GCM composed of passes, and tables read by the host, on the mock device.

use lockstep_core::backend::{Device, DeviceBuffer, DeviceMemory, KernelId};
use lockstep_core::data::{Data, DeviceSlice};
use lockstep_core::work::{
    AeadMessage, FusedAead, Operation, Pass, Segment, Status, Stream, Table, Tag, Task,
};
use lockstep_core::{Error, Key, KeySize, Result};
use lockstep_gpu_host::Messages;
use lockstep_gpu_host::compose::{self, PassRunner};
use lockstep_gpu_host::table::run_on_host;
use lockstep_reference::{Aes, ecb, gcm};
use lockstep_testkit::mock::{Behaviour, MockAsyncDevice};
use lockstep_testkit::suite::{noise, test_key};

struct Runner<'m>(&'m MockAsyncDevice);

impl PassRunner for Runner<'_> {
    fn run(&self, pass: Pass, segment: Segment<'_>) -> Result<()> {
        self.0.submit(KernelId(0), Task::Pass(pass, &mut [segment]).into())?.wait()
    }
    fn download(&self, from: &DeviceSlice, to: &mut [u8]) -> Result<()> {
        self.0.memory().unwrap().download(from, to, Stream::default())
    }
    fn zero(&self, slice: &DeviceSlice) -> Result<()> {
        self.0.memory().unwrap().upload(&vec![0; slice.len()], slice, Stream::default())
    }
}

fn upload(memory: &dyn DeviceMemory, bytes: &[u8]) -> Box<dyn DeviceBuffer> {
    let buffer = memory.allocate(bytes.len()).unwrap();
    memory.upload(bytes, &buffer.slice(), Stream::default()).unwrap();
    buffer
}

fn download(memory: &dyn DeviceMemory, buffer: &dyn DeviceBuffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.slice().len()];
    memory.download(&buffer.slice(), &mut bytes, Stream::default()).unwrap();
    bytes
}

/// Seals or opens one message. Returns the status, and whether the device has begun to write the output.
fn run(
    device: &MockAsyncDevice,
    key: &Key,
    aad: &[u8],
    data: Data<'_>,
    tag: Tag<'_>,
) -> (Result<Status>, bool) {
    let opens = matches!(tag, Tag::Expect(_));
    let mut message = AeadMessage { key, nonce: &[5; 12], aad, data, tag, status: Status::Pending };
    let mut begun = false;
    let outcome = compose::gcm(&Runner(device), opens, &mut message, &mut begun);
    (outcome.map(|()| message.status), begun)
}

#[test]
fn gcm_of_passes_equals_the_oracle() {
    let device = MockAsyncDevice::default();
    let memory = device.memory().unwrap();
    let key = test_key(1, KeySize::Aes192);
    for (aad, len) in [(0, 0), (5, 16), (33, 1001), (16, 64), (0, 7)] {
        let (aad, plain) = (noise(1, aad), noise(2, len));
        let (sealed, expected_tag) = gcm::seal(&Aes::new(key.bytes()), &[5; 12], &aad, &plain);
        for on_device in [false, true] {
            let (mut host, buffer) = (plain.clone(), upload(memory, &plain));
            let run = |host: &mut Vec<u8>, tag: Tag<'_>| {
                let there = || Data::on_device(buffer.slice(), buffer.slice()).unwrap();
                let data = if on_device { there() } else { Data::in_place(host) };
                let outcome = run(&device, &key, &aad, data, tag);
                if on_device {
                    *host = download(memory, &*buffer);
                }
                outcome
            };
            let mut tag = [0; 16];
            assert_eq!(run(&mut host, Tag::Write(&mut tag)), (Ok(Status::Done), true));
            assert!(host == sealed && tag == expected_tag, "{len} bytes");
            assert_eq!(run(&mut host, Tag::Expect(&tag[..12])), (Ok(Status::Done), true));
            assert!(host == plain, "{len} bytes");
            tag[3] ^= 1;
            assert_eq!(run(&mut host, Tag::Expect(&tag)), (Ok(Status::AuthenticationFailed), true));
            assert!(host == vec![0; len], "a forgery is zeroed");
        }
    }
}

/// No output is written before the tag has been checked.
#[test]
fn nothing_is_opened_before_its_tag_is_checked() {
    let key = test_key(1, KeySize::Aes128);
    let (sealed, tag) = gcm::seal(&Aes::new(key.bytes()), &[5; 12], b"x", &noise(2, 100));
    for fail_at in 0.. {
        let device = MockAsyncDevice::new(Behaviour { fail_at: Some(fail_at), ..Behaviour::default() });
        let mut data = sealed.clone();
        let (outcome, begun) = run(&device, &key, b"x", Data::in_place(&mut data), Tag::Expect(&tag));
        if outcome.is_ok() {
            assert!(fail_at > 4 && begun);
            break;
        }
        assert!(!begun && data == sealed, "pass {fail_at}");
    }
}

#[test]
fn a_table_is_done_by_the_host() {
    let device = MockAsyncDevice::default();
    let memory = device.memory().unwrap();
    let (size, key) = (KeySize::Aes128, test_key(1, KeySize::Aes128));
    let aes = Aes::new(key.bytes());
    let words = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
    let data = noise(1, 96);
    // The second message lies outside of the data, and the third does not consist of whole blocks.
    let (offsets, lengths) = (words(&[0, 80, 32, 64]), words(&[32, 32, 24, 16]));
    for operation in [Operation::Pass(Pass::EcbEncrypt), Operation::Fused(FusedAead::GcmSeal)] {
        let arrays = [key.bytes(), &[7; 64], &offsets, &lengths, &data].map(|bytes| upload(memory, bytes));
        let [keys, states, offsets, lengths, from] = &arrays;
        let [to, status, tags] = [&[9; 96][..], &[9; 4], &[0; 64]].map(|bytes| upload(memory, bytes));
        let table = Table {
            messages: 4,
            key_size: size,
            keys: keys.slice(),
            states: states.slice(),
            offsets: offsets.slice(),
            lengths: lengths.slice(),
            longest: 1000,
            from: from.slice(),
            to: to.slice(),
            tags: Some(tags.slice()),
            status: status.slice(),
        };
        let run = |messages: Messages<'_, '_>| {
            device.submit(KernelId(0), messages.into_task(operation).into())?.wait()
        };
        run_on_host(memory, operation, &table, Stream::default(), run).unwrap();
        let mut expected = vec![9; 96];
        match operation {
            Operation::Pass(_) => {
                for range in [0..32, 64..80] {
                    expected[range.clone()].copy_from_slice(&ecb::encrypt(&aes, &data[range]));
                }
                assert_eq!(download(memory, &*status), [1, 0, 0, 1]);
            }
            Operation::Fused(_) => {
                let mut expected_tags = vec![0; 64];
                for (index, range) in [(0, 0..32), (2, 32..56), (3, 64..80)] {
                    let (sealed, tag) = gcm::seal(&aes, &[7; 12], &[], &data[range.clone()]);
                    expected[range].copy_from_slice(&sealed);
                    expected_tags[16 * index..][..16].copy_from_slice(&tag);
                }
                assert_eq!(download(memory, &*status), [1, 0, 1, 1]);
                assert_eq!(download(memory, &*tags), expected_tags);
            }
        }
        assert_eq!(download(memory, &*to), expected);
        // Work that fails leaves no statuses of an earlier call.
        let failed = |_: Messages<'_, '_>| Err(Error::NotSealed);
        assert_eq!(run_on_host(memory, operation, &table, Stream::default(), failed), Err(Error::NotSealed));
        assert_eq!(download(memory, &*status), [0; 4]);
        let short = Table { messages: 5, ..table };
        let refused =
            run_on_host(memory, operation, &short, Stream::default(), |_| panic!("it was not refused"));
        assert!(matches!(refused, Err(Error::OutputLength { .. })), "{refused:?}");
    }
}
