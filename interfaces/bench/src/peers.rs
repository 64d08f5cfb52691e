//! The peers, which are other implementations of AES. AWS-LC (through the crate `aws-lc-rs`) and RustCrypto run in this process. OpenSSL
//! is measured by `openssl speed`, which runs in a process of its own, in turn with the other contenders.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use aes::cipher::consts::{U12, U16};
use aes::cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, BlockSizeUser,
    InnerIvInit, KeyInit, StreamCipher,
};
use aes_gcm::aead::AeadInOut;
use aes_gcm::aead::inout::InOutBuf;
use aws_lc_rs::aead::{
    AES_128_GCM, AES_128_GCM_SIV, AES_192_GCM, AES_256_GCM, AES_256_GCM_SIV, Aad, LessSafeKey, Nonce,
    UnboundKey,
};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use lockstep::aead::Aead;
use lockstep::hazmat::mode::{Cipher, Direction};

use crate::workload::{Inputs, Mode, NONCE, Run, Shape, Workload, checking_each_write, digest_of, iv, nonce};

/// Another implementation of AES that runs in this process.
#[derive(Debug)]
pub struct Peer {
    /// The name in reports.
    pub name: &'static str,
    /// Crate and version.
    pub version: &'static str,
    /// Prepares the calls of a workload; returns `None` if the peer does not support it.
    run: fn(&Workload, &Inputs, Shape) -> Option<Run>,
}

/// The other implementations of AES that run in this process.
pub const PEERS: [Peer; 2] = [
    Peer { name: "aws-lc", version: "aws-lc-rs 1.19", run: aws_lc },
    Peer { name: "rustcrypto", version: "aes 0.9", run: rustcrypto_of_size },
];

/// The peers that support this workload.
pub fn contenders(work: &Workload, inputs: &Inputs, shape: Shape) -> Vec<(&'static str, Run)> {
    PEERS.iter().filter_map(|peer| Some((peer.name, (peer.run)(work, inputs, shape)?))).collect()
}

fn aws_lc(work: &Workload, inputs: &Inputs, shape: Shape) -> Option<Run> {
    match (work.mode, work.direction) {
        // GCM encryption by AWS-LC is the only batch of a peer that is measured. It is a loop over the messages and includes
        // the expansion of each key. All other calls to peers use keys that were expanded before.
        (Mode::Aead(Aead::Gcm), Direction::Encrypt) if shape.messages > 1 => {
            Some(aws_lc_gcm_batch(inputs, work.key_len, shape.size))
        }
        _ if shape.messages > 1 => None,
        (Mode::Cipher(cipher), Direction::Encrypt) => aws_lc_encrypt(cipher, &inputs.keys),
        (Mode::Cipher(cipher), Direction::Decrypt) => aws_lc_decrypt(cipher, &inputs.keys),
        (Mode::Aead(aead), direction) => {
            let key = aead_key(aead, &inputs.keys)?;
            Some(match direction {
                Direction::Encrypt => Box::new(move |data, call| Ok(seal(&key, call, data))),
                Direction::Decrypt => aws_lc_open(key, inputs, shape),
            })
        }
    }
}

fn cipher_key(key: &[u8]) -> UnboundCipherKey {
    let algorithm = match key.len() {
        16 => &AES_128,
        24 => &AES_192,
        _ => &AES_256,
    };
    UnboundCipherKey::new(algorithm, key).expect("a length of AES")
}

/// Encryption by AWS-LC in the modes that `aws-lc-rs` has without padding. `None` for PCBC, which AWS-LC lacks, and for XTS, which the
/// crate lacks.
fn aws_lc_encrypt(cipher: Cipher, key: &[u8]) -> Option<Run> {
    let make = match cipher {
        Cipher::Ecb => EncryptingKey::ecb,
        Cipher::Ctr => EncryptingKey::ctr,
        Cipher::Cbc => EncryptingKey::cbc,
        Cipher::Cfb128 => EncryptingKey::cfb128,
        Cipher::Ofb => EncryptingKey::ofb,
        _ => return None,
    };
    let key = make(cipher_key(key)).expect("a key");
    Some(Box::new(move |data, call| {
        let iv = EncryptionContext::Iv128(FixedLength::from(iv(call)));
        let context = if cipher == Cipher::Ecb { EncryptionContext::None } else { iv };
        key.less_safe_encrypt(data, context).expect("bench");
        Ok(0)
    }))
}

fn aws_lc_decrypt(cipher: Cipher, key: &[u8]) -> Option<Run> {
    let make = match cipher {
        Cipher::Ecb => DecryptingKey::ecb,
        Cipher::Cbc => DecryptingKey::cbc,
        Cipher::Cfb128 => DecryptingKey::cfb128,
        _ => return None,
    };
    let key = make(cipher_key(key)).expect("a key");
    Some(Box::new(move |data, call| {
        let iv = DecryptionContext::Iv128(FixedLength::from(iv(call)));
        let context = if cipher == Cipher::Ecb { DecryptionContext::None } else { iv };
        key.decrypt(data, context).expect("bench");
        Ok(0)
    }))
}

/// The key of an AEAD. `None` if AWS-LC lacks the AEAD: it has no OCB3, and no GCM-SIV with keys of 192 bits.
fn aead_key(aead: Aead, key: &[u8]) -> Option<LessSafeKey> {
    let algorithm = match (aead, key.len()) {
        (Aead::Gcm, 16) => &AES_128_GCM,
        (Aead::Gcm, 24) => &AES_192_GCM,
        (Aead::Gcm, _) => &AES_256_GCM,
        (Aead::GcmSiv, 16) => &AES_128_GCM_SIV,
        (Aead::GcmSiv, 32) => &AES_256_GCM_SIV,
        _ => return None,
    };
    Some(LessSafeKey::new(UnboundKey::new(algorithm, key).expect("a length of AES")))
}

fn seal(key: &LessSafeKey, call: u64, data: &mut [u8]) -> u128 {
    let nonce = Nonce::assume_unique_for_key(nonce(call));
    let tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), data).expect("bench");
    u128::from_le_bytes(tag.as_ref().try_into().expect("16 bytes"))
}

fn aws_lc_open(key: LessSafeKey, inputs: &Inputs, shape: Shape) -> Run {
    let Inputs { source, tags, .. } = inputs.clone();
    let open: Run = Box::new(move |data, _| {
        let nonce = Nonce::assume_unique_for_key(NONCE);
        key.open_separate_gather(nonce, Aad::empty(), &source, &tags[0], data).expect("bench");
        Ok(0)
    });
    checking_each_write(shape.size, open)
}

fn aws_lc_gcm_batch(inputs: &Inputs, each: usize, size: usize) -> Run {
    let Inputs { keys, .. } = inputs.clone();
    Box::new(move |data, call| {
        let messages = keys.chunks(each).zip(data.chunks_exact_mut(size));
        Ok(digest_of(messages.map(|(key, message)| {
            seal(&aead_key(Aead::Gcm, key).expect("GCM has all sizes"), call, message)
        })))
    })
}

fn rustcrypto_of_size(work: &Workload, inputs: &Inputs, shape: Shape) -> Option<Run> {
    match work.key_len {
        _ if shape.messages > 1 => None,
        16 => rustcrypto::<aes::Aes128>(work, inputs, shape),
        24 => rustcrypto::<aes::Aes192>(work, inputs, shape),
        _ => rustcrypto::<aes::Aes256>(work, inputs, shape),
    }
}

type Blocks16 = Array<u8, U16>;

fn rustcrypto<C>(work: &Workload, inputs: &Inputs, shape: Shape) -> Option<Run>
where
    C: KeyInit + BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16> + Clone + 'static,
{
    // This line also excludes XTS: XTS has two keys, and `new_from_slice` rejects their total length.
    let cipher = C::new_from_slice(&inputs.keys).ok()?;
    Some(match (work.mode, work.direction) {
        (Mode::Cipher(Cipher::Ctr), _) => Box::new(move |data, call| {
            let iv = Blocks16::from(iv(call));
            let core = ctr::CtrCore::<C, ctr::flavors::Ctr128BE>::inner_iv_init(cipher.clone(), &iv);
            aes::cipher::StreamCipherCoreWrapper::from_core(core).apply_keystream(data);
            Ok(0)
        }),
        (Mode::Cipher(Cipher::Ecb), direction) => Box::new(move |data, _| {
            let blocks = Blocks16::slice_as_chunks_mut(data).0;
            match direction {
                Direction::Encrypt => cipher.encrypt_blocks(blocks),
                Direction::Decrypt => cipher.decrypt_blocks(blocks),
            }
            Ok(0)
        }),
        (Mode::Cipher(Cipher::Cbc), direction) => Box::new(move |data, call| {
            let (cipher, iv) = (cipher.clone(), Blocks16::from(iv(call)));
            let blocks = Blocks16::slice_as_chunks_mut(data).0;
            match direction {
                Direction::Encrypt => cbc::Encryptor::<C>::inner_iv_init(cipher, &iv).encrypt_blocks(blocks),
                Direction::Decrypt => cbc::Decryptor::<C>::inner_iv_init(cipher, &iv).decrypt_blocks(blocks),
            }
            Ok(0)
        }),
        (Mode::Aead(Aead::Gcm), Direction::Encrypt) => {
            let gcm = aes_gcm::AesGcm::<C, U12>::from(cipher);
            Box::new(move |data, call| {
                let nonce = Array::from(nonce(call));
                let tag = gcm.encrypt_inout_detached(&nonce, &[], data.into()).expect("bench");
                Ok(u128::from_le_bytes(tag.into()))
            })
        }
        (Mode::Aead(Aead::Gcm), Direction::Decrypt) => {
            let gcm = aes_gcm::AesGcm::<C, U12>::from(cipher);
            let Inputs { source, tags, .. } = inputs.clone();
            let open: Run = Box::new(move |data, _| {
                let (nonce, tag) = (Array::from(NONCE), Array::from(tags[0]));
                let buffer = InOutBuf::new(&source, data).expect("the same length");
                gcm.decrypt_inout_detached(&nonce, &[], buffer, &tag).expect("bench");
                Ok(0)
            });
            checking_each_write(shape.size, open)
        }
        _ => return None,
    })
}

/// The environment variable that names a second `openssl` program to measure.
pub const ENV_NEWEST: &str = "OPENSSL_NEWEST";

/// An `openssl` program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenSsl {
    /// The path of the program.
    pub program: PathBuf,
    /// The line that the program prints as its version, such as `OpenSSL 3.0.19 27 Jan 2026`.
    pub version: String,
}

impl OpenSsl {
    /// Runs the program at this path to get its version. `None` if it does not run or does not print a version.
    pub fn find(program: &Path) -> Option<OpenSsl> {
        let output = Command::new(program).arg("version").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.split(" (").next()?.trim().to_owned();
        (output.status.success() && !version.is_empty()).then(|| OpenSsl { program: program.into(), version })
    }

    /// Bytes per second of a cipher on buffers of `size` bytes, measured over one second.
    pub fn speed(&self, cipher: &str, decrypt: bool, size: usize) -> Option<f64> {
        let mut command = Command::new(&self.program);
        command.args(["speed", "-elapsed", "-mr", "-seconds", "1", "-evp", cipher]);
        command.args(["-bytes", &size.to_string()]).args(decrypt.then_some("-decrypt"));
        let output = command.stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        // The machine-readable result: `+F:25:AES-128-CTR:9463819702.86`.
        let line = text.lines().rev().find(|line| line.starts_with("+F:"))?;
        line.rsplit(':').next()?.parse().ok()
    }
}

/// The name of a workload for `openssl speed -evp`; None if the program cannot measure it.
pub fn openssl_name(work: &Workload) -> Option<String> {
    let bits = work.key_len * 8;
    let (mode, _) = work.name.split_once(&format!("-{bits}"))?;
    (!["pcbc", "gcm-siv"].contains(&mode)).then(|| format!("aes-{bits}-{mode}"))
}

#[cfg(test)]
mod tests;
