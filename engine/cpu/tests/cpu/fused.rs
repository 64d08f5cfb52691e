//! Fused GCM, GCM-SIV and OCB3 tasks: batches of messages of all lengths agree with the reference implementation, on every kernel.

use lockstep_core::backend::{Device, kernel_by_name};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Status, Tag, Task};
use lockstep_core::{Error, Key, KeySize};
use lockstep_cpu::{Cpu, CpuOptions};
use lockstep_reference::{Aes, gcm, gcm_siv, ocb};
use lockstep_testkit::suite::{noise, test_key};

/// Each AEAD, with its operation for sealing and its operation for opening.
const AEADS: [(FusedAead, FusedAead); 3] = [
    (FusedAead::GcmSeal, FusedAead::GcmOpen),
    (FusedAead::GcmSivSeal, FusedAead::GcmSivOpen),
    (FusedAead::OcbSeal, FusedAead::OcbOpen),
];

/// The ciphertext and the tag of a message by the reference implementation.
fn sealed(fused: FusedAead, key: &[u8], nonce: &[u8], aad: &[u8], plain: &[u8]) -> (Vec<u8>, [u8; 16]) {
    match fused {
        FusedAead::GcmSeal => gcm::seal(&Aes::new(key), nonce, aad, plain),
        FusedAead::GcmSivSeal => gcm_siv::seal(key, nonce.try_into().unwrap(), aad, plain),
        FusedAead::OcbSeal => {
            let (output, tag) = ocb::seal(&Aes::new(key), nonce, aad, plain, 16);
            (output, tag.try_into().unwrap())
        }
        _ => unreachable!("sealing only"),
    }
}

/// A batch of messages, and their ciphertexts and tags by the reference implementation.
struct Batch {
    seal: FusedAead,
    open: FusedAead,
    keys: Vec<Key>,
    /// The index of each message's key.
    key_of: Vec<usize>,
    nonces: Vec<Vec<u8>>,
    aads: Vec<Vec<u8>>,
    plain: Vec<Vec<u8>>,
    sealed: Vec<(Vec<u8>, [u8; 16])>,
}

impl Batch {
    /// One message for each length; message `i` uses key `key_of(i)`.
    fn new(
        (seal, open): (FusedAead, FusedAead),
        lengths: &[usize],
        size: KeySize,
        key_of: impl Fn(usize) -> usize,
    ) -> Batch {
        let key_of: Vec<usize> = (0..lengths.len()).map(key_of).collect();
        let count = key_of.iter().max().map_or(0, |last| last + 1);
        let keys: Vec<_> = (0..count as u64).map(|i| test_key(i, size)).collect();
        let seed = |i: usize| i as u64;
        let nonces: Vec<_> = (0..lengths.len()).map(|i| noise(seed(i), 12)).collect();
        let aads: Vec<_> =
            (0..lengths.len()).map(|i| noise(seed(i), [0, 13, 0, 16, 5, 300][i % 6])).collect();
        let plain: Vec<_> = lengths.iter().enumerate().map(|(i, len)| noise(seed(i + 1), *len)).collect();
        let sealed = (0..lengths.len())
            .map(|i| sealed(seal, keys[key_of[i]].bytes(), &nonces[i], &aads[i], &plain[i]))
            .collect();
        Batch { seal, open, keys, key_of, nonces, aads, plain, sealed }
    }

    fn run<'d>(
        &'d self,
        (cpu, kernel): (&Cpu, &str),
        fused: FusedAead,
        data: impl Iterator<Item = (Data<'d>, Tag<'d>)>,
    ) -> Vec<Status> {
        let mut messages: Vec<_> = data
            .enumerate()
            .map(|(i, (data, tag))| AeadMessage {
                key: &self.keys[self.key_of[i]],
                nonce: &self.nonces[i],
                aad: &self.aads[i],
                data,
                tag,
                status: Status::Pending,
            })
            .collect();
        let kernel = kernel_by_name(cpu, kernel).unwrap();
        cpu.submit(kernel, Task::Fused(fused, &mut messages).into()).unwrap().wait().unwrap();
        messages.iter().map(|message| message.status).collect()
    }

    /// Seals in place, and opens in place and out of place; every third message is forged in the last byte of its tag.
    fn check(&self, cpu: &Cpu, kernel: &str) {
        let id = kernel_by_name(cpu, kernel).unwrap();
        if cpu.cost(id, Operation::Fused(self.seal), self.keys[0].size()).is_none() {
            return;
        }
        let mut data = self.plain.clone();
        let mut tags = vec![[0; 16]; data.len()];
        let work = data.iter_mut().zip(&mut tags).map(|(data, tag)| (Data::in_place(data), Tag::Write(tag)));
        let statuses = self.run((cpu, kernel), self.seal, work);
        for (i, (ciphertext, tag)) in self.sealed.iter().enumerate() {
            assert_eq!(statuses[i], Status::Done, "{kernel}: message {i}");
            assert!(data[i] == *ciphertext, "{kernel}: message {i} of {} bytes", data[i].len());
            assert_eq!(tags[i], *tag, "{kernel}: message {i} of {} bytes", data[i].len());
        }
        tags.iter_mut().step_by(3).for_each(|tag| tag[15] ^= 1);
        let mut apart: Vec<_> = data.iter().map(|data| vec![0xaa; data.len()]).collect();
        let work = data.iter().zip(&mut apart).zip(&tags);
        let work = work.map(|((from, to), tag)| (Data::copy(from, to).unwrap(), Tag::Expect(tag)));
        let statuses = self.run((cpu, kernel), self.open, work);
        let work = data.iter_mut().zip(&tags).map(|(data, tag)| (Data::in_place(data), Tag::Expect(tag)));
        assert_eq!(self.run((cpu, kernel), self.open, work), statuses, "{kernel}");
        for (i, plain) in self.plain.iter().enumerate() {
            let (status, expected) = if i % 3 == 0 {
                (Status::AuthenticationFailed, vec![0; plain.len()])
            } else {
                (Status::Done, plain.clone())
            };
            assert_eq!(statuses[i], status, "{kernel}: message {i}");
            assert!(apart[i] == expected, "{kernel}: message {i} of {} bytes", plain.len());
            assert!(data[i] == expected, "{kernel}: message {i} of {} bytes, in place", plain.len());
        }
    }
}

/// Calls `test` with each available kernel.
fn each_kernel(test: impl Fn(&Cpu, &str)) {
    let cpu = Cpu::new(&CpuOptions { threads: Some(1) });
    for kernel in cpu.kernels().iter().filter(|kernel| kernel.missing.is_none()) {
        test(&cpu, kernel.name);
    }
}

/// Lengths around the lengths of blocks, and around the steps of all kernels.
fn lengths() -> Vec<usize> {
    let steps =
        [96, 128, 192, 512, 1024].into_iter().flat_map(|step| [step - 1, step, step + 1, 2 * step + 17]);
    (0..=34).chain(steps).chain([0, 4096, 20_011, 700, 3000, 3000, 600, 90]).collect()
}

#[test]
fn a_key_each() {
    for aead in AEADS {
        for size in KeySize::ALL {
            let batch = Batch::new(aead, &lengths(), size, |i| i);
            each_kernel(|cpu, kernel| batch.check(cpu, kernel));
        }
    }
}

#[test]
fn keys_of_one_and_of_several_messages() {
    // Each group of five messages has three keys: its first message has one key, the next three messages share
    // another key, and the last message has a third key.
    let key_of = |i: usize| i / 5 * 3 + [0, 1, 1, 1, 2][i % 5];
    for aead in AEADS {
        let batch = Batch::new(aead, &lengths(), KeySize::Aes256, key_of);
        each_kernel(|cpu, kernel| batch.check(cpu, kernel));
    }
}

#[test]
fn single_messages() {
    for aead in AEADS {
        for len in [0, 1, 16, 17, 112, 113, 600, 40_000] {
            for size in KeySize::ALL {
                let batch = Batch::new(aead, &[len], size, |_| 0);
                each_kernel(|cpu, kernel| batch.check(cpu, kernel));
            }
        }
    }
}

#[test]
fn nonces_and_tags_of_other_lengths_are_refused() {
    let key = test_key(1, KeySize::Aes128);
    each_kernel(|cpu, name| {
        let kernel = kernel_by_name(cpu, name).unwrap();
        for (fused, nonce, tag, what) in [
            (FusedAead::GcmSeal, 8, 16, "nonce"),
            (FusedAead::GcmSeal, 12, 17, "tag"),
            (FusedAead::GcmSeal, 12, 0, "tag"),
            (FusedAead::GcmSivSeal, 8, 16, "nonce"),
            (FusedAead::GcmSivSeal, 12, 12, "tag"),
            (FusedAead::OcbSeal, 16, 16, "nonce"),
            (FusedAead::OcbSeal, 12, 17, "tag"),
        ] {
            if cpu.cost(kernel, Operation::Fused(fused), KeySize::Aes128).is_none() {
                continue;
            }
            let (mut data, mut tag) = ([0; 5], vec![0; tag]);
            let mut messages = [AeadMessage {
                key: &key,
                nonce: &vec![1; nonce],
                aad: &[],
                data: Data::in_place(&mut data),
                tag: Tag::Write(&mut tag),
                status: Status::Pending,
            }];
            let refused = cpu.submit(kernel, Task::Fused(fused, &mut messages).into()).map(drop);
            match what {
                "nonce" => assert!(matches!(refused, Err(Error::IvLength { got, .. }) if got == nonce)),
                _ => assert!(matches!(refused, Err(Error::TagLength { .. })), "{name}: {fused:?}"),
            }
            assert_eq!(data, [0; 5]);
        }
    });
}
