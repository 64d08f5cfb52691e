//! The key of a context: small calls run inline on the caller's thread, large ones through the planner.

use std::sync::{Arc, OnceLock};

use lockstep::aead::{Data, HostData};
use lockstep::hazmat::inline::{Block, InlineKey, Span, advance_tweak};
use lockstep::hazmat::mode::incremental::{KeyedExecutor, MacExecutor};
use lockstep::hazmat::work::{Operation, Pass, Segment, Task, Tweak};
use lockstep::hazmat::{Error, Key};
use zeroize::Zeroizing;

use crate::executor::run_planned;
use crate::reason::{Outcome, Reason};
use crate::resources::Resources;
use crate::system::stack::run_and_wipe;

/// An expanded AES key; wiped on drop.
pub(crate) struct ContextKey {
    resources: Arc<Resources>,
    /// The key for inline use.
    pub(crate) inline: InlineKey,
    bytes: Zeroizing<[u8; 32]>,
    len: usize,
    /// Calls of at least this number of bytes are passed to the planner.
    threshold: usize,
    /// The key for the planner, created for the first large call.
    planned: OnceLock<Key>,
}

impl ContextKey {
    /// Expands a key of 16, 24 or 32 bytes.
    ///
    /// # Errors
    /// [`Reason::KeyLength`], [`Reason::OutOfMemory`], [`Reason::SelfTest`]
    pub(crate) fn new(resources: &Arc<Resources>, key: &[u8]) -> Outcome<ContextKey> {
        if !matches!(key.len(), 16 | 24 | 32) {
            return Err(Reason::KeyLength);
        }
        let inline = InlineKey::new(resources.kernel()?, key).ok_or(Reason::OutOfMemory)?;
        let mut bytes = Zeroizing::new([0; 32]);
        bytes[..key.len()].copy_from_slice(key);
        let (resources, threshold) = (Arc::clone(resources), resources.threshold);
        Ok(ContextKey { resources, inline, bytes, len: key.len(), threshold, planned: OnceLock::new() })
    }

    /// Sets the threshold for contexts of OpenSSL's random generator.
    pub(crate) fn use_for_generator(&mut self) {
        self.threshold = self.resources.threshold_of_generator();
    }

    /// True if a call with this number of bytes is passed to the planner.
    #[inline(always)]
    pub(crate) fn is_large(&self, bytes: usize) -> bool {
        bytes >= self.threshold
    }

    /// Returns a copy.
    ///
    /// # Errors
    /// [`Reason::OutOfMemory`]
    pub(crate) fn duplicate(&self) -> Outcome<ContextKey> {
        Ok(ContextKey {
            resources: Arc::clone(&self.resources),
            inline: self.inline.duplicate().ok_or(Reason::OutOfMemory)?,
            bytes: self.bytes.clone(),
            len: self.len,
            threshold: self.threshold,
            planned: OnceLock::new(),
        })
    }

    /// Runs a pass over whole blocks (for CTR over any number of bytes), inline or through the planner. `state` is the
    /// IV or counter, and is updated for the next call.
    ///
    /// # Errors
    /// [`Reason::Device`]
    #[inline(always)]
    pub(crate) fn run(&self, pass: Pass, state: &mut Block, data: Span<'_>) -> Outcome<()> {
        if self.is_large(data.len()) {
            return large_call(move || {
                let mut data = data.into_host();
                if !self.planned(pass, state, None, &mut data)? {
                    self.run_inline(pass, state, data.into_span());
                }
                Ok(())
            });
        }
        self.run_inline(pass, state, data);
        Ok(())
    }

    /// Runs a pass on this thread, whatever the size of the data.
    #[inline(always)]
    pub(crate) fn run_inline(&self, pass: Pass, state: &mut Block, data: Span<'_>) {
        let Ok(()) = Inline(&self.inline).run(pass, state, data) else {
            unreachable!("inline kernels do not fail")
        };
    }

    /// Runs XTS on whole blocks from the start of a data unit. `iv` is the number of the data unit, `tweak_key` the
    /// second half of the key. If `after` is given, it is set to the tweak of the block that follows these blocks.
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
        if self.is_large(data.len()) {
            return large_call(move || {
                let blocks = data.len() as u64 / 16;
                let pass = if encrypts { Pass::XtsEncrypt } else { Pass::XtsDecrypt };
                let tweak = Tweak { key: tweak_key.for_planner(), position: 0 };
                let mut data = data.into_host();
                if !self.planned(pass, &mut iv.clone(), Some(tweak), &mut data)? {
                    self.inline.xts_unit(&tweak_key.inline, encrypts, iv, after, data.into_span());
                } else if let Some(after) = after {
                    *after = *iv;
                    tweak_key.inline.encrypt_block(after);
                    advance_tweak(after, blocks);
                }
                Ok(())
            });
        }
        self.inline.xts_unit(&tweak_key.inline, encrypts, iv, after, data);
        Ok(())
    }

    fn for_planner(&self) -> &Key {
        let new = || Key::new(&self.bytes[..self.len]).expect("its length was checked");
        run_and_wipe(self.planned.get().is_none(), || self.planned.get_or_init(new))
    }

    /// Runs a pass through the planner. For XTS, `tweak` contains the position in the data unit. Returns false if the pass was
    /// not done. Input and state are then unchanged, and the caller runs the pass inline.
    fn planned(
        &self,
        pass: Pass,
        state: &mut Block,
        tweak: Option<Tweak<'_>>,
        data: &mut HostData<'_>,
    ) -> Outcome<bool> {
        let before = *state;
        let done = run_planned(&self.resources, data, |planner, data| {
            let key = self.for_planner();
            let plan = match planner.plan(Operation::Pass(pass), key.size(), data.len(), None) {
                Ok(plan) => plan,
                // A kernel that is chosen by name may lack a pass.
                Err(Error::Unsupported { kernel, operation }) => {
                    self.resources.state_work_of_cpu(format_args!("{kernel} cannot do {operation}"));
                    return Ok(false);
                }
                Err(error) => {
                    self.resources.trace_failure(&error.to_string());
                    self.resources.state_work_of_cpu(error);
                    return Ok(false);
                }
            };
            let mut segment = Segment { key, tweak, state, data: Data::Host(data) };
            plan.run(Task::Pass(pass, std::slice::from_mut(&mut segment))).map(|()| true)
        });
        if !matches!(done, Ok(true)) {
            *state = before;
        }
        done.map_err(|_| Reason::Device)
    }
}

/// Runs a large call. A separate function, so that the code for small calls stays short.
#[cold]
#[inline(never)]
fn large_call<T>(call: impl FnOnce() -> T) -> T {
    call()
}

impl KeyedExecutor for &ContextKey {
    type Error = Reason;

    #[inline(always)]
    fn run(&mut self, pass: Pass, state: &mut Block, data: Span<'_>) -> Outcome<()> {
        ContextKey::run(self, pass, state, data)
    }
}

/// Runs passes by a function.
pub(crate) struct PassFn<F: FnMut(Pass, &mut Block, Span<'_>) -> Outcome<()>>(pub(crate) F);

impl<F: FnMut(Pass, &mut Block, Span<'_>) -> Outcome<()>> KeyedExecutor for PassFn<F> {
    type Error = Reason;

    #[inline(always)]
    fn run(&mut self, pass: Pass, state: &mut Block, data: Span<'_>) -> Outcome<()> {
        (self.0)(pass, state, data)
    }
}

/// A key whose passes run on the caller's thread, whatever the size of the data.
pub(crate) struct Inline<'k>(pub(crate) &'k InlineKey);

impl KeyedExecutor for Inline<'_> {
    type Error = Reason;

    #[inline(always)]
    fn run(&mut self, pass: Pass, state: &mut Block, data: Span<'_>) -> Outcome<()> {
        let key = self.0;
        match pass {
            Pass::Ctr => key.ctr(state, data),
            Pass::Ctr32 => key.ctr32(state, data),
            Pass::EcbEncrypt => key.ecb_encrypt(data),
            Pass::EcbDecrypt => key.ecb_decrypt(data),
            Pass::CbcEncrypt => key.cbc_encrypt(state, data),
            Pass::CbcDecrypt => key.cbc_decrypt(state, data),
            Pass::Cfb128Encrypt => key.cfb128_encrypt(state, data),
            Pass::Cfb128Decrypt => key.cfb128_decrypt(state, data),
            Pass::Cfb8Encrypt => key.cfb8_encrypt(state, data),
            Pass::Cfb8Decrypt => key.cfb8_decrypt(state, data),
            Pass::Ofb => key.ofb(state, data),
            _ => unreachable!("contexts run no other passes on bytes"),
        }
        Ok(())
    }
}

impl MacExecutor for Inline<'_> {
    fn absorb(&mut self, pass: Pass, state: &mut Block, blocks: &[u8]) -> Outcome<()> {
        match pass {
            Pass::CbcMac => self.0.cbc_mac(state, blocks),
            _ => unreachable!("GCM's hash is inside of its own kernel"),
        }
        Ok(())
    }
}
