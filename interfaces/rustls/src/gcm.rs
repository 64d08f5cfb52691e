//! The AES-GCM key of one direction of a connection.

use lockstep::Engine;
use lockstep::aead::{Aead, Caller, Error as AeadError, Key, Result as AeadResult};
use lockstep::hazmat::inline::InlineKernel;
use rustls::crypto::cipher::{AeadKey, Iv, NONCE_LEN, UnsupportedOperationError};
use rustls::{ConnectionTrafficSecrets, Error};

/// The number of bytes of a tag.
pub(crate) const TAG: usize = 16;

/// AES-GCM with keys of one size.
#[derive(Clone, Copy)]
pub(crate) struct Gcm {
    /// The kernel of all calls.
    pub(crate) kernel: InlineKernel,
    /// The number of bytes of a key: 16 or 32.
    pub(crate) key_len: usize,
}

impl Gcm {
    /// A key of `key_len` bytes.
    pub(crate) fn key(self, key: &AeadKey) -> GcmKey {
        let key =
            Key::new(Aead::Gcm, key.as_ref()).expect("rustls makes keys of the length that the suite states");
        GcmKey { key, thread: CallingThread(self.kernel) }
    }

    /// The secrets of a direction, for the TLS of a kernel or a network card.
    pub(crate) fn secrets(
        self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        match self.key_len {
            16 => Ok(ConnectionTrafficSecrets::Aes128Gcm { key, iv }),
            32 => Ok(ConnectionTrafficSecrets::Aes256Gcm { key, iv }),
            _ => Err(UnsupportedOperationError),
        }
    }
}

/// Computes messages of any length on the calling thread.
struct CallingThread(InlineKernel);

impl Caller for CallingThread {
    fn inline_kernel(&self) -> Option<InlineKernel> {
        Some(self.0)
    }

    fn inline_limit(&self) -> usize {
        usize::MAX
    }

    /// Not called, because there is a kernel for every message.
    fn engine(&self) -> AeadResult<Engine> {
        Err(AeadError::NotSealed)
    }
}

/// A key, which is wiped on drop.
pub(crate) struct GcmKey {
    key: Key,
    thread: CallingThread,
}

impl GcmKey {
    /// Encrypts data in place, and writes the tag.
    pub(crate) fn seal(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), Error> {
        let sealed = self.key.seal_in_place(&self.thread, nonce, &[aad], data, tag);
        sealed.map_err(|_| Error::EncryptError)
    }

    /// Checks and decrypts data that their tag follows, in place. Returns the length of the plaintext. After an error, the data are
    /// zeroed.
    pub(crate) fn open(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        sealed: &mut [u8],
    ) -> Result<usize, Error> {
        let len = sealed.len().checked_sub(TAG).ok_or(Error::DecryptError)?;
        let (data, tag) = sealed.split_at_mut(len);
        let opened = self.key.open_in_place(&self.thread, nonce, &[aad], data, tag);
        opened.map(|()| len).map_err(|_| Error::DecryptError)
    }
}
