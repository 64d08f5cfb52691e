//! Lockstep as a module of WebAssembly: the functions that the JavaScript in `js` calls. The JavaScript reads streams and files, and calls
//! WebCrypto.
//!
//! | module | content |
//! |---|---|
//! | `aead` | the authenticated modes, for one message or a batch |
//! | `message` | the chunks of encrypted files |
//! | `wrapping` | keys: key files, and envelopes with age recipients or a passphrase |
//! | `age` | the format of the wrapped keys |
//! | `errors` | errors with codes |
//!
//! All AES runs on the calling thread, by the portable kernel with registers of SIMD128.
//!
//! Keys, passphrases and identities that are arguments are wiped here, and so is plaintext that was decrypted. Plaintext that is an argument
//! stays in freed memory of the module until other data overwrite it.

mod aead;
#[cfg(feature = "files")]
mod age;
mod errors;
#[cfg(feature = "files")]
mod message;
#[cfg(feature = "files")]
mod wrapping;

use lockstep::hazmat::inline::{InlineKernel, is_proven};
use wasm_bindgen::JsValue;

/// The kernel of all calls. It has passed its self-test.
fn kernel() -> Result<InlineKernel, JsValue> {
    let kernel = InlineKernel::best();
    if is_proven(kernel) {
        return Ok(kernel);
    }
    Err(errors::error(
        "self-test",
        "this browser computes AES wrongly: nothing was done; update it, or use another",
    ))
}

/// A JavaScript array with a copy of these bytes of the module's memory.
fn copy(bytes: &[u8]) -> js_sys::Uint8Array {
    js_sys::Uint8Array::from(bytes)
}
