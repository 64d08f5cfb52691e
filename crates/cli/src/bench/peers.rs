//! The peers that run in this process: AWS-LC (by `aws-lc-rs`) and RustCrypto.

use aes::cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, KeyInit, KeyIvInit,
    StreamCipher,
};
use aes_gcm::aead::AeadInOut;
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    AES_128, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use lockstep::hazmat::mode::{Cipher, Direction};

use super::work::{Contender, IV, Run, What, Work};

const AWS_LC: &str = "aws-lc";
const RUSTCRYPTO: &str = "rustcrypto";

/// The peers that have this work.
pub(super) fn contenders(work: Work, key: &[u8], size: usize) -> Vec<Contender> {
    let aws_lc = match work.what {
        What::One(Cipher::Ctr, _) => Some(aws_lc_ctr(key)),
        What::One(Cipher::Ecb, Direction::Encrypt) => Some(aws_lc_ecb(key)),
        What::One(Cipher::Cbc, Direction::Decrypt) => Some(aws_lc_cbc_decrypt(key)),
        What::Gcm(Direction::Encrypt) => Some(aws_lc_gcm(key)),
        What::GcmBatch => Some(aws_lc_gcm_batch(key, size)),
        _ => None,
    };
    let rustcrypto = if key.len() == 16 {
        rustcrypto::<aes::Aes128>(work.what, key)
    } else {
        rustcrypto::<aes::Aes256>(work.what, key)
    };
    let comparable = work.what != What::GcmBatch;
    let named = [(AWS_LC, aws_lc), (RUSTCRYPTO, rustcrypto)];
    named.into_iter().filter_map(|(name, run)| Some(Contender { name, run: run?, comparable })).collect()
}

fn cipher_key(key: &[u8]) -> UnboundCipherKey {
    UnboundCipherKey::new(if key.len() == 16 { &AES_128 } else { &AES_256 }, key).expect("a length of AES")
}

fn aws_lc_ctr(key: &[u8]) -> Run {
    let key = EncryptingKey::ctr(cipher_key(key)).expect("a key");
    Box::new(move |data| {
        let iv = EncryptionContext::Iv128(FixedLength::from(IV));
        key.less_safe_encrypt(data, iv).expect("bench");
    })
}

fn aws_lc_ecb(key: &[u8]) -> Run {
    let key = EncryptingKey::ecb(cipher_key(key)).expect("a key");
    Box::new(move |data| {
        key.less_safe_encrypt(data, EncryptionContext::None).expect("bench");
    })
}

fn aws_lc_cbc_decrypt(key: &[u8]) -> Run {
    let key = DecryptingKey::cbc(cipher_key(key)).expect("a key");
    Box::new(move |data| {
        key.decrypt(data, DecryptionContext::Iv128(FixedLength::from(IV))).expect("bench");
    })
}

fn gcm_key(key: &[u8]) -> LessSafeKey {
    let algorithm = if key.len() == 16 { &AES_128_GCM } else { &AES_256_GCM };
    LessSafeKey::new(UnboundKey::new(algorithm, key).expect("a length of AES"))
}

fn seal(key: &LessSafeKey, data: &mut [u8]) {
    let nonce = Nonce::try_assume_unique_for_key(&IV[..12]).expect("12 bytes");
    let tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), data).expect("bench");
    std::hint::black_box(tag.as_ref());
}

fn aws_lc_gcm(key: &[u8]) -> Run {
    let key = gcm_key(key);
    Box::new(move |data| seal(&key, data))
}

fn aws_lc_gcm_batch(key: &[u8], size: usize) -> Run {
    let mut key = key.to_vec();
    Box::new(move |data| {
        for (i, message) in data.chunks_exact_mut(size).enumerate() {
            key[..8].copy_from_slice(&i.to_le_bytes());
            seal(&gcm_key(&key), message);
        }
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
    let iv = Blocks16::from(IV);
    let cipher = C::new_from_slice(key).ok()?;
    Some(match what {
        What::One(Cipher::Ctr, _) => Box::new(move |data| {
            use aes::cipher::InnerIvInit;
            let core = ctr::CtrCore::<C, ctr::flavors::Ctr128BE>::inner_iv_init(cipher.clone(), &iv);
            aes::cipher::StreamCipherCoreWrapper::from_core(core).apply_keystream(data);
        }),
        What::One(Cipher::Ecb, Direction::Encrypt) => {
            Box::new(move |data| cipher.encrypt_blocks(Blocks16::slice_as_chunks_mut(data).0))
        }
        What::One(Cipher::Ecb, Direction::Decrypt) => {
            Box::new(move |data| cipher.decrypt_blocks(Blocks16::slice_as_chunks_mut(data).0))
        }
        What::One(Cipher::Cbc, Direction::Decrypt) => {
            let key = key.to_vec();
            Box::new(move |data| {
                let mut mode = cbc::Decryptor::<C>::new_from_slices(&key, &IV).expect("lengths of AES");
                mode.decrypt_blocks(Blocks16::slice_as_chunks_mut(data).0);
            })
        }
        What::One(Cipher::Cbc, Direction::Encrypt) => {
            let key = key.to_vec();
            Box::new(move |data| {
                let mut mode = cbc::Encryptor::<C>::new_from_slices(&key, &IV).expect("lengths of AES");
                mode.encrypt_blocks(Blocks16::slice_as_chunks_mut(data).0);
            })
        }
        What::Gcm(Direction::Encrypt) => {
            let gcm = aes_gcm::AesGcm::<C, aes::cipher::consts::U12>::from(cipher);
            let nonce = Array::try_from(&IV[..12]).expect("12 bytes");
            Box::new(move |data| {
                gcm.encrypt_inout_detached(&nonce, &[], data.into()).expect("bench");
            })
        }
        _ => return None,
    })
}
