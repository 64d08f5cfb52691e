//! Incremental GCM by AWS-LC, whose assembly runs CTR and GHASH in one loop.
//!
//! AWS-LC accepts pieces of any length, in place or not. AWS-LC zeroes all memory that it frees, including the contexts and
//! the memory that they point to.

use std::ffi::c_int;
use std::ptr::{NonNull, null, null_mut};

use aws_lc_sys::{
    EVP_CIPHER, EVP_CIPHER_CTX, EVP_CIPHER_CTX_copy, EVP_CIPHER_CTX_ctrl, EVP_CIPHER_CTX_free,
    EVP_CIPHER_CTX_new, EVP_CTRL_AEAD_GET_TAG, EVP_CTRL_AEAD_SET_IVLEN, EVP_CTRL_AEAD_SET_TAG,
    EVP_CipherFinal_ex, EVP_CipherInit_ex, EVP_CipherUpdate, EVP_aes_128_gcm, EVP_aes_192_gcm,
    EVP_aes_256_gcm,
};

use crate::kernel::{Block, Span};

/// Maximum number of bytes for one call: AWS-LC passes lengths as C's int.
const MOST: usize = 1 << 30;

/// A key and the state of a message. The caller checks the order of calls and the limits on lengths.
pub(super) struct Fused {
    context: NonNull<EVP_CIPHER_CTX>,
    /// Length of the key in bytes; 0 if no key is set.
    key_len: usize,
    /// Length of the IV that the context expects.
    iv_len: usize,
}

// SAFETY: a context is not bound to a thread, and only `&mut self` changes it.
unsafe impl Send for Fused {}
// SAFETY: methods with `&self` only read the context.
unsafe impl Sync for Fused {}

impl Fused {
    /// `None` if memory cannot be allocated.
    pub(super) fn new(key: &[u8]) -> Option<Fused> {
        let mut fused = Fused::blank()?;
        fused.set_key(key).then_some(fused)
    }

    fn blank() -> Option<Fused> {
        // SAFETY: no conditions.
        let context = NonNull::new(unsafe { EVP_CIPHER_CTX_new() })?;
        Some(Fused { context, key_len: 0, iv_len: 12 })
    }

    /// Sets a key. Returns false if memory cannot be allocated; no key is set then.
    pub(super) fn set_key(&mut self, key: &[u8]) -> bool {
        // SAFETY: no conditions.
        let cipher: *const EVP_CIPHER = unsafe {
            match key.len() {
                len if len == self.key_len => null(),
                16 => EVP_aes_128_gcm(),
                24 => EVP_aes_192_gcm(),
                _ => EVP_aes_256_gcm(),
            }
        };
        if !cipher.is_null() {
            self.iv_len = 12;
        }
        let context = self.context.as_ptr();
        // SAFETY: the context is alive. If `cipher` is null, the context already has a cipher. The key has the length of
        // that cipher.
        let done = unsafe { EVP_CipherInit_ex(context, cipher, null_mut(), key.as_ptr(), null(), 1) };
        self.key_len = if done == 1 { key.len() } else { 0 };
        done == 1
    }

    /// Starts a message; false if no key is set or memory cannot be allocated.
    pub(super) fn start(&mut self, encrypt: bool, iv: &[u8]) -> bool {
        let Ok(iv_len) = c_int::try_from(iv.len()) else { return false };
        let context = self.context.as_ptr();
        if self.key_len == 0 {
            return false;
        }
        // SAFETY: the context is alive and has a cipher and a key. The IV has the length that the context expects.
        unsafe {
            if iv.len() != self.iv_len {
                if EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, iv_len, null_mut()) != 1 {
                    return false;
                }
                self.iv_len = iv.len();
            }
            EVP_CipherInit_ex(context, null(), null_mut(), null(), iv.as_ptr(), c_int::from(encrypt)) == 1
        }
    }

    /// Adds additional data.
    pub(super) fn aad(&mut self, aad: &[u8]) -> bool {
        // SAFETY: the piece is valid for reads of its length. A null output pointer marks additional data.
        aad.chunks(MOST).all(|piece| unsafe { self.feed(null_mut(), piece.as_ptr(), piece.len()) })
    }

    /// Encrypts or decrypts data.
    pub(super) fn update(&mut self, mut data: Span<'_>) -> bool {
        while !data.is_empty() {
            let at = data.len().min(MOST);
            let (piece, rest) = data.split_at(at);
            // SAFETY: a span is valid for its length. Its source and its destination are equal or disjoint.
            if !unsafe { self.feed(piece.dst(), piece.src(), at) } {
                return false;
            }
            data = rest;
        }
        true
    }

    /// # Safety
    ///
    /// `len` is from 1 to [`MOST`]. `src` is valid for reads of `len` bytes. `dst` is either null, or valid for writes of
    /// `len` bytes and equal to `src` or disjoint from it.
    unsafe fn feed(&mut self, dst: *mut u8, src: *const u8, len: usize) -> bool {
        let mut written = 0;
        // SAFETY: the context is alive; the caller guarantees the rest.
        unsafe { EVP_CipherUpdate(self.context.as_ptr(), dst, &mut written, src, len as c_int) == 1 }
    }

    fn finish(&mut self) -> bool {
        let mut nothing = [0; 16];
        let mut written = 0;
        // SAFETY: the context is alive. The buffer has room for a block, although the call writes nothing.
        unsafe { EVP_CipherFinal_ex(self.context.as_ptr(), nothing.as_mut_ptr(), &mut written) == 1 }
    }

    /// The tag of an encryption.
    pub(super) fn seal(&mut self) -> Option<Block> {
        let mut tag = [0; 16];
        let context = self.context.as_ptr();
        // SAFETY: the context is alive. `tag` has room for the 16 bytes that the call writes.
        let done = self.finish()
            && unsafe { EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag.as_mut_ptr().cast()) }
                == 1;
        done.then_some(tag)
    }

    /// Ends a decryption. True if the tag, of 1 to 16 bytes, is correct. AWS-LC compares in constant time.
    pub(super) fn open(&mut self, tag: &[u8]) -> bool {
        let context = self.context.as_ptr();
        let len = tag.len() as c_int;
        // SAFETY: the context is alive. The call only reads the tag, which has at most 16 bytes.
        let known = unsafe {
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, len, tag.as_ptr().cast_mut().cast())
        };
        known == 1 && self.finish()
    }

    /// An independent copy of the current state.
    pub(super) fn duplicate(&self) -> Option<Fused> {
        let mut copy = Fused::blank()?;
        if self.key_len > 0 {
            // SAFETY: both contexts are alive; the original is only read.
            let done = unsafe { EVP_CIPHER_CTX_copy(copy.context.as_ptr(), self.context.as_ptr()) };
            if done != 1 {
                return None;
            }
            (copy.key_len, copy.iv_len) = (self.key_len, self.iv_len);
        }
        Some(copy)
    }
}

impl Drop for Fused {
    fn drop(&mut self) {
        // SAFETY: the context is alive and not used afterwards.
        unsafe { EVP_CIPHER_CTX_free(self.context.as_ptr()) };
    }
}
