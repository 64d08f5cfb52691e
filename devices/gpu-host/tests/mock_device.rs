//! Tests of `run_on_host`, which processes a table of messages on the host, with the memory of the mock device.

use lockstep_core::backend::{Device, DeviceBuffer, DeviceMemory, KernelId};
use lockstep_core::work::{FusedAead, Operation, Pass, Stream, Table};
use lockstep_core::{Error, KeySize};
use lockstep_gpu_host::Messages;
use lockstep_gpu_host::table::run_on_host;
use lockstep_reference::{Aes, ecb, gcm};
use lockstep_testkit::mock::MockAsyncDevice;
use lockstep_testkit::suite::{noise, test_key};

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
        let run = |messages: Messages<'_, '_>| device.submit(KernelId(0), messages.into())?.wait();
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
        // If work fails, all statuses are pending, also those that an earlier call has set.
        let failed = |_: Messages<'_, '_>| Err(Error::NotSealed);
        assert_eq!(run_on_host(memory, operation, &table, Stream::default(), failed), Err(Error::NotSealed));
        assert_eq!(download(memory, &*status), [0; 4]);
        let short = Table { messages: 5, ..table };
        let refused =
            run_on_host(memory, operation, &short, Stream::default(), |_| panic!("it was not refused"));
        assert!(matches!(refused, Err(Error::OutputLength { .. })), "{refused:?}");
    }
}
