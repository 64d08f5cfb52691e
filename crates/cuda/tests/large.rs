//! Work that is larger than the shared suite's: several tiles, levels and chunks of the default kernel, through the device,
//! against the oracle.
#![cfg(feature = "emulator")]

use std::sync::Arc;

use lockstep_core::backend::Device;
use lockstep_core::data::Data;
use lockstep_core::mode::{Cipher, CipherKey, Direction, Message, gcm};
use lockstep_core::planner::{Planner, Selection};
use lockstep_core::work::{AeadMessage, Status, Tag};
use lockstep_core::{Key, Result};
use lockstep_reference::{Aes, cbc, cfb, gcm as oracle};

fn planner(kernel: &str) -> Planner {
    let device: Arc<dyn Device> = Arc::new(lockstep_cuda::emulator());
    let selection = Selection { device: None, kernel: Some(kernel.into()) };
    Planner::new(vec![device], &selection).unwrap()
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| ((i + seed) * 31 % 251 + i / 4096) as u8).collect()
}

/// Two wide tiles and more, in place and not: the block before a tile is set aside before the tile before overwrites it.
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
                assert!(iv == data[len - 16..], "{kernel} {cipher:?}: register");
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
        gcm::open(planner, &mut messages)?
    } else {
        gcm::seal(planner, &mut messages)?
    };
    Ok(messages.iter().map(|message| message.status).collect())
}

/// GHASH in two levels for long messages, by a thread each for many short ones.
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
        let statuses = run(&planner, &key, true, &mut data, &mut tags).unwrap();
        assert!(data == plain && statuses.iter().all(|status| *status == Status::Done));
    }
}
