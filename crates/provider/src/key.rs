//! A key in a context: small pieces run inline on the caller's thread, large ones through the planner.

use std::sync::{Arc, OnceLock};

use lockstep::hazmat::data::{Data, HostData};
use lockstep::hazmat::inline::{Block, InlineKey, Span};
use lockstep::hazmat::work::{Operation, Pass, Segment, Task, Tweak};
use lockstep::hazmat::{Error, Key};
use zeroize::{Zeroize, Zeroizing};

use crate::instance::Instance;
use crate::reason::{Outcome, Reason};
use crate::settings::Verify;
use crate::trace::Way;
use crate::verify::Witness;

/// An AES key, expanded; wiped on drop.
pub(crate) struct ContextKey {
    instance: Arc<Instance>,
    inline: InlineKey,
    bytes: Zeroizing<[u8; 32]>,
    len: usize,
    /// The same key for the planner, made when the first large piece comes.
    planned: OnceLock<Key>,
}

impl ContextKey {
    /// Expands a key of 16, 24 or 32 bytes.
    ///
    /// # Errors
    /// [`Reason::KeyLength`], [`Reason::OutOfMemory`], [`Reason::SelfTest`]
    pub(crate) fn new(instance: &Arc<Instance>, key: &[u8]) -> Outcome<ContextKey> {
        if !matches!(key.len(), 16 | 24 | 32) {
            return Err(Reason::KeyLength);
        }
        let inline = InlineKey::new(instance.kernel()?, key).ok_or(Reason::OutOfMemory)?;
        let mut bytes = Zeroizing::new([0; 32]);
        bytes[..key.len()].copy_from_slice(key);
        let instance = Arc::clone(instance);
        Ok(ContextKey { instance, inline, bytes, len: key.len(), planned: OnceLock::new() })
    }

    /// Another one of the same key.
    ///
    /// # Errors
    /// [`Reason::OutOfMemory`]
    pub(crate) fn duplicate(&self) -> Outcome<ContextKey> {
        Ok(ContextKey {
            instance: Arc::clone(&self.instance),
            inline: self.inline.duplicate().ok_or(Reason::OutOfMemory)?,
            bytes: self.bytes.clone(),
            len: self.len,
            planned: OnceLock::new(),
        })
    }

    /// The key for pieces that are always small.
    pub(crate) fn inline(&self) -> &InlineKey {
        &self.inline
    }

    /// Runs a pass over whole blocks (over any number of bytes for CTR), inline or planned. `register` is the IV or
    /// counter and is left as the next piece needs it.
    ///
    /// # Errors
    /// [`Reason::Device`]
    #[inline(always)]
    pub(crate) fn run(&self, pass: Pass, register: &mut Block, data: Span<'_>) -> Outcome<()> {
        if self.instance.is_large(data.len()) {
            return self.run_planned(pass, register, data);
        }
        self.run_inline(pass, register, data);
        Ok(())
    }

    #[inline(always)]
    fn run_inline(&self, pass: Pass, register: &mut Block, data: Span<'_>) {
        let key = &self.inline;
        match pass {
            Pass::Ctr => key.ctr(register, data),
            Pass::EcbEncrypt => key.ecb_encrypt(data),
            Pass::EcbDecrypt => key.ecb_decrypt(data),
            Pass::CbcEncrypt => key.cbc_encrypt(register, data),
            Pass::CbcDecrypt => key.cbc_decrypt(register, data),
            Pass::Cfb128Encrypt => key.cfb128_encrypt(register, data),
            Pass::Cfb128Decrypt => key.cfb128_decrypt(register, data),
            Pass::Cfb8Encrypt => key.cfb8_encrypt(register, data),
            Pass::Cfb8Decrypt => key.cfb8_decrypt(register, data),
            Pass::Ofb => key.ofb(register, data),
            _ => unreachable!("contexts run no other passes on bytes"),
        }
    }

    #[cold]
    fn run_planned(&self, pass: Pass, register: &mut Block, data: Span<'_>) -> Outcome<()> {
        let before = *register;
        let mut data = data.into_host();
        let outcome = self.planned(pass, register, None, &mut data);
        match data {
            // The input is still there: the processor does what the device did not.
            HostData::Copy { from, to, .. } if outcome.is_err() => {
                *register = before;
                self.run_inline(pass, register, Span::copy(from, to));
                Ok(())
            }
            _ => outcome,
        }
    }

    /// XTS of the whole blocks of a data unit from its start. `iv` is its number, `tweak_key` the other half of the key.
    /// Leaves in `tweak` the tweak of the block after them.
    ///
    /// # Errors
    /// [`Reason::Device`]
    pub(crate) fn xts(
        &self,
        encrypts: bool,
        tweak_key: &ContextKey,
        iv: &Block,
        data: Span<'_>,
    ) -> Outcome<Block> {
        let mut tweak = *iv;
        tweak_key.inline.encrypt_block(&mut tweak);
        if self.instance.is_large(data.len()) {
            let blocks = data.len() as u64 / 16;
            let pass = if encrypts { Pass::XtsEncrypt } else { Pass::XtsDecrypt };
            let place = Tweak { key: tweak_key.for_planner(), position: 0 };
            let mut data = data.into_host();
            let outcome = self.planned(pass, &mut iv.clone(), Some((place, tweak)), &mut data);
            match data {
                HostData::Copy { from, to, .. } if outcome.is_err() => {
                    return self.xts_inline(encrypts, tweak, Span::copy(from, to));
                }
                _ => outcome?,
            }
            lockstep::hazmat::inline::advance_tweak(&mut tweak, blocks);
            return Ok(tweak);
        }
        self.xts_inline(encrypts, tweak, data)
    }

    #[inline(always)]
    fn xts_inline(&self, encrypts: bool, mut tweak: Block, data: Span<'_>) -> Outcome<Block> {
        if encrypts {
            self.inline.xts_encrypt(&mut tweak, data);
        } else {
            self.inline.xts_decrypt(&mut tweak, data);
        }
        Ok(tweak)
    }

    fn for_planner(&self) -> &Key {
        self.planned.get_or_init(|| Key::new(&self.bytes[..self.len]).expect("its length was checked"))
    }

    /// A pass by the device that the planner chooses, verified. For XTS also the place in the data unit and the encrypted
    /// tweak there.
    fn planned(
        &self,
        pass: Pass,
        register: &mut Block,
        tweak: Option<(Tweak<'_>, Block)>,
        data: &mut HostData<'_>,
    ) -> Outcome<()> {
        let planner = self.instance.engine()?.planner();
        let key = self.for_planner();
        if let Some(trace) = &self.instance.trace {
            trace.count_way(Way::Planned, data.len());
        }
        let done = planner.plan(Operation::Pass(pass), key.size(), data.len(), None).and_then(|plan| {
            let verify = match self.instance.verify() {
                // What this processor's kernels make is what it would be compared with.
                Verify::Sample if plan.device.id().backend == "cpu" => Verify::Off,
                _ if !Witness::can_see(pass) => Verify::Off,
                verify => verify,
            };
            let first = tweak.as_ref().map_or(*register, |(_, first)| *first);
            let tweak = tweak.map(|(place, _)| place);
            // Any address will do to choose by: which blocks are looked at need not be secret, only not always the same.
            let seed = std::ptr::from_ref(register) as usize / 16 + data.len() / 16;
            let witness = Witness::keep(verify, pass, &first, data.input(), seed);
            let mut segment = Segment { key, tweak, register, data: Data::Host(data.reborrow()) };
            plan.run(Task::Pass(pass, std::slice::from_mut(&mut segment)))?;
            if witness.agrees(&self.inline, data.output()) {
                return Ok(());
            }
            data.output().zeroize();
            Err(Error::DeviceFailed { device: plan.device.id(), reason: "wrong result".into() })
        });
        done.map_err(|error| {
            self.instance.core.raise(Reason::Device, Some(&error.to_string()));
            Reason::Device
        })
    }
}
