//! A key in a context: small pieces run inline on the caller's thread, large ones through the planner.

use std::sync::{Arc, OnceLock};

use lockstep::hazmat::Key;
use lockstep::hazmat::data::{Data, HostData};
use lockstep::hazmat::inline::{Block, InlineKey, Span, advance_tweak};
use lockstep::hazmat::work::{Operation, Pass, Segment, Task, Tweak};
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

    /// A pass on this thread whatever its size.
    #[inline(always)]
    pub(crate) fn run_inline(&self, pass: Pass, register: &mut Block, data: Span<'_>) {
        let key = &self.inline;
        match pass {
            Pass::Ctr => key.ctr(register, data),
            Pass::Ctr32 => key.ctr32(register, data),
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
        let mut data = data.into_host();
        if !self.planned(pass, register, None, &mut data)? {
            self.run_inline(pass, register, span(data));
        }
        Ok(())
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
            if !self.planned(pass, &mut iv.clone(), Some((place, tweak)), &mut data)? {
                return Ok(self.xts_inline(encrypts, tweak, span(data)));
            }
            advance_tweak(&mut tweak, blocks);
            return Ok(tweak);
        }
        Ok(self.xts_inline(encrypts, tweak, data))
    }

    #[inline(always)]
    fn xts_inline(&self, encrypts: bool, mut tweak: Block, data: Span<'_>) -> Block {
        if encrypts {
            self.inline.xts_encrypt(&mut tweak, data);
        } else {
            self.inline.xts_decrypt(&mut tweak, data);
        }
        tweak
    }

    fn for_planner(&self) -> &Key {
        self.planned.get_or_init(|| Key::new(&self.bytes[..self.len]).expect("its length was checked"))
    }

    /// A pass by the device that the planner chooses, verified. For XTS also the place in the data unit and the encrypted
    /// tweak there. False if nobody did it and the input is still there, with the register as it was: the caller's kernel
    /// does it then.
    fn planned(
        &self,
        pass: Pass,
        register: &mut Block,
        tweak: Option<(Tweak<'_>, Block)>,
        data: &mut HostData<'_>,
    ) -> Outcome<bool> {
        let planner = self.instance.engine()?.planner();
        let key = self.for_planner();
        let Ok(plan) = planner.plan(Operation::Pass(pass), key.size(), data.len(), None) else {
            // A kernel that was asked for by name may not have every pass.
            return Ok(false);
        };
        let verify = match self.instance.verify() {
            // What this processor's kernels make is what it would be compared with.
            Verify::Sample if plan.device.id().backend == "cpu" => Verify::Off,
            _ if !Witness::can_see(pass) => Verify::Off,
            verify => verify,
        };
        let before = *register;
        let (tweak, first) = tweak.map_or((None, before), |(place, first)| (Some(place), first));
        // Any address will do to choose by: which blocks are looked at need not be secret, only not always the same.
        let seed = std::ptr::from_ref(register) as usize / 16 + data.len() / 16;
        let witness = Witness::keep(verify, pass, &first, data.input(), seed);
        let mut segment = Segment { key, tweak, register, data: Data::Host(data.reborrow()) };
        let done = plan.run(Task::Pass(pass, std::slice::from_mut(&mut segment)));
        let failure = match done {
            Ok(()) if witness.agrees(&self.inline, data.output()) => {
                if let Some(trace) = &self.instance.trace {
                    trace.count_way(Way::Planned, data.len());
                }
                return Ok(true);
            }
            Ok(()) => format!("{} gave a wrong result", plan.device.id()),
            Err(error) => error.to_string(),
        };
        if let Some(trace) = &self.instance.trace {
            trace.tell_failure(&failure);
        }
        data.output().zeroize();
        if matches!(data, HostData::Copy { .. }) {
            *register = before;
            return Ok(false);
        }
        self.instance.core.raise(Reason::Device, Some(&failure));
        Err(Reason::Device)
    }
}

/// The form of data that inline kernels take.
fn span(data: HostData<'_>) -> Span<'_> {
    match data {
        HostData::InPlace(data) => Span::in_place(data),
        HostData::Copy { from, to, .. } => Span::copy(from, to),
        HostData::ReadOnly(_) => unreachable!("contexts read and write"),
    }
}
