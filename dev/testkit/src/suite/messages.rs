//! Checks the modes without authentication, for single messages and batches.

use lockstep_reference as reference;

use super::{Subject, noise, test_block};
use lockstep_core::data::Data;
use lockstep_core::error::Error;
use lockstep_core::key::{Block, KeySize};
use lockstep_core::work::Pass;
use lockstep_modes::{Cipher, CipherKey, Direction, Message, xts};

/// Key sizes of the cipher that the subject supports.
pub(super) fn sizes(subject: &Subject, cipher: Cipher, direction: Direction) -> Vec<KeySize> {
    let mut sizes = KeySize::ALL.to_vec();
    sizes.retain(|&size| {
        subject.does(cipher.pass(direction), size) && !(cipher == Cipher::Xts && size == KeySize::Aes192)
    });
    sizes
}

pub(super) fn cipher_key(cipher: Cipher, seed: u64, size: KeySize) -> CipherKey {
    let keys = if cipher == Cipher::Xts { 2 } else { 1 };
    CipherKey::new(cipher, &noise(seed ^ 0x6369_7068, keys * size.bytes())).unwrap()
}

/// Processes a whole message with the oracle.
pub(super) fn expected(
    cipher: Cipher,
    direction: Direction,
    key: &CipherKey,
    iv: &Block,
    data: &[u8],
) -> Vec<u8> {
    let aes = &reference::Aes::new(key.data().bytes());
    let encrypt = direction == Direction::Encrypt;
    match cipher {
        Cipher::Ecb if encrypt => reference::ecb::encrypt(aes, data),
        Cipher::Ecb => reference::ecb::decrypt(aes, data),
        Cipher::Cbc if encrypt => reference::cbc::encrypt(aes, iv, data),
        Cipher::Cbc => reference::cbc::decrypt(aes, iv, data),
        Cipher::Pcbc if encrypt => reference::pcbc::encrypt(aes, iv, data),
        Cipher::Pcbc => reference::pcbc::decrypt(aes, iv, data),
        Cipher::Cfb128 if encrypt => reference::cfb::encrypt128(aes, iv, data),
        Cipher::Cfb128 => reference::cfb::decrypt128(aes, iv, data),
        Cipher::Cfb8 if encrypt => reference::cfb::encrypt8(aes, iv, data),
        Cipher::Cfb8 => reference::cfb::decrypt8(aes, iv, data),
        Cipher::Cfb1 if encrypt => reference::cfb::encrypt1(aes, iv, data, 8 * data.len()),
        Cipher::Cfb1 => reference::cfb::decrypt1(aes, iv, data, 8 * data.len()),
        Cipher::Ofb => reference::ofb::apply(aes, iv, data),
        Cipher::Ctr => reference::ctr::apply(aes, iv, data),
        Cipher::Xts => {
            let tweak = reference::Aes::new(key.tweak().unwrap().bytes());
            if encrypt {
                reference::xts::encrypt(aes, &tweak, iv, data)
            } else {
                reference::xts::decrypt(aes, &tweak, iv, data)
            }
        }
    }
}

/// Lengths that the cipher accepts: all short lengths, and some long ones.
pub(super) fn lengths(cipher: Cipher) -> Vec<usize> {
    let mut lengths: Vec<usize> = match cipher {
        Cipher::Ecb | Cipher::Cbc | Cipher::Pcbc => (0..=20).map(|blocks| 16 * blocks).collect(),
        Cipher::Xts => (16..=100).collect(),
        _ => (0..=100).collect(),
    };
    if !matches!(cipher, Cipher::Cfb8 | Cipher::Cfb1) {
        lengths.extend([1024, 4096, 5008]);
    }
    lengths
}

/// Runs each cipher, key size, direction and length in place. On slow devices, each length is tested with some of the key sizes only.
pub fn every_cipher_every_length(subject: &Subject) {
    for cipher in Cipher::ALL {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let sizes = sizes(subject, cipher, direction);
            for (index, &size) in sizes.iter().enumerate() {
                for (case, len) in lengths(cipher).into_iter().enumerate() {
                    if !subject.tests(case, index, &sizes) {
                        continue;
                    }
                    let key = cipher_key(cipher, len as u64, size);
                    let mut iv = test_block(len as u64);
                    let mut data = noise(len as u64, len);
                    let output = expected(cipher, direction, &key, &iv, &data);
                    let planner = &*subject.planner;
                    cipher.one(planner, direction, &key, &mut iv, Data::in_place(&mut data)).unwrap();
                    assert!(data == output, "{cipher:?} {direction:?} {size:?}, {len} bytes");
                }
            }
        }
    }
}

/// Encrypts and decrypts out of place by XTS with ciphertext stealing. The output must be right, and the input must not change.
pub fn xts_steals(subject: &Subject) {
    for direction in [Direction::Encrypt, Direction::Decrypt] {
        let sizes = sizes(subject, Cipher::Xts, direction);
        for (index, &size) in sizes.iter().enumerate() {
            for len in (16..=80).filter(|&len| subject.tests(len, index, &sizes)) {
                let key = cipher_key(Cipher::Xts, len as u64, size);
                let mut iv = test_block(1);
                let input = noise(len as u64, len);
                let before = input.clone();
                let mut output = vec![0; len];
                let data = Data::copy(&input, &mut output).unwrap();
                Cipher::Xts.one(&*subject.planner, direction, &key, &mut iv, data).unwrap();
                assert_eq!(input, before);
                assert_eq!(iv, test_block(1), "the tweak stays");
                assert!(output == expected(Cipher::Xts, direction, &key, &iv, &input), "{len} bytes");
            }
        }
    }
}

/// Encrypts and decrypts messages of all lengths, with keys of different sizes, in one call for each cipher and direction.
pub fn batches_of_mixed_sizes(subject: &Subject) {
    for cipher in Cipher::ALL {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let sizes = sizes(subject, cipher, direction);
            if sizes.is_empty() {
                continue;
            }
            let lengths = lengths(cipher);
            let keys: Vec<_> =
                (0..lengths.len()).map(|i| cipher_key(cipher, i as u64, sizes[i % sizes.len()])).collect();
            let mut ivs: Vec<_> = (0..lengths.len()).map(|i| test_block(i as u64)).collect();
            let mut data: Vec<_> = lengths.iter().map(|&len| noise(len as u64, len)).collect();
            let outputs: Vec<_> = (0..lengths.len())
                .map(|i| expected(cipher, direction, &keys[i], &ivs[i], &data[i]))
                .collect();
            let mut messages: Vec<_> = keys
                .iter()
                .zip(&mut ivs)
                .zip(&mut data)
                .map(|((key, iv), data)| Message { key, iv, data: Data::in_place(data) })
                .collect();
            cipher.run(&*subject.planner, direction, &mut messages).unwrap();
            for (i, (data, output)) in data.iter().zip(&outputs).enumerate() {
                assert!(data == output, "{cipher:?} {direction:?}, message {i} of {} bytes", output.len());
            }
        }
    }
}

/// Lengths and keys that a mode does not accept cause errors, and the data do not change.
pub fn wrong_shapes_are_refused(subject: &Subject) {
    let planner = &*subject.planner;
    let mut iv = [0; 16];
    for cipher in [Cipher::Ecb, Cipher::Cbc, Cipher::Pcbc] {
        let key = CipherKey::new(cipher, &[1; 16]).unwrap();
        for len in [1, 15, 17, 31] {
            let mut data = vec![5; len];
            let error = cipher
                .one(planner, Direction::Encrypt, &key, &mut iv, Data::in_place(&mut data))
                .unwrap_err();
            assert_eq!(error, Error::NotWholeBlocks { mode: cipher.name(), extra: len % 16 });
            assert_eq!(data, vec![5; len]);
        }
    }
    let xts_key = CipherKey::new(Cipher::Xts, &noise(1, 32)).unwrap();
    for len in [0, 1, 15] {
        let error = Cipher::Xts
            .one(planner, Direction::Encrypt, &xts_key, &mut iv, Data::in_place(&mut vec![0; len]))
            .unwrap_err();
        assert_eq!(error, Error::DataLength { mode: "XTS", expected: "at least 16 bytes", got: len });
    }
    let too_long = xts::MAX_DATA_UNIT as usize + 16;
    let error = Cipher::Xts
        .one(planner, Direction::Encrypt, &xts_key, &mut iv, Data::in_place(&mut vec![0; too_long]))
        .unwrap_err();
    assert!(matches!(error, Error::TooLong { mode: "XTS", limit: xts::MAX_DATA_UNIT, .. }), "{error}");
    assert_eq!(CipherKey::new(Cipher::Xts, &[7; 32]).unwrap_err(), Error::XtsHalvesEqual);
    for len in [0, 16, 24, 48, 63, 65] {
        assert!(matches!(CipherKey::new(Cipher::Xts, &vec![0; len]), Err(Error::ModeKey { .. })));
    }
    let single = CipherKey::new(Cipher::Cbc, &[1; 16]).unwrap();
    assert!(matches!(
        Cipher::Xts.one(planner, Direction::Encrypt, &single, &mut iv, Data::in_place(&mut [0; 16])),
        Err(Error::ModeKey { mode: "XTS", .. })
    ));
    assert!(matches!(
        Cipher::Cbc.one(planner, Direction::Encrypt, &xts_key, &mut iv, Data::in_place(&mut [0; 16])),
        Err(Error::ModeKey { .. })
    ));
    assert!(Data::copy(&[0; 3], &mut [0; 4]).is_err());
    if !subject.does(Pass::EcbEncrypt, KeySize::Aes128) {
        let key = CipherKey::new(Cipher::Ecb, &[1; 16]).unwrap();
        let error = Cipher::Ecb
            .one(planner, Direction::Encrypt, &key, &mut iv, Data::in_place(&mut [0; 16]))
            .unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }
}
