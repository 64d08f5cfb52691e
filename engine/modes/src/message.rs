//! The modes without authentication, their keys, and the messages of a batch.

use subtle::ConstantTimeEq;

use lockstep_core::data::Data;
use lockstep_core::work::{Pass, Segment, Tweak};
use lockstep_core::{Block, Error, Key, Result};

/// A mode of operation without authentication.
///
/// An attacker who can change the ciphertext can change the plaintext. Which changes the attacker can choose depends on the
/// mode. ECB also reveals which plaintext blocks are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// ECB (SP 800-38A, 6.1), for whole blocks.
    Ecb,
    /// CBC (SP 800-38A, 6.2), for whole blocks.
    Cbc,
    /// The propagating CBC of Kerberos 4, for whole blocks. Each block depends on the previous plaintext block and the previous
    /// ciphertext block.
    Pcbc,
    /// CFB with s = 128 (SP 800-38A, 6.3), for any length.
    Cfb128,
    /// CFB with s = 8 (SP 800-38A, 6.3), for any length.
    Cfb8,
    /// CFB with s = 1 (SP 800-38A, 6.3), for any number of bytes. The most significant bit of each byte is processed first.
    Cfb1,
    /// OFB (SP 800-38A, 6.4), for any length.
    Ofb,
    /// CTR with a big-endian counter of 128 bits (SP 800-38A, 6.5), for any length.
    Ctr,
    /// SP 800-38E, IEEE 1619, with ciphertext stealing. A message is one data unit of 16 bytes to 16 MiB. The key consists of
    /// two keys of AES-128 or AES-256.
    Xts,
}

/// The direction of an operation: sealing counts as encryption, and opening as decryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Plaintext to ciphertext.
    Encrypt,
    /// Ciphertext to plaintext.
    Decrypt,
}

impl Cipher {
    /// All modes.
    pub const ALL: [Cipher; 9] = [
        Cipher::Ecb,
        Cipher::Cbc,
        Cipher::Pcbc,
        Cipher::Cfb128,
        Cipher::Cfb8,
        Cipher::Cfb1,
        Cipher::Ofb,
        Cipher::Ctr,
        Cipher::Xts,
    ];

    /// Returns the name of the mode in error messages, and the passes of encryption and decryption.
    const fn properties(self) -> (&'static str, [Pass; 2]) {
        match self {
            Cipher::Ecb => ("ECB", [Pass::EcbEncrypt, Pass::EcbDecrypt]),
            Cipher::Cbc => ("CBC", [Pass::CbcEncrypt, Pass::CbcDecrypt]),
            Cipher::Pcbc => ("PCBC", [Pass::PcbcEncrypt, Pass::PcbcDecrypt]),
            Cipher::Cfb128 => ("CFB", [Pass::Cfb128Encrypt, Pass::Cfb128Decrypt]),
            Cipher::Cfb8 => ("CFB8", [Pass::Cfb8Encrypt, Pass::Cfb8Decrypt]),
            Cipher::Cfb1 => ("CFB1", [Pass::Cfb1Encrypt, Pass::Cfb1Decrypt]),
            Cipher::Ofb => ("OFB", [Pass::Ofb; 2]),
            Cipher::Ctr => ("CTR", [Pass::Ctr; 2]),
            Cipher::Xts => ("XTS", [Pass::XtsEncrypt, Pass::XtsDecrypt]),
        }
    }

    /// The name of the mode in error messages.
    pub const fn name(self) -> &'static str {
        self.properties().0
    }

    /// True if a message may have any length and the ciphertext has the same length as the plaintext.
    pub const fn is_stream(self) -> bool {
        matches!(self, Cipher::Cfb128 | Cipher::Cfb8 | Cipher::Cfb1 | Cipher::Ofb | Cipher::Ctr)
    }

    /// True if PKCS#7 padding can be used.
    pub const fn takes_padding(self) -> bool {
        matches!(self, Cipher::Ecb | Cipher::Cbc | Cipher::Pcbc)
    }

    /// Returns the pass that processes the blocks of the mode.
    pub const fn pass(self, direction: Direction) -> Pass {
        self.properties().1[direction as usize]
    }
}

/// The key of a mode. For XTS, a pair of independent keys of the same size.
#[derive(Debug, Clone)]
pub struct CipherKey {
    data: Key,
    tweak: Option<Key>,
}

impl CipherKey {
    /// Creates a key of `cipher` from 16, 24 or 32 bytes. For XTS, it is created from 32 or 64 bytes: the first half encrypts
    /// the data, and the second half encrypts the tweak.
    ///
    /// # Errors
    /// [`Error::KeyLength`], [`Error::ModeKey`], or [`Error::XtsHalvesEqual`].
    pub fn new(cipher: Cipher, bytes: &[u8]) -> Result<CipherKey> {
        if cipher != Cipher::Xts {
            return Ok(CipherKey { data: Key::new(bytes)?, tweak: None });
        }
        let got = bytes.len();
        if got != 32 && got != 64 {
            return Err(Error::ModeKey { mode: "XTS", expected: "two keys of 16 or of 32 bytes", got });
        }
        let (data, tweak) = bytes.split_at(got / 2);
        if bool::from(data.ct_eq(tweak)) {
            return Err(Error::XtsHalvesEqual);
        }
        Ok(CipherKey { data: Key::new(data)?, tweak: Some(Key::new(tweak)?) })
    }

    /// The key that encrypts the data.
    pub fn data(&self) -> &Key {
        &self.data
    }

    /// The key that encrypts the tweak. `None` for modes other than XTS.
    pub fn tweak(&self) -> Option<&Key> {
        self.tweak.as_ref()
    }
}

impl From<Key> for CipherKey {
    /// Creates a key for any mode except XTS.
    fn from(data: Key) -> CipherKey {
        CipherKey { data, tweak: None }
    }
}

/// One message of a batch.
pub struct Message<'d> {
    /// The key.
    pub key: &'d CipherKey,
    /// The IV, the counter or the tweak. It is updated as documented for [`Pass`].
    pub iv: &'d mut Block,
    /// The data.
    pub data: Data<'d>,
}

impl std::fmt::Debug for Message<'_> {
    /// Prints no contents of buffers.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Message").field("key", &self.key).field("data", &self.data).finish_non_exhaustive()
    }
}

impl Message<'_> {
    /// Returns the whole message as a segment. For XTS, the segment starts at block `position` of the data unit.
    pub(crate) fn segment(&mut self, position: u64) -> Segment<'_> {
        Segment {
            key: self.key.data(),
            tweak: self.key.tweak().map(|key| Tweak { key, position }),
            state: self.iv,
            data: self.data.reborrow(),
        }
    }
}
