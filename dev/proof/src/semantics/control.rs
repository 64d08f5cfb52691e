//! Control flow, and instructions that query the properties of the processor.

use iced_x86::{ConditionCode, Instruction, OpKind, Register};

use crate::machine::{Kind, Machine, Step, Stop};
use crate::value::{Domain, Flag, Number};

impl<D: Domain> Machine<D> {
    /// The value of a condition.
    ///
    /// # Errors
    /// If the condition depends on an undefined flag.
    pub(crate) fn condition(&self, code: ConditionCode) -> Result<Flag, Stop> {
        use ConditionCode::*;
        let flags = &self.flags;
        let combined = |x: Flag, y: Flag, value| {
            let (secret, defined) = (x.secret || y.secret, x.defined && y.defined);
            Flag { value, secret, defined }
        };
        let not = |flag: Flag| Flag { value: !flag.value, ..flag };
        let either = |x: Flag, y: Flag| combined(x, y, x.value || y.value);
        let less = combined(flags.sign, flags.overflow, flags.sign.value != flags.overflow.value);
        self.defined(match code {
            None => Flag::new(true, false),
            o => flags.overflow,
            no => not(flags.overflow),
            b => flags.carry,
            ae => not(flags.carry),
            e => flags.zero,
            ne => not(flags.zero),
            be => either(flags.carry, flags.zero),
            a => not(either(flags.carry, flags.zero)),
            s => flags.sign,
            ns => not(flags.sign),
            p => flags.parity,
            np => not(flags.parity),
            l => less,
            ge => not(less),
            le => either(less, flags.zero),
            g => not(either(less, flags.zero)),
        })
    }

    /// The target of a jump or a call.
    fn target(&mut self, i: &Instruction) -> Result<u64, Stop> {
        if i.op0_kind() == OpKind::NearBranch64 {
            return Ok(i.near_branch64());
        }
        let target = self.read(i, 0)?;
        self.public(Kind::Branch, "target of a jump", &target[..8])
    }
}

pub(super) fn jump<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    m.next = m.target(i)?;
    Ok(())
}

pub(super) fn jump_if<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let flag = m.condition(i.condition_code())?;
    if m.decide(flag)? {
        m.next = i.near_branch64();
    }
    Ok(())
}

pub(super) fn call<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let target = m.target(i)?;
    m.enter(target, m.next)?;
    m.next = target;
    Ok(())
}

pub(super) fn ret<D: Domain>(m: &mut Machine<D>, _: &Instruction) -> Step {
    m.next = m.leave()?;
    Ok(())
}

pub(super) fn leave<D: Domain>(m: &mut Machine<D>, _: &Instruction) -> Step {
    let frame = m.register(Register::RBP);
    m.set_general(Register::RSP, &frame[..8]);
    let frame = m.pop()?;
    m.set_general(Register::RBP, &frame[..8]);
    Ok(())
}

/// A prefetch: its address must be public, although no access is made.
pub(super) fn prefetch<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    m.address(i).map(|_| ())
}

pub(super) fn nothing<D: Domain>(_: &mut Machine<D>, _: &Instruction) -> Step {
    Ok(())
}

pub(super) fn undefined<D: Domain>(m: &mut Machine<D>, _: &Instruction) -> Step {
    Err(m.stop("the program stops itself (UD2 or INT3)"))
}

/// CPUID of a processor that supports every instruction: all feature bits are set.
pub(super) fn cpuid<D: Domain>(m: &mut Machine<D>, _: &Instruction) -> Step {
    let leaf = Number::of::<D>(&m.register(Register::EAX)[..4]).value;
    let all = u64::from(u32::MAX);
    let [a, b, c, d] = match leaf {
        // The highest leaf, and the name "GenuineIntel".
        0 => [0x20, 0x756e_6547, 0x6c65_746e, 0x4965_6e69],
        0x8000_0000 => [0x8000_0008, 0, 0, 0],
        // The family and the model are arbitrary. All bits of features are set.
        1 => [0x0008_06f8, 0, all, all],
        7 => [1, all, all, all],
        0xd | 0x14 | 0x19 | 0x1e | 0x24 | 0x8000_0001 => [all; 4],
        _ => [0; 4],
    };
    for (register, value) in [(Register::RAX, a), (Register::RBX, b), (Register::RCX, c), (Register::RDX, d)]
    {
        m.set_number(register, value);
    }
    Ok(())
}

/// XGETBV. The result states that the operating system saves the state of all registers.
pub(super) fn xgetbv<D: Domain>(m: &mut Machine<D>, _: &Instruction) -> Step {
    m.set_number(Register::RAX, 0xe7);
    m.set_number(Register::RDX, 0);
    Ok(())
}
