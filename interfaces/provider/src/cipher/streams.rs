//! Contexts of CTR, OFB, CFB, CFB8 and CFB1. In these stream modes, the output of each update is as long as its input.

use lockstep::hazmat::mode;
use lockstep::hazmat::mode::incremental::{BlockIo, KeyedExecutor, StreamState};
use lockstep::hazmat::work::Pass;

use super::raw::Raw;
use super::{Cipher, Common};
use crate::ahead::KeystreamAhead;
use crate::algorithm::Mode;
use crate::key::PassFn;
use crate::libcrypto::{Buffers, GetParam, Param, SetParam};
use crate::reason::Outcome;
use crate::system::stack::in_own_frame;

/// A context of CTR if `CTR` is true, otherwise of OFB, CFB, CFB8 or CFB1.
pub(crate) struct Streams<const CTR: bool> {
    raw: Raw,
    /// True for CFB1 if the lengths of updates are numbers of bits.
    pub(super) counts_bits: bool,
    /// The length in bits of the update that has begun, if bits are counted; otherwise 0.
    bits: usize,
    /// The chaining state between updates.
    state: StreamState,
    /// The keystream of CTR that is computed ahead. `None` if no keystream is computed ahead, and before the first update.
    pub(crate) ahead: Option<KeystreamAhead>,
}

impl<const CTR: bool> Cipher for Streams<CTR> {
    #[inline(always)]
    fn new(common: Common) -> Self {
        let state = StreamState::new(Self::pass(&common), [0; 16]);
        Streams { raw: Raw::new(common), counts_bits: false, bits: 0, state, ahead: None }
    }

    fn common(&self) -> &Common {
        &self.raw.common
    }

    fn duplicate(&self) -> Outcome<impl FnOnce() -> Self> {
        // Keystream computed ahead is not shared: the copy computes its own keystream when needed.
        Ok(|| Streams { raw: self.raw.clone(), state: self.state.clone(), ahead: None, ..*self })
    }

    /// The state of OFB is a block of keystream. The state of CFB contains keystream if a new position has ended a partial block.
    fn holds_text(&self) -> bool {
        self.state.used() > 0 || matches!(self.raw.common.algorithm.mode, Mode::Ofb | Mode::Cfb128)
    }

    #[inline(always)]
    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.raw.common.observe_init(key, iv);
        self.raw.common.encrypts = encrypts;
        self.raw.num = 0;
        self.ahead = None;
        self.raw.set_iv(iv)?;
        // Without a new IV, CTR continues with its counter. All other modes restart with the IV that was set last, as in OpenSSL 1.1.1.
        let restarts = iv.is_some() || self.raw.has_iv && !CTR;
        let pass = Self::pass(&self.raw.common);
        self.state.restart(pass, if restarts { self.raw.iv } else { *self.state.state() });
        self.raw.replace_key(key, false)
    }

    #[inline(always)]
    fn update(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let mut key = self.raw.key()?;
        let (len, bits) = (data.len(), self.bits);
        debug_assert!(CTR || !self.counts_bits || len == bits.div_ceil(8), "no `begin_update`");
        let Common { instance, algorithm, .. } = &self.raw.common;
        let span = data.whole()?;
        let state = &mut self.state;
        let outcome = match algorithm.mode {
            _ if CTR => match &instance.keystream_pool {
                None => {
                    // A constant pass lets the compiler remove the code that selects a pass. In a call on one block, this code
                    // would take noticeable time.
                    let mut ctr = PassFn(|_, state, data| key.run(Pass::Ctr, state, data));
                    state.apply(&mut ctr, span)
                }
                Some(keystream_pool) => {
                    let ahead = self.ahead.get_or_insert_with(|| KeystreamAhead::new(Pass::Ctr));
                    let mut executor = PassFn(|pass, state, data| {
                        if data.is_empty() || key.key.is_large(data.len()) {
                            return key.run(pass, state, data);
                        }
                        if let Some(rest) = ahead.apply(keystream_pool, key, state, data) {
                            key.key.run_inline(pass, state, rest);
                        }
                        Ok(())
                    });
                    // Runs in a separate function, so that the code for calls without keystream computed ahead stays short.
                    in_own_frame(|| state.apply(&mut executor, span))
                }
            },
            Mode::Cfb1 if bits % 8 > 0 => {
                let (whole, rest) = span.split_at(bits / 8);
                let pass = Self::pass(&self.raw.common);
                state
                    .apply(&mut { key }, whole)
                    .map(|()| key.key.inline.serial(pass, state.state_mut(), bits % 8, rest))
            }
            _ => state.apply(&mut { key }, span),
        };
        outcome
            .inspect_err(|_| data.zero_output(len))
            .map(|()| if !CTR && self.counts_bits { bits } else { len })
    }

    fn set_message_len(&mut self, len: usize) -> Outcome<()> {
        self.raw.set_message_len(len)
    }

    fn finish(&mut self, _output: Buffers<'_>) -> Outcome<usize> {
        self.raw.key().map(|_| 0)
    }

    #[inline(always)]
    fn begin_update(&mut self, len: usize) -> usize {
        self.bits = if !CTR && self.counts_bits { len } else { 0 };
        if !CTR && self.counts_bits { len.div_ceil(8) } else { len }
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        let is_stored = self.raw.key.is_none() || self.has_no_position();
        match param.name() {
            Param::Num if !is_stored => param.number(self.state.used() as u64),
            _ => self.raw.get(param, self.state.state()),
        }
    }

    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        let is_cfb1 = self.raw.common.algorithm.mode == Mode::Cfb1;
        match param.name() {
            Param::UseBits => self.counts_bits = param.number::<u32>()? != 0 && is_cfb1,
            Param::Num => {
                self.raw.set(param)?;
                self.resume()?;
            }
            _ => self.raw.set(param)?,
        }
        Ok(())
    }
}

impl<const CTR: bool> Streams<CTR> {
    /// The pass of the mode and direction of a context.
    #[inline(always)]
    fn pass(common: &Common) -> Pass {
        let cipher = match common.algorithm.mode {
            _ if CTR => return Pass::Ctr,
            Mode::Ofb => mode::Cipher::Ofb,
            Mode::Cfb128 => mode::Cipher::Cfb128,
            Mode::Cfb8 => mode::Cipher::Cfb8,
            Mode::Cfb1 => mode::Cipher::Cfb1,
            _ => unreachable!("not a stream mode"),
        };
        cipher.pass(common.direction())
    }

    /// Continues at the position `num` in the current block: the first `num` bytes of the block have been used. For OFB and
    /// CFB, the IV contains the keystream for the remaining bytes of this block. For CTR, the IV is the counter of the next
    /// block.
    fn resume(&mut self) -> Outcome<()> {
        self.ahead = None;
        match self.raw.key() {
            Ok(mut key) if !self.has_no_position() => self.state.resume(&mut key, self.raw.num),
            // Without a key there is no keystream yet. Setting a key later starts a message, which resets the position.
            _ => Ok(()),
        }
    }

    /// True for modes whose passes process any number of bytes. Such modes have no position in a block, so setting a position
    /// has no effect.
    fn has_no_position(&self) -> bool {
        matches!(self.raw.common.algorithm.mode, Mode::Cfb8 | Mode::Cfb1)
    }
}
