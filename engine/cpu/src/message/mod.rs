//! Fused AEADs on a kernel: one file for each, with the state of a message and the processing of batches of messages.

pub(crate) mod gcm;
mod gcm_siv;
mod hash;
pub(crate) mod ocb;

pub(crate) use hash::MessageKey;

use lockstep_core::Result;
use lockstep_core::gcm::settle;
use lockstep_core::key::{Block, Key};
use lockstep_core::work::{AeadMessage, FusedAead, Status};

use crate::host::{check_host, host};
use crate::kernel::Kernel;
use crate::kernel::entry::enter;
use crate::kernel::prepared::{hash_key, schedule};
use crate::threads;

/// Seals the messages that have a tag to write, and opens those that have a tag to compare with. The output of a message with
/// a wrong tag is zeroed before the call returns.
pub(crate) fn run<K: Kernel>(
    kernel: K,
    fused: FusedAead,
    messages: &mut [AeadMessage<'_>],
    threads: usize,
) -> Result<()> {
    use FusedAead::{GcmOpen, GcmSeal, GcmSivOpen, GcmSivSeal, OcbOpen, OcbSeal};
    match fused {
        GcmSeal | GcmOpen => run_all(kernel, GcmSeal, messages, threads, hash_key, gcm::run),
        OcbSeal | OcbOpen => run_all(kernel, OcbSeal, messages, threads, ocb::masks, ocb::run),
        GcmSivSeal | GcmSivOpen => run_all(kernel, GcmSivSeal, messages, threads, schedule, gcm_siv::run),
    }
}

/// Checks all messages, expands their keys with `prepare`, and processes them with `run`. It is compiled for each AEAD.
#[inline(always)]
fn run_all<K: Kernel, T>(
    kernel: K,
    fused: FusedAead,
    messages: &mut [AeadMessage<'_>],
    threads: usize,
    prepare: impl Fn(K, &Key) -> &T,
    run: impl Fn(K, &mut [AeadMessage<'_>]) + Sync,
) -> Result<()> {
    for message in &*messages {
        check_host(&message.data, false)?;
        fused.check_lengths(message)?;
    }
    if messages.len() == 1 {
        run(kernel, messages);
        return Ok(());
    }
    // Keys of several messages are expanded before threads are started, because the threads may leave no memory for it.
    for pair in messages.windows(2).filter(|pair| std::ptr::eq(pair[0].key, pair[1].key)) {
        prepare(kernel, pair[0].key);
    }
    let run = |messages: &mut [AeadMessage<'_>]| run(kernel, messages);
    threads::spread_messages(messages, threads, &run, &|calls| enter(kernel, calls));
    Ok(())
}

/// The nonce of a message whose length has been checked.
#[inline]
fn nonce<'d>(message: &AeadMessage<'d>) -> &'d [u8; 12] {
    message.nonce.try_into().expect("checked")
}

/// Writes or compares the tag; zeroes the output of a message with a wrong tag.
#[inline]
fn finish(message: &mut AeadMessage<'_>, computed: &Block) {
    let status = settle(&mut message.tag, computed);
    set_status(message, status);
}

/// Sets the status; zeroes the output of a message with a wrong tag.
#[inline]
fn set_status(message: &mut AeadMessage<'_>, status: Status) {
    message.status = status;
    if status != Status::Done {
        host(&mut message.data).output().fill(0);
    }
}
