//! Keys of contexts. Small calls run inline on the caller's thread, and large calls run through the planner.

use std::sync::{Arc, OnceLock};

use lockstep::aead::{Data, HostData};
use lockstep::hazmat::inline::{Block, InlineKey, Span, advance_tweak};
use lockstep::hazmat::mode::incremental::{KeyedExecutor, MacExecutor};
use lockstep::hazmat::work::{Operation, Pass, Segment, Task, Tweak};
use lockstep::hazmat::{Error, Key};

use crate::executor::run_planned;
use crate::reason::{Outcome, Reason};
use crate::resources::Resources;
use crate::system::stack::{in_own_frame, run_and_wipe};

/// The key of a context, expanded for inline use. Its bytes and round keys are on the heap, where the copies of the context share them.
pub(crate) struct ContextKey {
    pub(crate) inline: InlineKey,
    /// Calls of at least this number of bytes are passed to the planner.
    threshold: usize,
    /// The form of the key that the planner takes, created for the first large call.
    key: OnceLock<Key>,
}

impl ContextKey {
    /// Expands a key of 16, 24 or 32 bytes. If `decrypts` is false, the key does not decrypt by ECB, CBC or XTS.
    ///
    /// # Errors
    /// [`Reason::OutOfMemory`], [`Reason::SelfTest`]
    pub(crate) fn new(resources: &Resources, key: &[u8], decrypts: bool) -> Outcome<ContextKey> {
        let inline = InlineKey::for_directions(resources.kernel()?, key, decrypts);
        let inline = inline.ok_or(Reason::OutOfMemory)?;
        Ok(ContextKey { inline, threshold: resources.threshold, key: OnceLock::new() })
    }

    /// Sets the key of a context. If the context already has a key, which must have the same length, its memory is reused if
    /// possible.
    ///
    /// # Errors
    /// The errors of [`ContextKey::new`].
    #[inline(always)]
    pub(crate) fn replace(
        place: &mut Option<ContextKey>,
        resources: &Resources,
        key: &[u8],
        decrypts: bool,
    ) -> Outcome<()> {
        if !place.as_mut().is_some_and(|old| old.set(key, decrypts)) {
            *place = None;
            *place = Some(ContextKey::new(resources, key, decrypts)?);
        }
        Ok(())
    }

    /// Replaces the key by another key of the same length. Returns false if memory cannot be allocated.
    #[inline(always)]
    pub(crate) fn set(&mut self, key: &[u8], decrypts: bool) -> bool {
        // An assignment would call a destructor even if there is no key.
        self.key.take();
        self.inline.set(key, decrypts)
    }

    /// Makes all calls run inline. Used for contexts of OpenSSL's random generator, because a slow device would make the
    /// generator slow.
    pub(crate) fn use_for_generator(&mut self) {
        self.threshold = usize::MAX;
    }

    /// True if a call with this number of bytes is passed to the planner.
    #[inline(always)]
    pub(crate) fn is_large(&self, bytes: usize) -> bool {
        bytes >= self.threshold
    }

    /// Returns a runner with this key and the resources of its context.
    #[inline(always)]
    pub(crate) fn with<'k>(&'k self, resources: &'k Arc<Resources>) -> Runner<'k> {
        Runner { key: self, resources }
    }

    /// A copy for encryption that shares no memory with this key. `None` if memory cannot be allocated.
    pub(crate) fn separate(&self) -> Option<ContextKey> {
        let inline = InlineKey::for_directions(self.inline.kernel(), self.inline.bytes(), false)?;
        Some(ContextKey { inline, threshold: self.threshold, key: OnceLock::new() })
    }

    fn key(&self) -> &Key {
        let new = || Key::new(self.inline.bytes()).expect("an AES key");
        run_and_wipe(self.key.get().is_none(), || self.key.get_or_init(new))
    }

    /// Runs a pass on this thread, whatever the size of the data.
    #[inline(always)]
    pub(crate) fn run_inline(&self, pass: Pass, state: &mut Block, data: Span<'_>) {
        let key = &self.inline;
        match pass {
            Pass::Ctr => key.ctr(state, data),
            Pass::Ctr32 => key.ctr32(state, data),
            Pass::EcbEncrypt => key.ecb_encrypt(data),
            Pass::EcbDecrypt => key.ecb_decrypt(data),
            Pass::CbcEncrypt => key.cbc_encrypt(state, data),
            Pass::CbcDecrypt => key.cbc_decrypt(state, data),
            Pass::Cfb128Decrypt => key.cfb128_decrypt(state, data),
            _ => key.serial(pass, state, 8 * data.len(), data),
        }
    }
}

/// The clone does not contain the planner's form of the key; its first large call creates this form again.
impl Clone for ContextKey {
    #[inline(always)]
    fn clone(&self) -> ContextKey {
        ContextKey { inline: self.inline.clone(), threshold: self.threshold, key: OnceLock::new() }
    }
}

/// Runs passes with a key, inline or through the planner.
#[derive(Clone, Copy)]
pub(crate) struct Runner<'k> {
    pub(crate) key: &'k ContextKey,
    pub(crate) resources: &'k Arc<Resources>,
}

impl Runner<'_> {
    /// Runs a pass through the planner. For XTS, `tweak` contains the position in the data unit. If the pass was not done,
    /// returns the data: data and state are unchanged, and the caller must run the pass inline. If the pass was done, the trace
    /// counts `counted` bytes.
    ///
    /// # Errors
    /// [`Reason::Device`], after which the output is zeroed.
    #[cold]
    #[inline(never)]
    pub(crate) fn run_by_planner<'d>(
        &self,
        pass: Pass,
        state: &mut Block,
        tweak: Option<Tweak<'_>>,
        mut data: HostData<'d>,
        counted: usize,
    ) -> Outcome<Option<HostData<'d>>> {
        let before = *state;
        let done = run_planned(self.resources, &mut data, |planner, data| {
            let key = self.key.key();
            let plan = match planner.plan(Operation::Pass(pass), key.size(), data.len(), None) {
                Ok(plan) => plan,
                // Some devices and kernels do not implement all passes.
                Err(Error::Unsupported { kernel, operation }) => {
                    self.resources.state_work_of_cpu(format_args!("{kernel} cannot do {operation}"));
                    return Ok(false);
                }
                Err(error) => {
                    self.resources.state_work_of_cpu(error);
                    return Ok(false);
                }
            };
            let mut segment = Segment { key, tweak, state, data: Data::Host(data) };
            plan.run(Task::Pass(pass, std::slice::from_mut(&mut segment))).map(|()| true)
        });
        if let Ok(true) = done {
            self.resources.count_planned(counted);
            return Ok(None);
        }
        *state = before;
        done.map(|_| Some(data)).map_err(|_| Reason::Device)
    }

    /// Runs a pass through the planner in a callback that cannot return an error. An error is stored in `outcome`. Returns the
    /// data if the pass was not done.
    pub(crate) fn run_in_callback<'d>(
        &self,
        pass: Pass,
        state: &mut Block,
        data: Span<'d>,
        outcome: &mut Outcome<()>,
    ) -> Option<Span<'d>> {
        let counted = data.len();
        let rest = self.run_by_planner(pass, state, None, data.into_host(), counted);
        rest.unwrap_or_else(|reason| {
            *outcome = Err(reason);
            None
        })
        .map(HostData::into_span)
    }

    /// Runs XTS on whole blocks from the start of a data unit. `iv` is the number of the data unit, and `tweak_key` is the
    /// second half of the key. If `after` is given, the tweak of the block that follows these blocks is stored there.
    ///
    /// # Errors
    /// [`Reason::Device`]
    #[inline(always)]
    pub(crate) fn xts(
        &self,
        encrypts: bool,
        tweak_key: &ContextKey,
        iv: &Block,
        after: Option<&mut Block>,
        data: Span<'_>,
    ) -> Outcome<()> {
        if self.key.is_large(data.len()) {
            // A separate function, so that the code for small calls stays short.
            return in_own_frame(move || {
                let blocks = data.len() as u64 / 16;
                let pass = if encrypts { Pass::XtsEncrypt } else { Pass::XtsDecrypt };
                let tweak = Tweak { key: tweak_key.key(), position: 0 };
                let (data, counted) = (data.into_host(), 16 * blocks as usize);
                let rest = self.run_by_planner(pass, &mut iv.clone(), Some(tweak), data, counted)?;
                if let Some(data) = rest {
                    self.key.inline.xts_unit(&tweak_key.inline, encrypts, iv, after, data.into_span());
                } else if let Some(after) = after {
                    *after = *iv;
                    tweak_key.inline.encrypt_block(after);
                    advance_tweak(after, blocks);
                }
                Ok(())
            });
        }
        self.key.inline.xts_unit(&tweak_key.inline, encrypts, iv, after, data);
        Ok(())
    }
}

impl KeyedExecutor for Runner<'_> {
    type Error = Reason;

    /// Runs a pass, inline or through the planner. The data are whole blocks, except for passes that accept any number of
    /// bytes. `state` is the IV or the counter, and is updated for the next call.
    ///
    /// # Errors
    /// [`Reason::Device`]
    #[inline(always)]
    fn run(&mut self, pass: Pass, state: &mut Block, data: Span<'_>) -> Outcome<()> {
        if self.key.is_large(data.len()) {
            return in_own_frame(|| {
                let counted = data.len();
                if let Some(data) = self.run_by_planner(pass, state, None, data.into_host(), counted)? {
                    self.key.run_inline(pass, state, data.into_span());
                }
                Ok(())
            });
        }
        self.key.run_inline(pass, state, data);
        Ok(())
    }
}

/// Runs passes by calling a function.
pub(crate) struct PassFn<F: FnMut(Pass, &mut Block, Span<'_>) -> Outcome<()>>(pub(crate) F);

impl<F: FnMut(Pass, &mut Block, Span<'_>) -> Outcome<()>> KeyedExecutor for PassFn<F> {
    type Error = Reason;

    #[inline(always)]
    fn run(&mut self, pass: Pass, state: &mut Block, data: Span<'_>) -> Outcome<()> {
        (self.0)(pass, state, data)
    }
}

impl MacExecutor for Runner<'_> {
    fn absorb(&mut self, pass: Pass, state: &mut Block, blocks: &[u8]) -> Outcome<()> {
        assert!(pass == Pass::CbcMac, "the hash of GCM is inside of its own kernel");
        // These bytes are not counted here, because CTR processes the same bytes and counts them.
        if !self.key.is_large(blocks.len())
            || self.run_by_planner(pass, state, None, HostData::ReadOnly(blocks), 0)?.is_some()
        {
            self.key.inline.cbc_mac(state, blocks);
        }
        Ok(())
    }

    #[inline(always)]
    fn ccm(&mut self, encrypts: bool, mac: &mut Block, first: &Block, data: Span<'_>) -> bool {
        let is_small = !self.key.is_large(data.len());
        if is_small {
            self.key.inline.ccm(encrypts, mac, first, data);
        }
        is_small
    }
}
