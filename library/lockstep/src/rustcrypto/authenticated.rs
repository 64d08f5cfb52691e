//! Authenticated modes.

use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;

use ::aead::array::{Array, ArraySize};
use ::aead::consts::{U12, U16, U32, U64};
use ::aead::inout::InOutBuf;
use ::aead::{AeadCore, AeadInOut, Error, KeyInit, KeySizeUser, Result, TagPosition};
use cipher::zeroize::{Zeroize, ZeroizeOnDrop};

use super::block::{Aes, Aes128, Aes256};
use crate::Engine;
use crate::aead::{Aead, Key};

/// Implemented by [`Aes`] only, and not exported: aliases such as [`AesGcm`] must not accept another cipher, since the modes compute AES.
///
/// ```compile_fail,E0277
/// use lockstep::rustcrypto::{AesGcm, cipher::consts::U12};
/// struct Sm4;
/// impl lockstep::rustcrypto::cipher::KeySizeUser for Sm4 {
///     type KeySize = lockstep::rustcrypto::cipher::consts::U16;
/// }
/// type Sm4Gcm = AesGcm<Sm4, U12>;
/// fn new(key: [u8; 16]) -> Sm4Gcm {
///     lockstep::rustcrypto::KeyInit::new(&key.into())
/// }
/// ```
pub trait IsAes {
    /// The number of bytes of a key.
    type KeySize;
}

impl<KeySize> IsAes for Aes<KeySize> {
    type KeySize = KeySize;
}

/// A nonce, as `aes_gcm::Nonce`.
pub type Nonce<Size> = Array<u8, Size>;
/// A tag, as `aes_gcm::Tag`.
pub type Tag<Size = U16> = Array<u8, Size>;

/// AES-GCM, as `aes_gcm::AesGcm`, with tags of 12 to 16 bytes. A type with shorter tags does not compile:
///
/// ```compile_fail
/// use lockstep::rustcrypto::cipher::consts::{U8, U12};
/// use lockstep::rustcrypto::{Aes128, AesGcm, KeyInit};
/// AesGcm::<Aes128, U12, U8>::new(&[0; 16].into());
/// ```
pub type AesGcm<A, NonceSize, TagSize = U16> =
    AuthenticatedCipher<{ Aead::Gcm as usize }, <A as IsAes>::KeySize, NonceSize, TagSize>;
/// AES-GCM with a 128-bit key and a 96-bit nonce.
pub type Aes128Gcm = AesGcm<Aes128, U12>;
/// AES-GCM with a 256-bit key and a 96-bit nonce.
pub type Aes256Gcm = AesGcm<Aes256, U12>;
/// AES-GCM-SIV (RFC 8452), as `aes_gcm_siv::AesGcmSiv`.
pub type AesGcmSiv<A> = AuthenticatedCipher<{ Aead::GcmSiv as usize }, <A as IsAes>::KeySize, U12, U16>;
/// AES-GCM-SIV with a 128-bit key.
pub type Aes128GcmSiv = AesGcmSiv<Aes128>;
/// AES-GCM-SIV with a 256-bit key.
pub type Aes256GcmSiv = AesGcmSiv<Aes256>;
/// OCB3 (RFC 7253), as `ocb3::Ocb3`.
pub type Ocb3<A, NonceSize = U12, TagSize = U16> =
    AuthenticatedCipher<{ Aead::Ocb as usize }, <A as IsAes>::KeySize, NonceSize, TagSize>;
/// EAX, as `eax::Eax`, with a nonce of 16 bytes.
pub type Eax<A, TagSize = U16> =
    AuthenticatedCipher<{ Aead::Eax as usize }, <A as IsAes>::KeySize, U16, TagSize>;
/// CCM (SP 800-38C), as `ccm::Ccm`.
pub type Ccm<A, TagSize, NonceSize> =
    AuthenticatedCipher<{ Aead::Ccm as usize }, <A as IsAes>::KeySize, NonceSize, TagSize>;
/// AES-SIV (RFC 5297) with two 128-bit keys and a nonce of 16 bytes, as `aes_siv::Aes128SivAead`. The tag is before the ciphertext.
pub type Aes128SivAead = AuthenticatedCipher<{ Aead::Siv as usize }, U32, U16, U16>;
/// AES-SIV with two 256-bit keys, as `aes_siv::Aes256SivAead`.
pub type Aes256SivAead = AuthenticatedCipher<{ Aead::Siv as usize }, U64, U16, U16>;

/// The authenticated mode with the index MODE in [`Aead::ALL`], with keys of K bytes, nonces of N bytes and tags of T bytes. A type
/// with a length that the mode does not allow does not compile.
pub struct AuthenticatedCipher<const MODE: usize, K, N, T> {
    key: Key,
    lengths: PhantomData<(K, N, T)>,
}

impl<const MODE: usize, K: ArraySize, N, T> KeySizeUser for AuthenticatedCipher<MODE, K, N, T> {
    type KeySize = K;
}

impl<const MODE: usize, K, N, T> KeyInit for AuthenticatedCipher<MODE, K, N, T>
where
    K: ArraySize,
    N: ArraySize,
    T: ArraySize,
{
    fn new(key: &::aead::Key<Self>) -> Self {
        const {
            let row = Aead::ALL[MODE].row();
            assert!(row.has_keys_of(K::USIZE), "the mode has no keys of this length");
            assert!(row.nonces.contains(N::USIZE), "the mode has no nonces of this length");
            let is_too_short = matches!(Aead::ALL[MODE], Aead::Gcm) && T::USIZE < 12;
            assert!(row.tags.contains(T::USIZE) && !is_too_short, "the mode has no tags of this length");
        }
        let key = Key::new(Aead::ALL[MODE], key).expect("the length was checked at compile time");
        AuthenticatedCipher { key, lengths: PhantomData }
    }
}

impl<const MODE: usize, K, N: ArraySize, T: ArraySize> AeadCore for AuthenticatedCipher<MODE, K, N, T> {
    type NonceSize = N;
    type TagSize = T;
    const TAG_POSITION: TagPosition =
        if Aead::ALL[MODE].row().has_tag_first { TagPosition::Prefix } else { TagPosition::Postfix };
}

impl<const MODE: usize, K, N: ArraySize, T: ArraySize> AeadInOut for AuthenticatedCipher<MODE, K, N, T> {
    fn encrypt_inout_detached(
        &self,
        nonce: &Nonce<N>,
        aad: &[u8],
        mut buffer: InOutBuf<'_, '_, u8>,
    ) -> Result<Tag<T>> {
        let engine = shared_engine()?;
        let is_in_place = buffer.get_in().as_ptr() == buffer.get_out().as_ptr();
        let data = buffer.into_out_with_copied_in();
        let mut tag = Tag::<T>::default();
        let sealed = self.key.seal_in_place(engine, nonce, &[aad], data, &mut tag);
        if sealed.is_err() && !is_in_place {
            // Erases the copy of the plaintext in the output buffer.
            data.zeroize();
        }
        sealed.map(|()| tag).map_err(|_| Error)
    }

    fn decrypt_inout_detached(
        &self,
        nonce: &Nonce<N>,
        aad: &[u8],
        buffer: InOutBuf<'_, '_, u8>,
        tag: &Tag<T>,
    ) -> Result<()> {
        let engine = shared_engine()?;
        let data = buffer.into_out_with_copied_in();
        self.key.open_in_place(engine, nonce, &[aad], data, tag).map_err(|_| Error)
    }
}

impl<const MODE: usize, K, N, T> Clone for AuthenticatedCipher<MODE, K, N, T> {
    fn clone(&self) -> Self {
        AuthenticatedCipher { key: self.key.clone(), lengths: PhantomData }
    }
}

impl<const MODE: usize, K, N, T> ZeroizeOnDrop for AuthenticatedCipher<MODE, K, N, T> {}

impl<const MODE: usize, K, N, T> fmt::Debug for AuthenticatedCipher<MODE, K, N, T> {
    /// Prints no byte of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.key.mode().name()).finish_non_exhaustive()
    }
}

/// Returns the engine of all authenticated ciphers, which uses the CPU unless the environment names another device. Returns an error
/// if the environment names a device or a kernel that does not exist.
fn shared_engine() -> Result<&'static Engine> {
    static ENGINE: OnceLock<Option<Engine>> = OnceLock::new();
    let new = || Engine::builder().backends(&["cpu"]).build().or_else(|_| Engine::new()).ok();
    ENGINE.get_or_init(new).as_ref().ok_or(Error)
}

#[cfg(test)]
mod tests;
