//! The modes without authentication: one pass each, and for XTS ciphertext stealing around it.

use subtle::ConstantTimeEq;

use crate::executor::Executor;
use crate::xts;
use lockstep_core::data::Data;
use lockstep_core::error::{Error, Result};
use lockstep_core::key::{Block, Key, KeySize};
use lockstep_core::work::{Pass, Segment, Tweak};

/// A mode of operation without authentication.
///
/// Whoever can change the ciphertext can change the plaintext in ways that depend on the mode. ECB shows equal blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// SP 800-38A, 6.1. Whole blocks.
    Ecb,
    /// SP 800-38A, 6.2. Whole blocks.
    Cbc,
    /// Kerberos 4's propagating CBC: each block depends on the plaintext and ciphertext before. Whole blocks.
    Pcbc,
    /// SP 800-38A, 6.3, s = 128. Any length.
    Cfb128,
    /// SP 800-38A, 6.3, s = 8. Any length.
    Cfb8,
    /// SP 800-38A, 6.3, s = 1, most significant bit of each byte first. Any number of bytes.
    Cfb1,
    /// SP 800-38A, 6.4. Any length.
    Ofb,
    /// SP 800-38A, 6.5, with a 128-bit big-endian counter. Any length.
    Ctr,
    /// SP 800-38E, IEEE 1619, with ciphertext stealing. 16 bytes to 16 MiB, which make one data unit; AES-128 and
    /// AES-256, two keys.
    Xts,
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Plaintext to ciphertext.
    Encrypt,
    /// Ciphertext to plaintext.
    Decrypt,
}

impl Cipher {
    /// All of them.
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

    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Cipher::Ecb => "ECB",
            Cipher::Cbc => "CBC",
            Cipher::Pcbc => "PCBC",
            Cipher::Cfb128 => "CFB",
            Cipher::Cfb8 => "CFB8",
            Cipher::Cfb1 => "CFB1",
            Cipher::Ofb => "OFB",
            Cipher::Ctr => "CTR",
            Cipher::Xts => "XTS",
        }
    }

    /// True if ciphertext is as long as plaintext, whatever that is: no padding.
    pub const fn is_stream(self) -> bool {
        matches!(self, Cipher::Cfb128 | Cipher::Cfb8 | Cipher::Cfb1 | Cipher::Ofb | Cipher::Ctr)
    }

    /// True if PKCS#7 padding makes sense for it.
    pub const fn takes_padding(self) -> bool {
        matches!(self, Cipher::Ecb | Cipher::Cbc | Cipher::Pcbc)
    }

    /// The pass that does its blocks.
    pub const fn pass(self, direction: Direction) -> Pass {
        match (self, direction) {
            (Cipher::Ecb, Direction::Encrypt) => Pass::EcbEncrypt,
            (Cipher::Ecb, Direction::Decrypt) => Pass::EcbDecrypt,
            (Cipher::Cbc, Direction::Encrypt) => Pass::CbcEncrypt,
            (Cipher::Cbc, Direction::Decrypt) => Pass::CbcDecrypt,
            (Cipher::Pcbc, Direction::Encrypt) => Pass::PcbcEncrypt,
            (Cipher::Pcbc, Direction::Decrypt) => Pass::PcbcDecrypt,
            (Cipher::Cfb128, Direction::Encrypt) => Pass::Cfb128Encrypt,
            (Cipher::Cfb128, Direction::Decrypt) => Pass::Cfb128Decrypt,
            (Cipher::Cfb8, Direction::Encrypt) => Pass::Cfb8Encrypt,
            (Cipher::Cfb8, Direction::Decrypt) => Pass::Cfb8Decrypt,
            (Cipher::Cfb1, Direction::Encrypt) => Pass::Cfb1Encrypt,
            (Cipher::Cfb1, Direction::Decrypt) => Pass::Cfb1Decrypt,
            (Cipher::Ofb, _) => Pass::Ofb,
            (Cipher::Ctr, _) => Pass::Ctr,
            (Cipher::Xts, Direction::Encrypt) => Pass::XtsEncrypt,
            (Cipher::Xts, Direction::Decrypt) => Pass::XtsDecrypt,
        }
    }

    /// Encrypts one message that lies in host memory, in place. The IV moves on as [`Pass`] says, so that the next
    /// call goes on where this one ended, if this one ended at a whole block.
    ///
    /// # Errors
    /// Those of [`Cipher::run`].
    pub fn encrypt(
        self,
        executor: &dyn Executor,
        key: &CipherKey,
        iv: &mut Block,
        data: &mut [u8],
    ) -> Result<()> {
        self.one(executor, Direction::Encrypt, key, iv, Data::in_place(data))
    }

    /// Decrypts one message in place; otherwise as [`Cipher::encrypt`].
    ///
    /// # Errors
    /// Those of [`Cipher::run`].
    pub fn decrypt(
        self,
        executor: &dyn Executor,
        key: &CipherKey,
        iv: &mut Block,
        data: &mut [u8],
    ) -> Result<()> {
        self.one(executor, Direction::Decrypt, key, iv, Data::in_place(data))
    }

    /// One message, without allocating.
    ///
    /// # Errors
    /// Those of [`Cipher::run`].
    pub fn one(
        self,
        executor: &dyn Executor,
        direction: Direction,
        key: &CipherKey,
        iv: &mut Block,
        data: Data<'_>,
    ) -> Result<()> {
        self.check(key, &data)?;
        if self == Cipher::Xts {
            return xts::run(executor, direction, 0, &mut [Message { key, iv, data }]);
        }
        let segment = Segment { key: key.data(), tweak: None, state: iv, data };
        executor.run_pass(self.pass(direction), &mut [segment])
    }

    /// A batch: all messages in one call to the device.
    ///
    /// # Errors
    /// [`Error::NotWholeBlocks`], [`Error::XtsTooShort`], [`Error::TooLong`] or [`Error::ModeKey`] before anything is done; those of
    /// devices.
    pub fn run(
        self,
        executor: &dyn Executor,
        direction: Direction,
        messages: &mut [Message<'_>],
    ) -> Result<()> {
        for message in &*messages {
            self.check(message.key, &message.data)?;
        }
        if self == Cipher::Xts {
            return xts::run(executor, direction, 0, messages);
        }
        for size in KeySize::ALL {
            // One call a key size: kernels differ by it, and batches seldom mix them.
            let of_size = |message: &&mut Message<'_>| message.key.data().size() == size;
            let mut segments: Vec<_> =
                messages.iter_mut().filter(of_size).map(|message| message.segment(0)).collect();
            executor.run_pass(self.pass(direction), &mut segments)?;
        }
        Ok(())
    }

    pub(crate) fn check_key(self, key: &CipherKey) -> Result<()> {
        let is_xts = self == Cipher::Xts;
        if is_xts == key.tweak.is_some() {
            return Ok(());
        }
        let expected = if is_xts { "two keys" } else { "one key" };
        Err(Error::ModeKey { mode: self.name(), expected, got: key.bytes() })
    }

    fn check(self, key: &CipherKey, data: &Data<'_>) -> Result<()> {
        self.check_key(key)?;
        match self {
            Cipher::Xts if data.len() < 16 => Err(Error::XtsTooShort { got: data.len() }),
            Cipher::Xts => xts::check_unit(data.len() as u64),
            Cipher::Ecb | Cipher::Cbc | Cipher::Pcbc if !data.len().is_multiple_of(16) => {
                Err(Error::NotWholeBlocks { mode: self.name(), extra: data.len() % 16 })
            }
            _ => Ok(()),
        }
    }
}

/// The key or keys of a mode: one, or for XTS a pair of independent keys of one size.
#[derive(Debug, Clone)]
pub struct CipherKey {
    data: Key,
    tweak: Option<Key>,
}

impl CipherKey {
    /// The key of `cipher` from its bytes: 16, 24 or 32; for XTS 32 or 64, of which the first half encrypts the data
    /// and the second the tweak.
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

    /// The key that encrypts the tweak, for XTS.
    pub fn tweak(&self) -> Option<&Key> {
        self.tweak.as_ref()
    }

    fn bytes(&self) -> usize {
        self.data.bytes().len() * if self.tweak.is_some() { 2 } else { 1 }
    }
}

impl From<Key> for CipherKey {
    /// For all modes but XTS.
    fn from(data: Key) -> CipherKey {
        CipherKey { data, tweak: None }
    }
}

/// One message of a batch.
#[derive(Debug)]
pub struct Message<'d> {
    /// Its key.
    pub key: &'d CipherKey,
    /// Its IV, counter or tweak; moves on as [`Pass`] says.
    pub iv: &'d mut Block,
    /// Its data.
    pub data: Data<'d>,
}

impl Message<'_> {
    /// The whole message as a segment; for XTS from block `position` of the data unit.
    pub(crate) fn segment(&mut self, position: u64) -> Segment<'_> {
        Segment {
            key: self.key.data(),
            tweak: self.key.tweak().map(|key| Tweak { key, position }),
            state: self.iv,
            data: self.data.reborrow(),
        }
    }
}
