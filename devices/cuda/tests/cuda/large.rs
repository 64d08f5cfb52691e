//! Tests of work that is larger than the work of the shared suite: several tiles, levels and chunks, processed by the device and compared
//! with the oracle.
#![cfg(feature = "emulator")]

use std::sync::Arc;

use lockstep_core::backend::{Device, DeviceBuffer, KernelId};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Status, Stream, Table, Tag};
use lockstep_core::{Error, Key, KeySize, Result};
use lockstep_modes::{Aead, Cipher, CipherKey, Direction, Message};
use lockstep_planner::group::Group;
use lockstep_planner::{Planner, Selection};
use lockstep_reference::{Aes, cbc, cfb, gcm as oracle};

fn planner(kernel: &str) -> Planner {
    let device: Arc<dyn Device> = Arc::new(lockstep_cuda::emulator());
    let selection = Selection { device: None, kernel: Some(kernel.into()) };
    Planner::new(vec![device], &selection).unwrap()
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| ((i + seed) * 31 % 251 + i / 4096) as u8).collect()
}

/// Decryption in CBC and CFB mode over several tiles and chunks is right, in place and out of place. In place, the block before a tile must
/// be saved before the work on the previous tile overwrites it.
#[test]
fn chained_decryption_over_tiles_and_chunks() {
    let key = bytes(16, 3);
    let (aes, cipher_key) = (Aes::new(&key), CipherKey::from(Key::new(&key).unwrap()));
    for (kernel, len) in
        [("cuda/bitslice", 2 * 16384 + 48), ("cuda/table", (4 << 20) + 16), ("cuda/table", 40_000)]
    {
        let planner = planner(kernel);
        let data = bytes(len, 1);
        for (cipher, expected) in [
            (Cipher::Cbc, cbc::decrypt(&aes, &[7; 16], &data)),
            (Cipher::Cfb128, cfb::decrypt128(&aes, &[7; 16], &data)),
        ] {
            for in_place in [true, false] {
                let (mut iv, mut out) = ([7; 16], data.clone());
                let io =
                    if in_place { Data::in_place(&mut out) } else { Data::copy(&data, &mut out).unwrap() };
                let message = Message { key: &cipher_key, iv: &mut iv, data: io };
                cipher.run(&planner, Direction::Decrypt, &mut [message]).unwrap();
                assert!(out == expected, "{kernel} {cipher:?}, {len} bytes, in place: {in_place}");
                assert!(iv == data[len - 16..], "{kernel} {cipher:?}: state");
            }
        }
    }
}

fn run(
    planner: &Planner,
    key: &Key,
    opens: bool,
    data: &mut [Vec<u8>],
    tags: &mut [[u8; 16]],
) -> Result<Vec<Status>> {
    let mut messages: Vec<AeadMessage<'_>> = data
        .iter_mut()
        .zip(tags)
        .map(|(data, tag)| AeadMessage {
            key,
            nonce: &[5; 12],
            aad: b"some more data that are longer than a block",
            data: Data::in_place(data),
            tag: if opens { Tag::Expect(tag) } else { Tag::Write(tag) },
            status: Status::Pending,
        })
        .collect();
    if opens {
        Aead::Gcm.run_messages(planner, Direction::Decrypt, &mut messages)?
    } else {
        Aead::Gcm.run_messages(planner, Direction::Encrypt, &mut messages)?
    };
    Ok(messages.iter().map(|message| message.status).collect())
}

/// GCM gives the oracle's results for long messages (GHASH in two levels) and for many short messages (one thread hashes a message).
#[test]
fn gcm_of_long_messages_and_of_many() {
    let planner = planner("cuda/bitslice");
    let key_bytes = bytes(32, 9);
    let (aes, key) = (Aes::new(&key_bytes), Key::new(&key_bytes).unwrap());
    for lengths in [vec![513 * 16 + 5, 0, 20_000], (0..300).map(|i| i * 3).collect()] {
        let plain: Vec<Vec<u8>> = lengths.iter().map(|&len| bytes(len, len)).collect();
        let (mut data, mut tags) = (plain.clone(), vec![[0; 16]; plain.len()]);
        run(&planner, &key, false, &mut data, &mut tags).unwrap();
        for ((plain, data), tag) in plain.iter().zip(&data).zip(&tags) {
            let aad = b"some more data that are longer than a block";
            assert!(
                (data.clone(), *tag) == oracle::seal(&aes, &[5; 12], aad, plain),
                "{} bytes",
                plain.len()
            );
        }
        let sealed = data.clone();
        let statuses = run(&planner, &key, true, &mut data, &mut tags).unwrap();
        assert!(data == plain && statuses.iter().all(|status| *status == Status::Done));
        // The forged message is zeroed, and the other messages are correct.
        data = sealed;
        tags[2][15] ^= 0x80;
        assert_eq!(run(&planner, &key, true, &mut data, &mut tags), Err(Error::AuthenticationFailed));
        for (index, (data, plain)) in data.iter().zip(&plain).enumerate() {
            let expected = if index == 2 { &vec![0; plain.len()] } else { plain };
            assert!(data == expected, "message {index}");
        }
    }
}

/// GCM over a table of messages, with several tiles and two levels of GHASH. All messages share a key, or each message has a separate key.
/// One message is forged, and the length of another message exceeds the data.
#[test]
fn gcm_of_long_messages_of_a_table() {
    let device = lockstep_cuda::emulator();
    let memory = device.memory().unwrap();
    let upload = |bytes: &[u8]| {
        let buffer = memory.allocate(bytes.len()).unwrap();
        memory.upload(bytes, &buffer.slice(), Stream::default()).unwrap();
        buffer
    };
    let download = |buffer: &dyn DeviceBuffer| {
        let mut bytes = vec![0; buffer.slice().len()];
        memory.download(&buffer.slice(), &mut bytes, Stream::default()).unwrap();
        bytes
    };
    let integers = |values: &[usize]| -> Vec<u8> {
        values.iter().flat_map(|&value| (value as u64).to_le_bytes()).collect()
    };
    let lengths = [20_011, 0, 33_000, 5, 1 << 40];
    let places = [3, 20_014, 20_014, 53_014, 0];
    let (forged, outside) = (2, 4);
    let ivs = bytes(16 * lengths.len(), 5);
    for shared in [true, false] {
        let keys = bytes(16 * if shared { 1 } else { lengths.len() }, 6);
        let plain = bytes(53_019, 7);
        let (mut sealed, mut opened) = (plain.clone(), plain.clone());
        let mut tags = vec![0; 16 * lengths.len()];
        for index in 0..outside {
            let key = if shared { &keys[..] } else { &keys[16 * index..][..16] };
            let range = places[index]..places[index] + lengths[index];
            let (data, tag) =
                oracle::seal(&Aes::new(key), &ivs[16 * index..][..12], &[], &plain[range.clone()]);
            tags[16 * index..][..16].copy_from_slice(&tag);
            sealed[range.clone()].copy_from_slice(&data);
            if index == forged {
                opened[range].fill(0);
            }
        }
        for (fused, input, output) in
            [(FusedAead::GcmSeal, &plain, &sealed), (FusedAead::GcmOpen, &sealed, &opened)]
        {
            let opens = fused == FusedAead::GcmOpen;
            let mut given = if opens { tags.clone() } else { vec![0; tags.len()] };
            if opens {
                given[16 * forged + 7] ^= 1;
            }
            let arrays =
                [&keys, &ivs, &integers(&places), &integers(&lengths), input, &given].map(|a| upload(a));
            let [keys, states, offsets, lens, data, given] = &arrays;
            let status = upload(&[9; 5]);
            let table = Table {
                messages: lengths.len(),
                key_size: KeySize::Aes128,
                keys: keys.slice(),
                states: states.slice(),
                offsets: offsets.slice(),
                lengths: lens.slice(),
                longest: 33_000,
                from: data.slice(),
                to: data.slice(),
                tags: Some(given.slice()),
                status: status.slice(),
            };
            let operation = Operation::Fused(fused);
            let submitted = device.submit_table(KernelId(0), Stream::default(), operation, &table);
            submitted.unwrap().wait().unwrap();
            assert!(download(&**data) == *output, "{fused:?}, one key: {shared}");
            let refused = if opens { Status::AuthenticationFailed } else { Status::Done };
            let done = Status::Done;
            let expected = [done, done, refused, done, Status::Pending].map(|status| status as u8);
            assert_eq!(download(&*status), expected, "{fused:?}, one key: {shared}");
            if !opens {
                assert_eq!(download(&**given), tags, "one key: {shared}");
            }
        }
    }
}

/// Two GPUs together process one message, which is divided, and the chunks of a file.
#[test]
fn two_devices_work_together() {
    let gpus = [0, 1].map(|_| Arc::new(lockstep_cuda::emulator()));
    let members = gpus.iter().map(|gpu| Arc::clone(gpu) as Arc<dyn Device>).collect();
    let group: Arc<dyn Device> = Arc::new(Group::new("cuda", "0,1", members));
    let selection = Selection { device: Some("cuda:0,1".into()), kernel: None };
    let planner = Planner::new(vec![group], &selection).unwrap();
    let key_bytes = bytes(16, 3);
    let (aes, key) = (Aes::new(&key_bytes), Key::new(&key_bytes).unwrap());
    let plain = bytes((2 << 20) + 77, 1);
    let (mut data, mut iv) = (plain.clone(), [7; 16]);
    let cipher_key = CipherKey::from(Key::new(&key_bytes).unwrap());
    let message = Message { key: &cipher_key, iv: &mut iv, data: Data::in_place(&mut data) };
    Cipher::Ctr.run(&planner, Direction::Encrypt, &mut [message]).unwrap();
    assert!(data == lockstep_reference::ctr::apply(&aes, &[7; 16], &plain));

    let plain: Vec<Vec<u8>> = plain.chunks(16_384).map(<[u8]>::to_vec).collect();
    let (mut data, mut tags) = (plain.clone(), vec![[0; 16]; plain.len()]);
    run(&planner, &key, false, &mut data, &mut tags).unwrap();
    let aad = b"some more data that are longer than a block";
    for ((plain, data), tag) in plain.iter().zip(&data).zip(&tags) {
        assert!((data.clone(), *tag) == oracle::seal(&aes, &[5; 12], aad, plain));
    }
    run(&planner, &key, true, &mut data, &mut tags).unwrap();
    assert!(data == plain);
    for gpu in gpus {
        let bytes = |name: &str| {
            gpu.counters()
                .iter()
                .filter(|counter| counter.name.ends_with(name))
                .map(|counter| counter.bytes)
                .sum()
        };
        let (ctr, gcm): (u64, u64) = (bytes("_ctr"), bytes("_ctr32"));
        assert!(ctr >= 1_000_000 && gcm >= 2_000_000, "{ctr} bytes of CTR and {gcm} of GCM");
    }
}
