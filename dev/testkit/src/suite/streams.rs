//! Checks that modes that are used incrementally, as streams, give the result of one call of the oracle.

use std::sync::Arc;

use lockstep_reference as reference;

use super::messages::{cipher_key, expected, lengths, sizes};
use super::{Subject, noise, test_block, test_key};
use lockstep_core::error::Error;
use lockstep_core::key::{Key, KeySize};
use lockstep_core::work::Pass;
use lockstep_modes::stream::{CipherStream, CmacStream, MessageLengths, Opener, Padding, Pieces, Sealer};
use lockstep_modes::{Aead, AeadKey, Cipher, Direction, Executor};

fn aead_key(mode: Aead, key: &Key) -> AeadKey {
    AeadKey::new(mode, key.bytes()).unwrap()
}

/// Ways to split a message into at most 300 pieces: single bytes, whole blocks, pieces of odd sizes that cross block boundaries, empty
/// pieces, and one piece.
fn splits(subject: &Subject, len: usize) -> Vec<Vec<usize>> {
    let by = |sizes: &[usize]| {
        let mut left = len;
        let mut split = Vec::new();
        for &size in sizes.iter().cycle() {
            if left == 0 {
                break;
            }
            split.push(size.min(left));
            left -= size.min(left);
        }
        split
    };
    let mut splits = vec![
        by(&[1]),
        by(&[16]),
        by(&[7, 0, 9, 33]),
        by(&[15, 17]),
        by(&[64, 1]),
        by(&[usize::MAX]),
        by(&[31, 5, 100]),
    ];
    splits.retain(|split| split.len() <= 300);
    if !subject.slow {
        return splits;
    }
    // Each piece is a launch, and the code that handles pieces does not depend on the device. So slow devices are tested, for each length,
    // with a third of the splits, and for the next length with another third.
    let first = len % splits.len().min(3);
    splits.into_iter().skip(first).step_by(3).collect()
}

fn ready(subject: &Subject, cipher: Cipher, size: KeySize) -> bool {
    // Incremental CFB128 encrypts its chaining state by an ECB pass.
    cipher != Cipher::Cfb128 || subject.does(Pass::EcbEncrypt, size)
}

fn run(stream: &mut CipherStream, data: &[u8], split: &[usize]) -> lockstep_core::Result<Vec<u8>> {
    let mut output = Vec::new();
    let mut rest = data;
    for &size in split {
        let (piece, later) = rest.split_at(size);
        rest = later;
        let mut place = vec![0; stream.output_len(size)];
        let len = stream.update(piece, &mut place)?;
        output.extend(&place[..len]);
    }
    let mut place = [0; 32];
    let len = stream.finish(&mut place)?;
    output.extend(&place[..len]);
    Ok(output)
}

/// Any split of a message gives the same result as one call.
pub fn any_split_gives_the_same(subject: &Subject) {
    // The code that handles pieces does not depend on the key size, so slow devices are tested with one size.
    let most = if subject.slow { 1 } else { KeySize::ALL.len() };
    for cipher in Cipher::ALL {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            for size in sizes(subject, cipher, direction).into_iter().take(most) {
                if !ready(subject, cipher, size) {
                    continue;
                }
                for len in lengths(cipher) {
                    // Each piece is a launch, so slow devices are tested with fewer lengths.
                    if subject.slow && len > 40 && len % 13 != 0 {
                        continue;
                    }
                    let key = cipher_key(cipher, len as u64, size);
                    let iv = test_block(len as u64);
                    let data = noise(len as u64, len);
                    let output = expected(cipher, direction, &key, &iv, &data);
                    let planner: Arc<dyn Executor> = subject.planner.clone();
                    let mut stream =
                        CipherStream::new(planner, cipher, direction, Padding::None, key, &iv).unwrap();
                    for split in splits(subject, len) {
                        stream.reset(&iv);
                        let streamed = run(&mut stream, &data, &split).unwrap();
                        assert!(streamed == output, "{cipher:?} {direction:?}, {len} bytes as {split:?}");
                    }
                    if cipher.is_stream() {
                        stream.reset(&iv);
                        let mut in_place = data.clone();
                        let (head, tail) = in_place.split_at_mut(len / 3);
                        stream.update_in_place(head).unwrap();
                        stream.update_in_place(tail).unwrap();
                        assert!(in_place == output, "{cipher:?} in place, {len} bytes");
                    }
                }
            }
        }
    }
}

/// Checks PKCS#7 padding and its removal in any split, and the rejection of invalid padding.
pub fn padding_by_pieces(subject: &Subject) {
    for cipher in [Cipher::Ecb, Cipher::Cbc, Cipher::Pcbc] {
        let size = KeySize::Aes128;
        if sizes(subject, cipher, Direction::Encrypt).is_empty()
            || sizes(subject, cipher, Direction::Decrypt).is_empty()
        {
            continue;
        }
        let key = cipher_key(cipher, 5, size);
        let iv = test_block(5);
        let stream = |direction| {
            let planner: Arc<dyn Executor> = subject.planner.clone();
            CipherStream::new(planner, cipher, direction, Padding::Pkcs7, key.clone(), &iv).unwrap()
        };
        // Padding does not depend on the device: slow devices are tested with the lengths around whole blocks.
        let is_tested = |len: &usize| !subject.slow || matches!(len % 16, 0 | 1 | 15);
        for len in (0..70).filter(is_tested) {
            let data = noise(1, len);
            let padded = reference::padding::pkcs7_pad(&data);
            let ciphertext = expected(cipher, Direction::Encrypt, &key, &iv, &padded);
            for split in splits(subject, len) {
                assert_eq!(run(&mut stream(Direction::Encrypt), &data, &split).unwrap(), ciphertext);
            }
            for split in splits(subject, ciphertext.len()) {
                assert_eq!(run(&mut stream(Direction::Decrypt), &ciphertext, &split).unwrap(), data);
            }
            // Whole blocks that do not end in valid padding.
            let mut last = padded;
            *last.last_mut().unwrap() = 17;
            let ciphertext = expected(cipher, Direction::Encrypt, &key, &iv, &last);
            let error = run(&mut stream(Direction::Decrypt), &ciphertext, &[ciphertext.len()]).unwrap_err();
            assert_eq!(error, Error::Padding);
        }
        let error = run(&mut stream(Direction::Decrypt), &[0; 17], &[17]).unwrap_err();
        assert!(matches!(error, Error::NotWholeBlocks { extra: 1, .. }));
        let error = run(&mut stream(Direction::Decrypt), &[], &[]).unwrap_err();
        assert!(matches!(error, Error::NotWholeBlocks { .. }), "an empty ciphertext has no padding");
    }
}

/// Seeks to any byte in CTR, and to any block in XTS.
pub fn seek_goes_anywhere(subject: &Subject) {
    for cipher in [Cipher::Ctr, Cipher::Xts] {
        let sizes = sizes(subject, cipher, Direction::Encrypt);
        for (index, &size) in sizes.iter().enumerate() {
            let key = cipher_key(cipher, 6, size);
            let mut iv = test_block(6);
            iv[8..].fill(0xff);
            let data = noise(6, 200);
            let output = expected(cipher, Direction::Encrypt, &key, &iv, &data);
            let planner: Arc<dyn Executor> = subject.planner.clone();
            let mut stream =
                CipherStream::new(planner, cipher, Direction::Encrypt, Padding::None, key, &iv).unwrap();
            let step = if cipher == Cipher::Xts { 16 } else { 1 };
            for position in (0..184).step_by(step).rev() {
                if !subject.tests(position / step, index, &sizes) {
                    continue;
                }
                stream.seek(&iv, position as u64).unwrap();
                let rest = &data[position..];
                assert_eq!(
                    run(&mut stream, rest, &[rest.len()]).unwrap(),
                    output[position..],
                    "from {position}"
                );
            }
            if cipher == Cipher::Xts {
                assert!(matches!(stream.seek(&iv, 8), Err(Error::Order { .. })));
            }
        }
    }
}

/// Checks GCM and CCM of a message in any split into pieces, and the rejection of wrong tags and lengths.
pub fn aead_by_pieces(subject: &Subject) {
    for size in KeySize::ALL {
        if subject.does_all(&[Pass::Ctr32, Pass::Ghash], size) {
            for len in [0, 1, 16, 33, 100, 16 * 1024 + 5] {
                for nonce_len in [12, 8] {
                    gcm_split(subject, size, len, nonce_len);
                }
            }
        }
        if subject.does_all(&[Pass::Ctr, Pass::CbcMac], size) {
            for len in [0, 1, 16, 33, 100] {
                ccm_split(subject, size, len);
            }
        }
    }
}

fn gcm_split(subject: &Subject, size: KeySize, len: usize, nonce_len: usize) {
    let key = test_key(1, size);
    let nonce = noise(2, nonce_len);
    let (aad, data) = (noise(3, 37), noise(4, len));
    let aes = reference::Aes::new(key.bytes());
    let (ciphertext, tag) = reference::gcm::seal(&aes, &nonce, &aad, &data);
    let (executor, key): (Arc<dyn Executor>, _) = (subject.planner.clone(), aead_key(Aead::Gcm, &key));
    for split in splits(subject, len) {
        let mut sealer = Sealer::new(executor.clone(), &key, &nonce, None).unwrap();
        assert!(update_by_pieces(&mut sealer, &aad, &data, &split) == ciphertext, "{split:?}");
        let mut made = [0; 16];
        sealer.finish(&mut made).unwrap();
        assert_eq!(made, tag, "{split:?}");
        let mut opener = Opener::new(executor.clone(), &key, &nonce, None).unwrap();
        assert!(update_by_pieces(&mut opener, &aad, &ciphertext, &split) == data, "{split:?}");
        opener.finish(&tag).unwrap();
    }
    let mut opener = Opener::new(executor, &key, &nonce, None).unwrap();
    opener.aad(&aad).unwrap();
    opener.update(&ciphertext, &mut vec![0; len]).unwrap();
    let mut wrong = tag;
    wrong[15] ^= 1;
    assert_eq!(opener.finish(&wrong), Err(Error::AuthenticationFailed));
}

/// Adds associated data in two pieces and data in pieces of these lengths; returns the output.
fn update_by_pieces<const SEALS: bool>(
    stream: &mut Pieces<SEALS>,
    aad: &[u8],
    data: &[u8],
    split: &[usize],
) -> Vec<u8> {
    stream.aad(&aad[..5]).unwrap();
    stream.aad(&aad[5..]).unwrap();
    let mut bytes = data.to_vec();
    let mut rest = &mut bytes[..];
    for &size in split {
        let (piece, later) = rest.split_at_mut(size);
        stream.update_in_place(piece).unwrap();
        rest = later;
    }
    bytes
}

fn ccm_split(subject: &Subject, size: KeySize, len: usize) {
    let key = test_key(1, size);
    let nonce = noise(2, 11);
    let (aad, data) = (noise(3, 37), noise(4, len));
    let aes = reference::Aes::new(key.bytes());
    let (ciphertext, tag) = reference::ccm::seal(&aes, &nonce, &aad, &data, 8);
    let (executor, key): (Arc<dyn Executor>, _) = (subject.planner.clone(), aead_key(Aead::Ccm, &key));
    let lengths = Some(MessageLengths { aad: 37, data: len as u64, tag: 8 });
    for split in splits(subject, len) {
        let mut sealer = Sealer::new(executor.clone(), &key, &nonce, lengths).unwrap();
        assert_eq!(update_by_pieces(&mut sealer, &aad, &data, &split), ciphertext);
        let mut made = [0; 8];
        sealer.finish(&mut made).unwrap();
        assert_eq!(made[..], tag);
    }
    let mut opener = Opener::new(executor.clone(), &key, &nonce, lengths).unwrap();
    assert_eq!(update_by_pieces(&mut opener, &aad, &ciphertext, &[len]), data);
    opener.finish(&tag).unwrap();
    let mut short = Opener::new(executor, &key, &nonce, lengths).unwrap();
    short.aad(&aad[1..]).unwrap();
    assert!(matches!(short.update(&[], &mut []), Err(Error::Order { .. })));
}

/// Checks CMAC of a message in any split into pieces.
pub fn cmac_by_pieces(subject: &Subject) {
    for size in KeySize::ALL {
        if !subject.does(Pass::CbcMac, size) {
            continue;
        }
        let key = test_key(2, size);
        let aes = reference::Aes::new(key.bytes());
        for len in [0, 1, 15, 16, 17, 32, 48, 100] {
            let data = noise(2, len);
            for split in splits(subject, len) {
                let mut stream = CmacStream::new(subject.planner.clone() as Arc<dyn Executor>, key.clone());
                let mut rest = &data[..];
                for &size in &split {
                    let (piece, later) = rest.split_at(size);
                    stream.update(piece).unwrap();
                    rest = later;
                }
                assert_eq!(
                    stream.finish().unwrap(),
                    reference::cmac::cmac(&aes, &data),
                    "{len} as {split:?}"
                );
            }
        }
    }
}

/// Calls in an invalid order, or with buffers of the wrong length, are errors.
pub fn order_is_kept(subject: &Subject) {
    let planner = || -> Arc<dyn Executor> { subject.planner.clone() };
    if !sizes(subject, Cipher::Cbc, Direction::Encrypt).is_empty() {
        let key = cipher_key(Cipher::Cbc, 1, KeySize::Aes128);
        let encrypt = Direction::Encrypt;
        let mut stream =
            CipherStream::new(planner(), Cipher::Cbc, encrypt, Padding::None, key, &[0; 16]).unwrap();
        assert_eq!(stream.update(&[0; 32], &mut [0; 31]), Err(Error::OutputLength { needed: 32, got: 31 }));
        assert_eq!(stream.update(&[0; 32], &mut [0; 32]), Ok(32), "a refused call changes nothing");
        assert!(matches!(stream.update_in_place(&mut [0; 16]), Err(Error::Order { .. })));
        assert!(matches!(stream.seek(&[0; 16], 0), Err(Error::Order { .. })));
        let padded = cipher_key(Cipher::Cbc, 1, KeySize::Aes128);
        let mut short =
            CipherStream::new(planner(), Cipher::Cbc, encrypt, Padding::Pkcs7, padded.clone(), &[0; 16])
                .unwrap();
        short.update(b"abc", &mut []).unwrap();
        assert_eq!(short.finish(&mut [0; 15]), Err(Error::OutputLength { needed: 16, got: 15 }));
        let mut output = [0; 16];
        assert_eq!(short.finish(&mut output), Ok(16), "with more room it goes on");
        let whole = reference::padding::pkcs7_pad(b"abc");
        assert_eq!(output[..], expected(Cipher::Cbc, encrypt, &padded, &[0; 16], &whole));
        stream.update(&[1], &mut []).unwrap();
        assert!(matches!(stream.finish(&mut [0; 32]), Err(Error::NotWholeBlocks { extra: 1, .. })));
        assert!(matches!(stream.update(&[0], &mut [0; 16]), Err(Error::Order { .. })));
    }
    if subject.does_all(&[Pass::Ctr32, Pass::Ghash], KeySize::Aes128) {
        let key = aead_key(Aead::Gcm, &test_key(1, KeySize::Aes128));
        let executor = planner();
        let mut stream = Sealer::new(executor.clone(), &key, &[0; 12], None).unwrap();
        stream.update(&[], &mut []).unwrap();
        assert!(matches!(stream.aad(b"late"), Err(Error::Order { .. })));
        let stream = Sealer::new(executor, &key, &[0; 12], None).unwrap();
        assert!(matches!(stream.finish(&mut [0; 5]), Err(Error::TagLength { .. })));
    }
}
