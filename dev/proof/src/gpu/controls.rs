//! Fixed changes of the code, which the proofs must refute for the stated reason before the code itself is proved.

use super::code::{Instruction, Operand, Place, RZ};
use super::jobs;
use super::{Kernels, LIMITS};

/// A change. False if the code has no place for it.
type Change = fn(&mut [Instruction]) -> bool;

const NOT_EQUAL: &str = "is not equal to the definition";

/// The entry points, the changes, and a part of the message with which the proof must fail.
const CONTROLS: [(&str, &str, Change, &str); 7] = [
    ("bitslice_expand_128", "an operand", other_operand, NOT_EQUAL),
    ("bitslice_expand_128", "a constant", other_table, NOT_EQUAL),
    ("bitslice_expand_128", "an order", other_order, NOT_EQUAL),
    ("bitslice_expand_128", "a result that is not stored", missing_store, "is not written"),
    ("bitslice_expand_128", "an access outside of a buffer", outside, "out of bounds"),
    ("bitslice_expand_128", "an address that depends on a key", secret_address, "depends on a secret"),
    ("bitslice_ecb_encrypt", "barriers that are missing", without_barriers, "no barrier"),
];

fn registers(one: &Instruction) -> Vec<usize> {
    let number = |operand: &Operand| match operand.place {
        Place::Register((false, number)) if number != RZ => Some(number),
        _ => None,
    };
    one.operands.iter().filter_map(number).collect()
}

/// An exclusive or of three registers that are not equal.
fn is_sum(one: &&mut Instruction) -> bool {
    let registers = registers(one);
    one.opcode == "LOP3"
        && one.operands.iter().any(|operand| operand.place == Place::Number(0x96))
        && matches!(registers[..], [_, a, b, c] if a != b && a != c && b != c)
}

fn other_operand(code: &mut [Instruction]) -> bool {
    let Some(one) = code.iter_mut().find(is_sum) else { return false };
    one.operands[1] = one.operands[2].clone();
    true
}

/// The complement of an exclusive or.
fn other_table(code: &mut [Instruction]) -> bool {
    let tables = code.iter_mut().find(is_sum).into_iter().flat_map(|one| &mut one.operands);
    let found = tables.map(|operand| &mut operand.place).find(|place| **place == Place::Number(0x96));
    found.map(|place| *place = Place::Number(0x69)).is_some()
}

/// An instruction before another one whose result it uses.
fn other_order(code: &mut [Instruction]) -> bool {
    let uses = |pair: &[Instruction]| {
        let is_logic = pair.iter().all(|one| one.opcode == "LOP3");
        let registers: Vec<_> = pair.iter().map(registers).collect();
        let [first, second] = &registers[..] else { return false };
        let ([first, ..], [second, sources @ ..]) = (&first[..], &second[..]) else { return false };
        is_logic && sources.contains(first) && second != first
    };
    let Some(place) = code.windows(2).position(uses) else { return false };
    let [first, second] = [code[place].address, code[place + 1].address];
    code.swap(place, place + 1);
    (code[place].address, code[place + 1].address) = (first, second);
    true
}

fn last_store(code: &mut [Instruction]) -> Option<&mut Instruction> {
    code.iter_mut().rev().find(|one| one.opcode == "STG")
}

fn missing_store(code: &mut [Instruction]) -> bool {
    last_store(code).map(Instruction::drop).is_some()
}

/// A store at an address that is higher by 2^20.
fn outside(code: &mut [Instruction]) -> bool {
    let mut operands = last_store(code).into_iter().flat_map(|one| &mut one.operands);
    let offset = operands.find_map(|operand| match &mut operand.place {
        Place::Memory(_, _, offset, _) => Some(offset),
        _ => None,
    });
    offset.map(|offset| *offset += 1 << 20).is_some()
}

/// A load whose address is the result of an earlier load.
fn secret_address(code: &mut [Instruction]) -> bool {
    let mut loads = code.iter_mut().filter(|one| one.opcode == "LDG");
    let (Some(first), Some(second)) = (loads.next(), loads.next()) else { return false };
    let Some(loaded) = registers(first).first().copied() else { return false };
    second.operands.iter_mut().any(|operand| match &mut operand.place {
        Place::Memory(Some(base), ..) => {
            *base = loaded;
            true
        }
        _ => false,
    })
}

fn without_barriers(code: &mut [Instruction]) -> bool {
    let barriers = code.iter_mut().filter(|one| matches!(one.opcode.as_str(), "NOP" | "WARPSYNC"));
    barriers.map(Instruction::drop).count() > 0
}

/// The controls that the proofs do not refute for the stated reason.
pub(super) fn missed(kernels: &Kernels) -> Result<Vec<String>, String> {
    let jobs = jobs::all(true);
    let mut missed = Vec::new();
    for (function, name, change, reason) in CONTROLS {
        let job = jobs.iter().find(|job| job.function() == function).ok_or("no proof of a control")?;
        let mut kernel = job.kernel(kernels)?.clone();
        let outcome = match change(&mut kernel.code) {
            true => job.run(&kernel, LIMITS).0.err().unwrap_or("no proof fails".into()),
            false => "the code has no place for it".into(),
        };
        if !outcome.contains(reason) {
            missed.push(format!("{function}, {name}: {outcome}"));
        }
    }
    Ok(missed)
}
