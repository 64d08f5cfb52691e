//! The AES-GCM key of one direction of a connection.

use std::iter::repeat_n;

use lockstep::aead::Tag;
use lockstep::hazmat::inline::{InlineGcm, InlineKernel, Span};
use lockstep::hazmat::stack;
use rustls::crypto::cipher::{
    AeadKey, Iv, NONCE_LEN, OutboundChunks, PrefixedPayload, UnsupportedOperationError,
};
use rustls::{ConnectionTrafficSecrets, Error};

/// The number of bytes of a tag.
pub(crate) const TAG: usize = 16;

/// AES-GCM with keys of one size.
#[derive(Clone, Copy)]
pub(crate) struct Gcm {
    /// The kernel that all calls use.
    pub(crate) kernel: InlineKernel,
    /// The number of bytes of a key: 16 or 32.
    pub(crate) key_len: usize,
}

impl Gcm {
    /// A key of `key_len` bytes.
    pub(crate) fn key(self, key: &AeadKey) -> GcmKey {
        let key = self.expanded(key);
        if !self.kernel.expands_in_place() {
            stack::wipe_below();
        }
        key
    }

    /// A separate function, so that its stack frame can be wiped.
    #[inline(never)]
    fn expanded(self, key: &AeadKey) -> GcmKey {
        let gcm = InlineGcm::new(self.kernel, key.as_ref());
        GcmKey(
            gcm.expect("rustls makes keys of the length that the suite states, and memory is not exhausted"),
        )
    }

    /// The secrets of one direction, for an implementation of TLS in an operating system or in a network card.
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

/// A key, which is wiped on drop. This type is used instead of `lockstep::aead::Key`, whose lock and choice of a method for each message
/// take 5 % of the time for 1 KiB. Records and packets are often so short.
pub(crate) struct GcmKey(InlineGcm);

impl GcmKey {
    /// Encrypts data in place, and writes the tag.
    pub(crate) fn seal(
        &mut self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), Error> {
        sealed(self.0.message(nonce, aad, Span::in_place(data), &mut Tag::Write(tag)))
    }

    /// Like [`seal`](GcmKey::seal), but several threads may call this function at the same time.
    pub(crate) fn seal_shared(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), Error> {
        sealed(self.0.shared_message(nonce, aad, Span::in_place(data), &mut Tag::Write(tag)))
    }

    /// Appends the content of a record, `end` and the tag to the payload. The content and `end` are encrypted.
    pub(crate) fn seal_record(
        &mut self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        content: &OutboundChunks<'_>,
        end: &[u8],
        payload: &mut PrefixedPayload,
    ) -> Result<(), Error> {
        let (start, len) = (payload.as_ref().len(), content.len());
        let long = match content {
            OutboundChunks::Single(content) if len >= LONG => Some(*content),
            _ => None,
        };
        match long {
            Some(_) => payload.extend(repeat_n(&0, len)),
            None => append(payload, content),
        }
        payload.extend_from_slice(end);
        payload.extend_from_slice(&[0; TAG]);
        let (data, tag) = payload.as_mut()[start..].split_at_mut(len + end.len());
        let Some(content) = long else { return self.seal(nonce, aad, data, tag) };
        let (data, end) = data.split_at_mut(len);
        let gcm = &mut self.0;
        let is_encrypted = gcm.start(true, nonce)
            && gcm.aad(aad)
            && gcm.update(Span::copy(content, data))
            && gcm.update(Span::in_place(end));
        let computed = gcm.finish_seal().filter(|_| is_encrypted).ok_or(Error::EncryptError)?;
        tag.copy_from_slice(&computed);
        Ok(())
    }

    /// Authenticates and decrypts data in place. The tag follows the data. Returns the length of the plaintext. After an error, the data
    /// are zeroed.
    pub(crate) fn open(
        &mut self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        sealed: &mut [u8],
    ) -> Result<usize, Error> {
        opened(sealed, |data, tag| self.0.message(nonce, aad, data, tag))
    }

    /// Like [`open`](GcmKey::open), but several threads may call this function at the same time.
    pub(crate) fn open_shared(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        sealed: &mut [u8],
    ) -> Result<usize, Error> {
        opened(sealed, |data, tag| self.0.shared_message(nonce, aad, data, tag))
    }
}

/// The result of an encryption.
fn sealed(result: Option<bool>) -> Result<(), Error> {
    result.map(|_| ()).ok_or(Error::EncryptError)
}

/// Decrypts `sealed` by `message`, and returns the length of the plaintext.
fn opened(
    sealed: &mut [u8],
    message: impl FnOnce(Span<'_>, &mut Tag<'_>) -> Option<bool>,
) -> Result<usize, Error> {
    let len = sealed.len().checked_sub(TAG).ok_or(Error::DecryptError)?;
    let (data, tag) = sealed.split_at_mut(len);
    if message(Span::in_place(data), &mut Tag::Expect(tag)) == Some(true) {
        return Ok(len);
    }
    data.fill(0);
    Err(Error::DecryptError)
}

/// From this number of bytes on, the content of a record is encrypted from its place to the payload, which must be filled with zeros
/// before. On a Sapphire Rapids, sending 16 KiB then takes 8 to 12 % less time than copying the content and encrypting it in place.
/// For 4 KiB, it takes 2 % longer.
const LONG: usize = 8 << 10;

/// The number of bytes that are copied at once. To copy more than 2 or 4 KiB, the GNU C library uses the instruction `rep movsb`. If source
/// and destination have different alignments, this instruction takes 5 microseconds for 16 KiB on a Zen 3. Copies in pieces of this length
/// take 0.3 microseconds.
const PIECE: usize = 1 << 10;

/// Appends the content of a record to the payload.
fn append(payload: &mut PrefixedPayload, content: &OutboundChunks<'_>) {
    match content {
        OutboundChunks::Single(content) => {
            content.chunks(PIECE).for_each(|piece| payload.extend_from_slice(piece));
        }
        // A vectored write has several slices, and most of them are short.
        OutboundChunks::Multiple { .. } => payload.extend_from_chunks(content),
    }
}
