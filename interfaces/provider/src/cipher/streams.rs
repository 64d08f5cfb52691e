//! CTR, OFB, CFB, CFB8 and CFB1. In these stream modes, the output of each update is as long as its input.

use std::sync::Arc;

use lockstep::hazmat::inline::{Block, Span};
use lockstep::hazmat::mode::Direction;
use lockstep::hazmat::mode::incremental::{BlockIo, KeyedExecutor, StreamState};
use lockstep::hazmat::work::Pass;

use super::{Cipher, cipher_of};
use crate::ahead::{KeystreamAhead, KeystreamPool};
use crate::algorithm::{Algorithm, Mode};
use crate::instance::Instance;
use crate::key::ContextKey;
use crate::libcrypto::buffers::Buffers;
use crate::libcrypto::param::{GetParam, Parameters, SetParam, list};
use crate::reason::{Outcome, Reason};
use crate::resources::Resources;

/// Gettable parameters of a context without authentication.
pub(super) const GETTABLE: Parameters = list!(KEYLEN IVLEN PADDING NUM IV UPDATED_IV TLS_MAC);

/// Settable parameters of a context without authentication.
pub(super) const SETTABLE: Parameters = list!(PADDING NUM USE_BITS TLS_VERSION TLS_MAC_SIZE);

/// An IV of one block.
pub(super) fn iv_of(iv: &[u8]) -> Outcome<Block> {
    iv.try_into().map_err(|_| Reason::IvLength)
}

/// A context of CTR, OFB, CFB, CFB8 or CFB1.
pub(crate) struct Streams {
    instance: Arc<Instance>,
    algorithm: &'static Algorithm,
    encrypts: bool,
    padding: bool,
    counts_bits: bool,
    key: Option<ContextKey>,
    /// The IV as it was set; `None` if no IV has been set.
    first_iv: Option<Block>,
    /// The parameter `num` for CFB8 and CFB1. These modes have no partial block, so the value is stored only so that it
    /// can be read back.
    num: usize,
    /// The chaining state between updates.
    state: StreamState,
    /// For CTR: keystream computed ahead; `None` if this is switched off.
    pub(crate) ahead: Option<KeystreamAhead>,
}

impl Cipher for Streams {
    const MODES: &'static [Mode] = &[Mode::Ctr, Mode::Ofb, Mode::Cfb128, Mode::Cfb8, Mode::Cfb1];
    const GETTABLE: Parameters = GETTABLE;
    const SETTABLE: Parameters = SETTABLE;

    fn new(instance: &Arc<Instance>, algorithm: &'static Algorithm) -> Self {
        Streams {
            instance: Arc::clone(instance),
            algorithm,
            encrypts: true,
            padding: true,
            counts_bits: false,
            key: None,
            first_iv: None,
            num: 0,
            state: StreamState::new(cipher_of(algorithm.mode), [0; 16]).expect("a stream mode"),
            ahead: None,
        }
    }

    fn duplicate(&self) -> Outcome<Self> {
        let key = self.key.as_ref().map(ContextKey::duplicate).transpose()?;
        let Streams { algorithm, encrypts, padding, counts_bits, first_iv, num, .. } = *self;
        let (instance, state) = (Arc::clone(&self.instance), self.state.clone());
        // Keystream computed ahead is not shared: the copy computes its own keystream when needed.
        let ahead = None;
        Ok(Streams { instance, algorithm, encrypts, padding, counts_bits, key, first_iv, num, state, ahead })
    }

    fn init(&mut self, encrypts: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> Outcome<()> {
        self.encrypts = encrypts;
        self.num = 0;
        self.ahead = None;
        let next = match (iv, self.first_iv) {
            (Some(iv), _) => *self.first_iv.insert(iv_of(iv)?),
            // Without a new IV, CTR continues with its counter. All other modes restart with the IV that was set last,
            // as in OpenSSL 1.1.1.
            (None, Some(first)) if self.algorithm.mode != Mode::Ctr => first,
            (None, _) => *self.state.state(),
        };
        self.state.restart(next);
        ContextKey::replace(&mut self.key, &self.instance.resources, key)
    }

    fn has_key(&self) -> bool {
        self.key.is_some()
    }

    fn encrypts(&self) -> bool {
        self.encrypts
    }

    #[inline(always)]
    fn update(&mut self, mut data: Buffers<'_>) -> Outcome<usize> {
        let Some(key) = &self.key else { return Err(Reason::NoKey) };
        let (len, bits) = (data.len(), data.bits());
        let direction = if self.encrypts { Direction::Encrypt } else { Direction::Decrypt };
        let span = data.whole()?;
        let state = &mut self.state;
        match self.algorithm.mode {
            Mode::Ctr => match &self.instance.keystream_pool {
                None => state.apply(&mut PlainCtr(key), direction, span)?,
                Some(keystream_pool) => {
                    let ahead = self.ahead.get_or_insert_with(|| KeystreamAhead::new(Pass::Ctr));
                    let resources = &self.instance.resources;
                    let mut pooled = PooledCtr { key, keystream_pool, resources, ahead };
                    state.apply(&mut pooled, direction, span)?;
                }
            },
            Mode::Cfb1 => match direction {
                Direction::Encrypt => key.inline().cfb1_encrypt(state.state_mut(), span, bits),
                Direction::Decrypt => key.inline().cfb1_decrypt(state.state_mut(), span, bits),
            },
            _ => state.apply(&mut &*key, direction, span)?,
        }
        Ok(len)
    }

    fn finish(&mut self, _output: Buffers<'_>) -> Outcome<usize> {
        if self.key.is_none() { Err(Reason::NoKey) } else { Ok(0) }
    }

    fn counts_bits(&self) -> bool {
        self.counts_bits
    }

    fn get(&mut self, param: &mut GetParam<'_>) -> Outcome<()> {
        match param.name() {
            b"keylen" => param.number(self.algorithm.key_len as u64),
            b"ivlen" => param.number(16),
            b"padding" => param.number(u64::from(self.padding)),
            b"num" => param.number(self.used() as u64),
            b"iv" => param.octets(self.first_iv.as_ref().unwrap_or(&[0; 16])),
            b"updated-iv" => param.octets(self.state.state()),
            b"tls-mac" => param.octets(&[]),
            _ => Ok(()),
        }
    }

    fn set(&mut self, param: &SetParam<'_>) -> Outcome<()> {
        match param.name() {
            // The value has no effect, as for every stream cipher of OpenSSL. It is stored only so that it can be read
            // back.
            b"padding" => self.padding = param.uint()? != 0,
            b"use-bits" => self.counts_bits = param.uint()? != 0 && self.algorithm.mode == Mode::Cfb1,
            b"num" => {
                let used = param.uint()? as usize;
                if used >= 16 {
                    return Err(Reason::ParameterType);
                }
                self.resume(used)?;
            }
            b"tls-version" => _ = param.uint()?,
            b"tls-mac-size" => _ = param.size()?,
            _ => {}
        }
        Ok(())
    }
}

impl Streams {
    fn used(&self) -> usize {
        if self.key.is_none() || self.has_no_position() { self.num } else { self.state.used() }
    }

    /// Sets the position inside the current block: the first `used` bytes of the block are used. For OFB and CFB, the
    /// IV contains the keystream for the rest of this block. For CTR, the IV is the counter of the next block.
    fn resume(&mut self, used: usize) -> Outcome<()> {
        self.num = used;
        self.ahead = None;
        match &self.key {
            Some(key) if !self.has_no_position() => self.state.resume(&mut &*key, used),
            // Without a key there is no keystream yet. Setting a key later starts a message, which resets the position.
            _ => Ok(()),
        }
    }

    /// True for modes whose passes process any number of bytes. Setting a position has no effect on them.
    fn has_no_position(&self) -> bool {
        matches!(self.algorithm.mode, Mode::Cfb8 | Mode::Cfb1)
    }
}

/// An executor for CTR only. Because the pass is constant, the compiler removes the code that selects a pass. This code
/// would take noticeable time in a call on one block.
struct PlainCtr<'k>(&'k ContextKey);

impl KeyedExecutor for PlainCtr<'_> {
    type Error = Reason;

    #[inline(always)]
    fn run(&mut self, pass: Pass, state: &mut Block, data: Span<'_>) -> Outcome<()> {
        debug_assert_eq!(pass, Pass::Ctr);
        self.0.run(Pass::Ctr, state, data)
    }
}

/// An executor of CTR that uses keystream computed ahead for small updates.
struct PooledCtr<'k> {
    key: &'k ContextKey,
    keystream_pool: &'k KeystreamPool,
    resources: &'k Resources,
    ahead: &'k mut KeystreamAhead,
}

impl KeyedExecutor for PooledCtr<'_> {
    type Error = Reason;

    fn run(&mut self, pass: Pass, state: &mut Block, data: Span<'_>) -> Outcome<()> {
        if data.is_empty() || self.resources.is_large(data.len()) {
            return self.key.run(pass, state, data);
        }
        self.ahead.apply(self.keystream_pool, self.resources, self.key, state, data);
        Ok(())
    }
}
