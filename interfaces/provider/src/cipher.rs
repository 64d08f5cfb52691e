//! The contexts of ciphers, in safe Rust: [`crate::ffi`] checks the arguments from C and calls these functions.
//!
//! | module | modes |
//! |---|---|
//! | `raw` | the key and the parameters of contexts without authentication |
//! | `generator` | recognises the contexts of OpenSSL's random generator |
//! | `blocks` | ECB and CBC, with padding; CBC with ciphertext stealing |
//! | `tls_cbc` | CBC of TLS records: padding and MAC removed in constant time |
//! | `streams` | CTR, OFB, CFB, CFB8 and CFB1 |
//! | `xts` | XTS |
//! | `wrap` | key wrap, with and without padding |
//! | `aead` | the context of all modes of authenticated encryption |
//! | `gcm`, `ccm` | GCM and CCM, and their forms in TLS 1.2 records |
//! | `ocb` | OCB3 |
//! | `siv` | SIV and GCM-SIV, which tolerate repeated nonces |

use lockstep::hazmat::mode::Direction;

use crate::algorithm::{Algorithm, Mode};
use crate::instance::Instance;
use crate::libcrypto::{Buffers, GetParam, Param, Parameters, SetParam};
use crate::reason::{Outcome, Reason};
use crate::system::stack::in_own_frame;

mod aead;
mod blocks;
mod ccm;
mod gcm;
mod generator;
mod ocb;
mod raw;
mod siv;
mod streams;
mod tls_cbc;
mod wrap;
mod xts;

pub(crate) use wrap::Wrap;
pub(crate) use xts::Xts;

pub(crate) type Ecb = blocks::Blocks<{ Mode::Ecb as u8 }>;
pub(crate) type Cbc = blocks::Blocks<{ Mode::Cbc as u8 }>;
pub(crate) type Cts = blocks::Blocks<{ Mode::CbcCts as u8 }>;
pub(crate) type Ctr = streams::Streams<true>;
pub(crate) type Feedback = streams::Streams<false>;
pub(crate) type Gcm = aead::AeadContext<gcm::GcmMode>;
pub(crate) type Ccm = aead::AeadContext<ccm::CcmMode>;
pub(crate) type Ocb = aead::AeadContext<ocb::OcbMode>;
pub(crate) type GcmSiv = aead::AeadContext<siv::SyntheticIv<false>>;
pub(crate) type Siv = aead::AeadContext<siv::SyntheticIv<true>>;

/// The parts that all contexts have.
#[derive(Clone)]
pub(crate) struct Common {
    /// A context refers to its instance without counting the references, because libcrypto does so: a context of a program refers to
    /// its cipher, and a cipher to its provider, which is torn down after its last cipher.
    pub(crate) instance: &'static Instance,
    pub(crate) algorithm: &'static Algorithm,
    /// The direction of the last `init`.
    pub(crate) encrypts: bool,
    /// True for a context of OpenSSL's random generator. Always false if the threshold is so high that no call of the generator
    /// would be passed to the planner.
    pub(crate) is_of_generator: bool,
}

impl Common {
    pub(crate) fn new(instance: &'static Instance, algorithm: &'static Algorithm) -> Common {
        Common { instance, algorithm, encrypts: true, is_of_generator: false }
    }

    /// Called before each init. Determines whether the context belongs to OpenSSL's random generator, whose calls stay on the
    /// caller's thread. This test is skipped if all calls of the generator are below the threshold of the planner. It is also
    /// skipped for a context that is known to belong to a generator: while a generator is created, its parent generator may
    /// init its own contexts.
    #[inline(always)]
    fn observe_init(&mut self, key: Option<&[u8]>, iv: Option<&[u8]>) {
        if self.instance.resources.threshold <= generator::MAX_DRAW && !self.is_of_generator {
            self.is_of_generator = generator::observe(self.algorithm.mode, key, iv.is_some());
        }
    }

    fn direction(&self) -> Direction {
        if self.encrypts { Direction::Encrypt } else { Direction::Decrypt }
    }

    /// Sets the parameter for the key length. Only the key length of the algorithm is accepted.
    fn set_key_len(&self, param: &SetParam<'_>) -> Outcome<()> {
        if param.number::<usize>()? == self.algorithm.key_len { Ok(()) } else { Err(Reason::KeyLength) }
    }
}

/// Copies an IV, which usually has USUAL bytes. This length is a constant, so the copy is made by stores of words, which the processor can
/// forward to later loads. If the other lengths were not copied by another function, the compiler would join both copies to a call of
/// `memcpy`.
#[inline(always)]
fn copy_iv<const USUAL: usize>(iv: &[u8], place: &mut [u8]) {
    match <&[u8; USUAL]>::try_from(iv) {
        Ok(iv) => place[..USUAL].copy_from_slice(iv),
        Err(_) => in_own_frame(|| place[..iv.len()].copy_from_slice(iv)),
    }
}

/// A context that processes messages one after another under one key (provider-cipher(7)).
///
/// Where OpenSSL's documentation does not define the behaviour, these contexts behave like those of OpenSSL's default
/// provider, for compatibility.
///
/// `Sync`, because several threads may copy one context at the same time.
pub(crate) trait Cipher: Sized + Send + Sync {
    /// Gettable context parameters.
    const GETTABLE: Parameters = raw::GETTABLE;
    /// Settable context parameters.
    const SETTABLE: Parameters = raw::SETTABLE;
    /// False if the cipher has no function for `EVP_Cipher`. OpenSSL then calls the function for updates.
    const HAS_ONE_SHOT: bool = true;
    /// False if a call on few bytes may process other data of any length: it completes a message whose additional data are stored.
    const HAS_SHORT_CALLS: bool = true;

    /// Creates a context without a key.
    fn new(common: Common) -> Self;

    fn common(&self) -> &Common;

    /// Does what can fail, and returns a function that makes a copy of the context with the same state. The caller calls this
    /// function where the copy is stored, so that the copy need not be moved.
    fn duplicate(&self) -> Outcome<impl FnOnce() -> Self>;

    /// Starts a message. If `key` or `iv` is `None`, the context keeps its key or IV. The caller has
    /// checked the length of the key.
    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()>;

    /// Processes the next bytes; returns the number of bytes of output.
    fn update(&mut self, data: Buffers<'_>) -> Outcome<usize>;

    /// Returns the usable output space in bytes for an update with `len` bytes of input. `room` is the size that
    /// OpenSSL has passed.
    #[inline(always)]
    fn output_room(&self, room: usize, _len: usize) -> usize {
        room
    }

    /// Returns the maximum number of output bytes of an update with `len` bytes of input. Only for ciphers in which an update
    /// without output is a query of this number; all other ciphers return `None`.
    fn query_output_len(&self, _has_input: bool, _len: usize) -> Option<Outcome<usize>> {
        None
    }

    /// Processes additional data. OpenSSL passes them in an update without output. A cipher without authentication has no
    /// additional data, and handles this update as [`Cipher::set_message_len`] does.
    fn aad(&mut self, aad: &[u8]) -> Outcome<()> {
        self.set_message_len(aad.len())
    }

    /// Sets the length of the message. OpenSSL passes the length in an update without input and output.
    fn set_message_len(&mut self, _len: usize) -> Outcome<()> {
        Err(Reason::NullBuffer)
    }

    /// Ends the message. `output` only provides space for output: its input is empty. A cipher that writes all of its output in
    /// updates need not implement this function.
    fn finish(&mut self, _output: Buffers<'_>) -> Outcome<usize> {
        Ok(0)
    }

    /// Implements `EVP_Cipher`: processes data without buffering or padding.
    fn one_shot(&mut self, data: Buffers<'_>) -> Outcome<usize> {
        self.update(data)
    }

    /// True if [`Cipher::duplicate`] may leave a part of the message on the stack: a partial block, keystream, or the state of a MAC.
    fn holds_text(&self) -> bool {
        true
    }

    /// Begins an update: called before [`Cipher::update`], [`Cipher::one_shot`], [`Cipher::aad`] and [`Cipher::set_message_len`] with the
    /// length that OpenSSL passes. Returns the number of bytes of input. If OpenSSL counts bits, the context stores the number of bits for
    /// the update.
    #[inline(always)]
    fn begin_update(&mut self, len: usize) -> usize {
        len
    }

    /// Gets a parameter. Unknown parameters are ignored.
    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()>;

    /// Sets a parameter. Unknown parameters are ignored.
    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            Param::KeyLen => self.common().set_key_len(param),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
