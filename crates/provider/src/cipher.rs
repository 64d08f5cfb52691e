//! What a cipher's context does, in safe Rust: [`crate::ffi`] checks what comes from C and calls this.
//!
//! | module | modes |
//! |---|---|
//! | `blocks` | ECB and CBC, with padding |
//! | `tls_cbc` | CBC of TLS records: padding and MAC taken off in constant time |
//! | `streams` | CTR, OFB and the CFBs |
//! | `xts` | XTS |
//! | `gcm`, `ccm` | authenticated encryption, and its form in TLS 1.2 records |

use std::sync::Arc;

use crate::algorithm::Algorithm;
use crate::ffi::buffers::Buffers;
use crate::ffi::param::{Asked, Given, Parameters};
use crate::instance::Instance;
use crate::reason::{Outcome, Reason};

mod blocks;
mod ccm;
mod gcm;
mod streams;
mod tls_cbc;
mod xts;

pub(crate) use blocks::Blocks;
pub(crate) use ccm::Ccm;
pub(crate) use gcm::Gcm;
pub(crate) use streams::Streams;
pub(crate) use xts::Xts;

/// The context of one message after another under one key, as provider-cipher(7) has it.
///
/// Wherever OpenSSL's documentation leaves something open, it is as in OpenSSL's default provider, so that programs find
/// what they are used to.
pub(crate) trait Cipher: Sized {
    /// Parameters of a context that can be asked for.
    const GETTABLE: Parameters;
    /// Parameters of a context that can be set.
    const SETTABLE: Parameters;

    /// A context without key.
    fn new(instance: &Arc<Instance>, algorithm: &'static Algorithm) -> Self;

    /// Another one in the same state.
    fn duplicate(&self) -> Outcome<Self>;

    /// Begins a message: with another key, another IV, or what was set before.
    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()>;

    /// True once a key is set.
    fn has_key(&self) -> bool;

    /// The direction of the last `init`.
    fn encrypts(&self) -> bool;

    /// The next bytes; returns how many were put out.
    fn update(&mut self, data: Buffers<'_>) -> Outcome<usize>;

    /// Additional data: an update without output.
    fn aad(&mut self, aad: &[u8]) -> Outcome<()> {
        match aad {
            _ if !self.has_key() => Err(Reason::NoKey),
            // Without length a missing output is as good as any.
            [] => Ok(()),
            _ => Err(Reason::NullBuffer),
        }
    }

    /// The length of the message: an update without input and output.
    fn announce(&mut self, len: usize) -> Outcome<()> {
        match len {
            _ if !self.has_key() => Err(Reason::NoKey),
            0 => Ok(()),
            _ => Err(Reason::NullBuffer),
        }
    }

    /// Ends the message; the buffers have no input.
    fn finish(&mut self, output: Buffers<'_>) -> Outcome<usize>;

    /// `EVP_Cipher`: data without buffering or padding.
    fn once(&mut self, data: Buffers<'_>) -> Outcome<usize> {
        self.update(data)
    }

    /// True if there is a key whose place the next one takes, so that it leaves nothing on the stack.
    fn rekeys_in_place(&self) -> bool {
        false
    }

    /// True if lengths are numbers of bits.
    fn counts_bits(&self) -> bool {
        false
    }

    /// Answers a parameter; those it does not know are left alone.
    fn get(&mut self, asked: &mut Asked<'_>) -> Outcome<()>;

    /// Sets a parameter; those it does not know are left alone.
    fn set(&mut self, given: &Given<'_>) -> Outcome<()>;
}
