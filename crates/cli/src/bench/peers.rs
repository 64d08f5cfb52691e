//! The peers that run in this process: AWS-LC (by `aws-lc-rs`) and RustCrypto.

use aes::cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, KeyInit, KeyIvInit,
    StreamCipher,
};
use aes_gcm::aead::AeadInOut;
use aws_lc_rs::aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use lockstep::hazmat::mode::{Cipher, Direction};

use super::work::{Inputs, Run, Shape, What, Work, folded, iv, nonce};

/// Their names and versions.
pub(crate) const VERSIONS: [(&str, &str); 2] = [("aws-lc", "aws-lc-rs 1.19"), ("rustcrypto", "aes 0.9")];

/// The peers that have this work.
pub(crate) fn contenders(work: &Work, inputs: &Inputs, shape: Shape) -> Vec<(&'static str, Run)> {
    let [aws_lc_name, rustcrypto_name] = VERSIONS.map(|(name, _)| name);
    let keys = inputs.keys();
    if shape.messages > 1 {
        // Of batches only AWS-LC's GCM in a loop: the others have no keys of a call.
        let seals = work.what == What::Gcm(Direction::Encrypt);
        return if seals {
            vec![(aws_lc_name, aws_lc_gcm_batch(&keys, work.key, shape.size))]
        } else {
            vec![]
        };
    }
    let aws_lc = match work.what {
        What::Cipher(Cipher::Ctr, _) => Some(aws_lc_ctr(&keys)),
        What::Cipher(Cipher::Ecb, Direction::Encrypt) => Some(aws_lc_ecb(&keys)),
        What::Cipher(Cipher::Cbc, Direction::Decrypt) => Some(aws_lc_cbc_decrypt(&keys)),
        What::Gcm(Direction::Encrypt) => Some(aws_lc_gcm(&keys)),
        _ => None,
    };
    let rustcrypto = match work.key {
        16 => rustcrypto::<aes::Aes128>(work.what, &keys),
        24 => rustcrypto::<aes::Aes192>(work.what, &keys),
        _ => rustcrypto::<aes::Aes256>(work.what, &keys),
    };
    let named = [(aws_lc_name, aws_lc), (rustcrypto_name, rustcrypto)];
    named.into_iter().filter_map(|(name, run)| Some((name, run?))).collect()
}

fn cipher_key(key: &[u8]) -> UnboundCipherKey {
    let algorithm = match key.len() {
        16 => &AES_128,
        24 => &AES_192,
        _ => &AES_256,
    };
    UnboundCipherKey::new(algorithm, key).expect("a length of AES")
}

fn aws_lc_ctr(key: &[u8]) -> Run {
    let key = EncryptingKey::ctr(cipher_key(key)).expect("a key");
    Box::new(move |data, call| {
        let iv = EncryptionContext::Iv128(FixedLength::from(iv(call)));
        key.less_safe_encrypt(data, iv).expect("bench");
        Ok(0)
    })
}

fn aws_lc_ecb(key: &[u8]) -> Run {
    let key = EncryptingKey::ecb(cipher_key(key)).expect("a key");
    Box::new(move |data, _| {
        key.less_safe_encrypt(data, EncryptionContext::None).expect("bench");
        Ok(0)
    })
}

fn aws_lc_cbc_decrypt(key: &[u8]) -> Run {
    let key = DecryptingKey::cbc(cipher_key(key)).expect("a key");
    Box::new(move |data, call| {
        key.decrypt(data, DecryptionContext::Iv128(FixedLength::from(iv(call)))).expect("bench");
        Ok(0)
    })
}

fn gcm_key(key: &[u8]) -> LessSafeKey {
    let algorithm = match key.len() {
        16 => &AES_128_GCM,
        24 => &AES_192_GCM,
        _ => &AES_256_GCM,
    };
    LessSafeKey::new(UnboundKey::new(algorithm, key).expect("a length of AES"))
}

fn seal(key: &LessSafeKey, call: u64, data: &mut [u8]) -> u128 {
    let nonce = Nonce::assume_unique_for_key(nonce(call));
    let tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), data).expect("bench");
    u128::from_le_bytes(tag.as_ref().try_into().expect("16 bytes"))
}

fn aws_lc_gcm(key: &[u8]) -> Run {
    let key = gcm_key(key);
    Box::new(move |data, call| Ok(seal(&key, call, data)))
}

fn aws_lc_gcm_batch(keys: &[u8], each: usize, size: usize) -> Run {
    let keys = keys.to_vec();
    Box::new(move |data, call| {
        let messages = keys.chunks(each).zip(data.chunks_exact_mut(size));
        Ok(folded(messages.map(|(key, message)| seal(&gcm_key(key), call, message))))
    })
}

type Blocks16 = Array<u8, aes::cipher::consts::U16>;

fn rustcrypto<C>(what: What, key: &[u8]) -> Option<Run>
where
    C: KeyInit
        + BlockCipherEncrypt
        + BlockCipherDecrypt
        + aes::cipher::BlockSizeUser<BlockSize = aes::cipher::consts::U16>
        + Clone
        + 'static,
{
    // For XTS there are two keys, and none of this.
    let cipher = C::new_from_slice(key).ok()?;
    let key = key.to_vec();
    Some(match what {
        What::Cipher(Cipher::Ctr, _) => Box::new(move |data, call| {
            use aes::cipher::InnerIvInit;
            let iv = Blocks16::from(iv(call));
            let core = ctr::CtrCore::<C, ctr::flavors::Ctr128BE>::inner_iv_init(cipher.clone(), &iv);
            aes::cipher::StreamCipherCoreWrapper::from_core(core).apply_keystream(data);
            Ok(0)
        }),
        What::Cipher(Cipher::Ecb, Direction::Encrypt) => Box::new(move |data, _| {
            cipher.encrypt_blocks(Blocks16::slice_as_chunks_mut(data).0);
            Ok(0)
        }),
        What::Cipher(Cipher::Ecb, Direction::Decrypt) => Box::new(move |data, _| {
            cipher.decrypt_blocks(Blocks16::slice_as_chunks_mut(data).0);
            Ok(0)
        }),
        What::Cipher(Cipher::Cbc, Direction::Decrypt) => Box::new(move |data, call| {
            let mut mode = cbc::Decryptor::<C>::new_from_slices(&key, &iv(call)).expect("lengths of AES");
            mode.decrypt_blocks(Blocks16::slice_as_chunks_mut(data).0);
            Ok(0)
        }),
        What::Cipher(Cipher::Cbc, Direction::Encrypt) => Box::new(move |data, call| {
            let mut mode = cbc::Encryptor::<C>::new_from_slices(&key, &iv(call)).expect("lengths of AES");
            mode.encrypt_blocks(Blocks16::slice_as_chunks_mut(data).0);
            Ok(0)
        }),
        What::Gcm(Direction::Encrypt) => {
            let gcm = aes_gcm::AesGcm::<C, aes::cipher::consts::U12>::from(cipher);
            Box::new(move |data, call| {
                let nonce = Array::from(nonce(call));
                let tag = gcm.encrypt_inout_detached(&nonce, &[], data.into()).expect("bench");
                Ok(u128::from_le_bytes(tag.as_slice().try_into().expect("16 bytes")))
            })
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use lockstep::Engine;

    use super::*;
    use crate::bench::work;

    #[test]
    fn peers_compute_what_we_do() {
        let engine = Engine::builder().device("cpu").threads(1).build().unwrap();
        let mut compared = 0;
        for work in work::all() {
            for shape in [Shape::one(96), Shape { size: 48, messages: 3 }] {
                let inputs = work.inputs(shape, &engine).unwrap();
                let start = work::random(shape.bytes());
                let mut expected = start.clone();
                let mut ours = work.ours(&engine, &inputs, shape).unwrap();
                let tags = [1, 2].map(|call| ours(&mut expected, call).unwrap());
                for (name, mut run) in contenders(&work, &inputs, shape) {
                    let mut got = start.clone();
                    assert_eq!([1, 2].map(|call| run(&mut got, call).unwrap()), tags, "{name} {}", work.name);
                    assert!(got == expected, "{name} {}", work.name);
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 33);
    }

    /// What is told of versions is what is built in.
    #[test]
    fn versions_are_those_of_the_lock_file() {
        let lock = include_str!("../../../../Cargo.lock");
        for (_, version) in VERSIONS {
            let (name, number) = version.split_once(' ').unwrap();
            assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{number}.")), "{version}");
        }
    }
}
