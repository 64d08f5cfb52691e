//! Fused OCB3 tasks: batches of whole messages.

use lockstep_core::Result;
use lockstep_core::gcm::settle;
use lockstep_core::key::Key;
use lockstep_core::work::{AeadMessage, FusedAead, Status, Tag};

use super::{OcbHash, OcbKey, OcbState};
use crate::inline::SingleStreamKernel;
use crate::passes::{check_host, host, schedule};
use crate::threads;
use crate::wiped::Wiped;

/// Seals the messages that have a tag to write, and opens those that have a tag to compare with. The output of a message with
/// a wrong tag is zeroed before the call returns.
pub(crate) fn run<K: SingleStreamKernel>(
    kernel: K,
    messages: &mut [AeadMessage<'_>],
    threads: usize,
) -> Result<()> {
    messages.iter().try_for_each(check)?;
    threads::spread_messages(messages, threads, &|messages| {
        messages.iter_mut().for_each(|message| run_one(kernel, message));
    });
    Ok(())
}

/// Checks that the data are in host memory and writable, and that all lengths are allowed.
fn check(message: &AeadMessage<'_>) -> Result<()> {
    check_host(&message.data, false)?;
    FusedAead::OcbSeal.check_lengths(message)
}

/// The masks of an AES key. They are the same for all kernels.
fn masks<K: SingleStreamKernel>(kernel: K, key: &Key) -> &OcbKey {
    key.prepared::<Box<OcbKey>>(|key| {
        let mut star = Wiped::<1>::zero();
        kernel.encrypt_block(schedule(kernel, key), &mut star[0]);
        OcbKey::new(&star[0])
    })
}

fn run_one<K: SingleStreamKernel>(kernel: K, message: &mut AeadMessage<'_>) {
    let (schedule, key) = (schedule(kernel, message.key), masks(kernel, message.key));
    let encrypts = matches!(message.tag, Tag::Write(_));
    let mut state = OcbState::start(kernel, schedule, message.nonce, message.tag.len());
    let mut hash = OcbHash::default();
    hash.update(kernel, schedule, key, message.aad);
    let hash = hash.finish(kernel, schedule, key);
    let mut data = host(&mut message.data);
    let whole = data.len() & !15;
    let (blocks, tail) = data.reborrow().into_span().split_at(whole);
    kernel.ocb(schedule, key, &mut state, encrypts, blocks);
    if !tail.is_empty() {
        state.partial(kernel, schedule, key, encrypts, tail);
    }
    let computed = state.tag(kernel, schedule, key, &hash[0]);
    message.status = settle(&mut message.tag, &computed[0]);
    if message.status != Status::Done {
        data.output().fill(0);
    }
}
