//! Loads and stores.

use yaxpeax_arm::armv8::a64::{Instruction, Opcode, Operand};

use super::operands::{Block, lanes, list, width};
use crate::machine::{Bytes, Machine, Step};
use crate::value::Domain;

/// Executes an instruction; `None` if it is of another family.
pub(super) fn execute<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Option<Step> {
    use Opcode::*;
    // The number of bytes in memory. `None` if the register states it.
    let size = match i.opcode {
        LDRB | LDURB | LDARB | LDXRB | LDAXRB | LDRSB | STRB | STURB | STLRB | STXRB | STLXRB => Some(1),
        LDRH | LDURH | STRH | STURH => Some(2),
        _ => None,
    };
    Some(match i.opcode {
        // One thread runs, so an access that orders other accesses, or that is exclusive, is an ordinary access.
        LDRB | LDURB | LDARB | LDXRB | LDAXRB | LDRH | LDURH | LDRSB | LDR | LDUR | LDAR | LDXR | LDAXR => {
            load(m, i, 1, size, i.opcode == LDRSB)
        }
        LDP => load(m, i, 2, None, false),
        STRB | STURB | STLRB | STRH | STURH | STR | STUR => store(m, i, 0..1, size),
        STP => store(m, i, 0..2, None),
        STXR | STLXR | STXRB | STLXRB => store_exclusive(m, i, size),
        LD1 | LD1R | ST1 | ST2 => elements(m, i),
        _ => return None,
    })
}

/// The number of bytes of a register operand.
fn size_of<D: Domain>(
    m: &Machine<D>,
    i: &Instruction,
    operand: Operand,
) -> Result<usize, crate::machine::Stop> {
    match width(operand).or_else(|| lanes(operand).map(|lanes| lanes.size)) {
        Some(size) => Ok(size),
        None => m.no_form(i),
    }
}

/// Loads registers from consecutive places. A number in a general register is extended by its sign or by zeros.
fn load<D: Domain>(
    m: &mut Machine<D>,
    i: &Instruction,
    registers: usize,
    size: Option<usize>,
    is_signed: bool,
) -> Step {
    let size = match size {
        Some(size) => size,
        None => size_of(m, i, i.operands[0])?,
    };
    let address = m.address_of(i, registers)?;
    let all: Bytes<D> = m.load(address, registers * size)?;
    for register in 0..registers {
        let bytes = &all[register * size..];
        match lanes(i.operands[register]) {
            Some(lanes) => m.set_lanes(lanes, bytes.first_chunk().expect("16 bytes")),
            None => {
                let word = m.extended(*bytes.first_chunk().expect("8 bytes"), size, is_signed);
                m.set(i, register, word)?;
            }
        }
    }
    Ok(())
}

/// Stores registers to consecutive places. The address is the operand after them.
fn store<D: Domain>(
    m: &mut Machine<D>,
    i: &Instruction,
    registers: std::ops::Range<usize>,
    size: Option<usize>,
) -> Step {
    let size = match size {
        Some(size) => size,
        None => size_of(m, i, i.operands[registers.start])?,
    };
    let mut bytes = Vec::with_capacity(32);
    for register in registers.clone() {
        match lanes(i.operands[register]) {
            Some(lanes) => bytes.extend_from_slice(&m.vector_number(lanes.register)[..size]),
            None => bytes.extend_from_slice(&m.value(i, register, 8)?[..size]),
        }
    }
    let address = m.address_of(i, registers.end)?;
    m.store(address, &bytes)
}

/// STXR and its relatives. On one thread, the store always succeeds.
fn store_exclusive<D: Domain>(m: &mut Machine<D>, i: &Instruction, size: Option<usize>) -> Step {
    store(m, i, 1..2, size)?;
    m.set(i, 0, Machine::<D>::word(0))
}

/// LD1 and ST1 of one element, LD1R, and ST2 of whole registers.
fn elements<D: Domain>(m: &mut Machine<D>, i: &Instruction) -> Step {
    let Some((lanes, registers)) = list(i.operands[0]) else { return m.no_form(i) };
    let is_one = matches!(i.operands[0], Operand::SIMDRegisterGroupLane(..));
    let (start, size) = (lanes.index * lanes.element, lanes.element);
    let is_known = match i.opcode {
        Opcode::LD1R => registers == 1 && !is_one,
        Opcode::ST2 => registers == 2 && !is_one,
        _ => registers == 1 && is_one,
    };
    if !is_known {
        return m.no_form(i);
    }
    let address = m.address_of(i, 1)?;
    let mut block: Block<D> = m.vector_number(lanes.register);
    match i.opcode {
        Opcode::LD1 => {
            let element = m.load(address, size)?;
            block[start..start + size].copy_from_slice(&element[..size]);
            m.set_vector_number(lanes.register, block);
            Ok(())
        }
        Opcode::LD1R => {
            let element = m.load(address, size)?;
            m.set_lanes(lanes, &std::array::from_fn(|place| element[place % size]));
            Ok(())
        }
        Opcode::ST1 => m.store(address, &block[start..start + size]),
        _ => {
            let second = m.vector_number((lanes.register + 1) % 32);
            let pairs = block[..lanes.size].chunks(size).zip(second[..lanes.size].chunks(size));
            let bytes: Vec<D::Byte> = pairs.flat_map(|(x, y)| [x, y].concat()).collect();
            m.store(address, &bytes)
        }
    }
}
