//! Control flow, and instructions that read or set the state of the processor.

use yaxpeax_arm::armv8::a64::{Instruction, Opcode, Operand};

use super::operands::width;
use crate::machine::{Kind, Machine, Step, Stop};
use crate::value::{Domain, Flag, Number};

/// Executes an instruction; `None` if it is of another family.
pub(super) fn execute<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Option<Step> {
    use Opcode::{ADR, ADRP, B, BL, BLR, BR, BRK, Bcc, CBNZ, CBZ, DMB, HINT, MRS, MSR, RET, TBNZ, TBZ, UDF};
    Some(match i.opcode {
        B => target(m, i, 0).map(|target| m.next = target),
        Bcc(condition) => m.holds(condition).and_then(|flag| jump_if(m, i, 0, flag)),
        CBZ | CBNZ => is_zero(m, i).and_then(|flag| jump_if(m, i, 1, flag)),
        TBZ | TBNZ => is_clear(m, i).and_then(|flag| jump_if(m, i, 2, flag)),
        BL | BLR => call(m, i),
        BR => indirect(m, i).map(|target| m.next = target),
        RET => ret(m, i),
        ADR | ADRP => address(m, i),
        MRS | MSR => mode(m, i),
        // One thread runs, so barriers have no effect.
        DMB(_) => Ok(()),
        HINT => hint(m, i),
        BRK | UDF => Err(m.stop("the program stops itself (BRK or UDF)")),
        _ => return None,
    })
}

/// NOP, and BTI (CRm 4, op2 0, 2, 4 or 6; DDI 0487, C6.2), which change no register. Other hints can change X30 or X16.
fn hint<D: Domain>(m: &Machine<D>, i: &Instruction) -> Step {
    match i.operands {
        [Operand::ControlReg(0), Operand::Immediate(0), ..]
        | [Operand::ControlReg(4), Operand::Immediate(0 | 2 | 4 | 6), ..] => Ok(()),
        _ => m.no_form(i),
    }
}

/// The address that an operand states by its distance from the instruction.
fn target<D: Domain>(m: &Machine<D>, i: &Instruction, operand: usize) -> Result<u64, Stop> {
    match i.operands[operand] {
        Operand::PCOffset(offset) => Ok(m.at().wrapping_add_signed(offset)),
        _ => m.no_form(i),
    }
}

fn jump_if<D: Domain>(m: &mut Machine<D>, i: &Instruction, operand: usize, flag: Flag) -> Step {
    if m.decide(flag)? {
        m.next = target(m, i, operand)?;
    }
    Ok(())
}

/// The condition of CBZ and CBNZ.
fn is_zero<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Result<Flag, Stop> {
    let size = width(i.operands[0]).unwrap_or(8);
    let number = Number::of::<D>(&m.value(i, 0, size)?);
    Ok(Flag::new((number.value == 0) == (i.opcode == Opcode::CBZ), number.is_secret()))
}

/// The condition of TBZ and TBNZ.
fn is_clear<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Result<Flag, Stop> {
    let number = Number::of::<D>(&m.value(i, 0, 8)?);
    let Operand::Imm16(bit) = i.operands[1] else { return m.no_form(i) };
    let is_set = |bits: u64| bits >> bit & 1 == 1;
    Ok(Flag::new(is_set(number.value) == (i.opcode == Opcode::TBNZ), is_set(number.secret)))
}

/// The target of a jump to an address in a register.
fn indirect<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Result<u64, Stop> {
    let target = m.value(i, 0, 8)?;
    m.public(Kind::Branch, "target of a jump", &target)
}

fn call<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let target = if i.opcode == Opcode::BL { target(m, i, 0)? } else { indirect(m, i)? };
    m.enter(target, m.next)?;
    m.next = target;
    Ok(())
}

fn ret<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    if !matches!(i.operands[0], Operand::Register(_, 30)) {
        return m.no_form(i);
    }
    m.next = m.leave()?;
    Ok(())
}

fn address<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let Operand::PCOffset(offset) = i.operands[1] else { return m.no_form(i) };
    let page = if i.opcode == Opcode::ADRP { 4095 } else { 0 };
    m.set(i, 0, Machine::<D>::word((m.at() & !page).wrapping_add_signed(offset)))
}

/// The number by which the decoder names the register DIT (op0 3, op1 3, CRn 4, CRm 2, op2 5).
const DIT: u16 = (3 & 1) << 14 | 3 << 11 | 4 << 7 | 2 << 3 | 5;

/// MRS and MSR of the mode of data-independent timing, which changes no result. It is not set at the start of a call.
fn mode<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    match i.operands {
        [_, Operand::SystemReg(DIT), ..] => m.set(i, 0, Machine::<D>::word(0)),
        [Operand::SystemReg(DIT), ..] => {
            let word = m.value(i, 1, 8)?;
            m.public(Kind::Time, "mode of the processor", &word).map(|_| ())
        }
        _ => m.no_form(i),
    }
}
