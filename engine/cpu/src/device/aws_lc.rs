//! Fused GCM by AWS-LC, whose assembly runs CTR and GHASH in one loop. The planner chooses it on processors without AES
//! instructions. Elsewhere it runs only if it is selected by name, for comparison.
//!
//! `aws-lc-sys` is called directly, because `aws-lc-rs` works only in place and allocates a context for every key. That is
//! too slow for a batch of short messages that each have their own key.

use std::ptr::null_mut;

use aws_lc_sys::{
    EVP_AEAD, EVP_AEAD_CTX, EVP_AEAD_CTX_cleanup, EVP_AEAD_CTX_init, EVP_AEAD_CTX_open_gather,
    EVP_AEAD_CTX_seal_scatter, EVP_aead_aes_128_gcm, EVP_aead_aes_192_gcm, EVP_aead_aes_256_gcm,
    OPENSSL_cleanse,
};
use lockstep_core::backend::Cost;
use lockstep_core::work::{AeadMessage, Operation, Status, Tag, Task};
use lockstep_core::{Key, KeySize, Result};

use super::AWS_LC;
use crate::host::host;
use crate::kernel::Kernel;
use crate::kernel::entry::Entry;
use crate::message;
use crate::soft::Soft;

/// The cost of an operation; `None` unless it is GCM.
pub(super) fn cost(operation: Operation, key: KeySize) -> Option<Cost> {
    match operation {
        // With AVX-512, AWS-LC's rate is 22 GB/s, but there the kernel for 512 bits is faster. Without AVX-512, it is the
        // rate stated here (example `fused_gcm`, Zen 5 with a restricted OPENSSL_ia32cap).
        Operation::Fused(fused) if fused.is_gcm() => Some(Cost::new(200.0, 57.0 / key.rounds() as f64)),
        _ => None,
    }
}

/// Runs a task on at most this number of threads.
pub(super) fn run(task: &mut Task<'_, '_>, threads: usize) -> Result<()> {
    // The drop of `_entry` clears the registers of the widest portable kernel; AWS-LC uses no others.
    let kernel = Soft::detect().expect("the portable kernel runs everywhere");
    let _entry = Entry::of(kernel);
    match task {
        Task::Fused(fused, messages) if fused.is_gcm() => {
            if let [message] = &**messages {
                cached(kernel, message.key);
            }
            message::run_all(kernel, *fused, messages, threads, cached, run_batch)
        }
        _ => Err(task.operation().unsupported_by(AWS_LC)),
    }
}

/// The context of a key for tags of 16 bytes, which is cached.
fn cached(_: Soft, key: &Key) -> &Context {
    key.prepared(|key| Context::new(key, 16))
}

/// Processes messages one after another. The context of a key that several messages use has been cached by the caller.
fn run_batch(_: Soft, messages: &mut [AeadMessage<'_>]) {
    // The other keys share this context, because allocating and zeroing a context takes longer than expanding a key.
    let mut once = None;
    for message in messages {
        let context = match message.key.already_prepared::<Context>() {
            Some(context) => context,
            None => {
                let context = once.get_or_insert_with(Context::without_key);
                context.set_key(message.key, 16);
                context
            }
        };
        run_one(context, message);
    }
}

fn run_one(context: &Context, message: &mut AeadMessage<'_>) {
    let span = host(&mut message.data).into_span();
    let (input, output, len) = (span.src(), span.dst(), span.len());
    let done = match &mut message.tag {
        Tag::Write(tag) => {
            let mut full = [0; 16];
            let mut full_len = 0;
            // SAFETY: input and output are valid for len bytes, and they are equal or disjoint, as those of every span. The
            // other slices are valid for their lengths. The context is initialised.
            let done = unsafe {
                EVP_AEAD_CTX_seal_scatter(
                    &*context.0,
                    output,
                    full.as_mut_ptr(),
                    &mut full_len,
                    full.len(),
                    message.nonce.as_ptr(),
                    message.nonce.len(),
                    input,
                    len,
                    std::ptr::null(),
                    0,
                    message.aad.as_ptr(),
                    message.aad.len(),
                )
            };
            tag.copy_from_slice(&full[..tag.len()]);
            done == 1 && full_len == 16
        }
        Tag::Expect(tag) => {
            let short;
            let context = if tag.len() == 16 {
                context
            } else {
                // A context accepts tags of one length only.
                short = Context::new(message.key, tag.len());
                &short
            };
            // SAFETY: as for sealing above; the tag is only read.
            let done = unsafe {
                EVP_AEAD_CTX_open_gather(
                    &*context.0,
                    output,
                    message.nonce.as_ptr(),
                    message.nonce.len(),
                    input,
                    len,
                    tag.as_ptr(),
                    tag.len(),
                    message.aad.as_ptr(),
                    message.aad.len(),
                )
            };
            done == 1
        }
    };
    if done {
        message.status = Status::Done;
        return;
    }
    // No partial result may remain. Sealing fails only on lengths that `lockstep-core` refuses; this is not an authentication
    // failure. The message stays pending, and the caller reports an error for it.
    host(&mut message.data).output().fill(0);
    message.status = match &mut message.tag {
        Tag::Write(tag) => {
            tag.fill(0);
            Status::Pending
        }
        Tag::Expect(_) => Status::AuthenticationFailed,
    };
}

/// An expanded key and its hash table in the format of AWS-LC.
///
/// A context must not move: AWS-LC aligns the AES-GCM state within the context, so the position of the state depends on the
/// address of the context.
struct Context(Box<EVP_AEAD_CTX>);

// SAFETY: sealing and opening take a pointer to a constant context and are thread-safe (aws-lc, aead.h).
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    fn new(key: &Key, tag_len: usize) -> Self {
        let mut context = Context::without_key();
        context.set_key(key, tag_len);
        context
    }

    fn without_key() -> Self {
        // SAFETY: an EVP_AEAD_CTX is plain data; all zeros is the documented state before init.
        Context(Box::new(unsafe { std::mem::zeroed() }))
    }

    fn set_key(&mut self, key: &Key, tag_len: usize) {
        let bytes = key.bytes();
        // SAFETY: the three functions return pointers to constants. Init overwrites the whole context, which owns no memory,
        // since the state of AES-GCM is part of the context. The key has the length of the cipher.
        let done = unsafe {
            let aead: *const EVP_AEAD = match key.size() {
                KeySize::Aes128 => EVP_aead_aes_128_gcm(),
                KeySize::Aes192 => EVP_aead_aes_192_gcm(),
                KeySize::Aes256 => EVP_aead_aes_256_gcm(),
            };
            EVP_AEAD_CTX_init(&mut *self.0, aead, bytes.as_ptr(), bytes.len(), tag_len, null_mut())
        };
        assert_eq!(done, 1, "AWS-LC takes every AES key and tag length that core lets through");
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let context: *mut EVP_AEAD_CTX = &mut *self.0;
        // SAFETY: the context is not used afterwards. Cleanup accepts a zeroed or an initialised context. A context is plain
        // data, so its bytes may be overwritten. AWS-LC's cleanup does not zero the key. OPENSSL_cleanse writes words,
        // whereas `zeroize` would write single bytes.
        unsafe {
            EVP_AEAD_CTX_cleanup(context);
            OPENSSL_cleanse(context.cast(), size_of::<EVP_AEAD_CTX>());
        }
    }
}
