//! Results of the table and of the processor on the same values.

use iced_x86::{Code, Encoder, EncodingKind, Instruction, Register};
use lockstep_proof::machine::text;
use lockstep_proof::taint::Taint;
use lockstep_proof::value::Domain;

use crate::assemble::{assemble, encodings};
use crate::native::{Page, has, is_wide};
use crate::state::{FLAG_BITS, Random, State, execute, flags, machine, read};

/// Number of states for each encoding.
const STATES: usize = 40;

/// Compares the processor and the table. Returns false if the table refuses the instruction.
///
/// # Errors
/// A difference.
fn difference(
    page: &Page,
    instruction: &Instruction,
    code: &[u8],
    random: &mut Random,
) -> Result<bool, String> {
    let mut native = random.state(0);
    let memory = native.memory.as_ptr() as u64;
    native.general[7] = memory;
    let before = native.clone();
    let mut machine = machine(code, &before, &State::ZERO);
    if let Err(stop) = execute(&mut machine) {
        // The table refuses operands with an undefined result, and operands that no kernel has.
        let is_refused = stop.reason.contains("undefined") || stop.reason.contains("has no semantics");
        return if is_refused { Ok(false) } else { Err(stop.to_string()) };
    }
    page.execute(code, &mut native);
    let mut table = read(&machine, memory, Taint::value, |flag| flag.value);
    if !is_wide() {
        for (table, native) in table.vectors.iter_mut().zip(&mut native.vectors) {
            table[32..].fill(0);
            native[32..].fill(0);
        }
        table.masks = native.masks;
    }
    // Undefined flags may have any value.
    table.general[4] = native.general[4];
    let mut defined = 0;
    for (flag, bit) in flags(&machine.flags).into_iter().zip(FLAG_BITS) {
        defined |= u64::from(flag.defined) << bit;
    }
    table.flags &= defined;
    native.flags &= defined;
    if table == native {
        return Ok(true);
    }
    Err(format!("{}: {}", text(instruction), differing(&native, &table)))
}

/// The parts in which the states differ.
fn differing(native: &State, table: &State) -> String {
    let mut parts = Vec::new();
    if native.flags != table.flags {
        parts.push(format!("flags {:x} and {:x}", native.flags, table.flags));
    }
    for (index, (native, table)) in native.general.iter().zip(&table.general).enumerate() {
        if native != table {
            parts.push(format!("register {index}: {native:x} and {table:x}"));
        }
    }
    for (index, (native, table)) in native.masks.iter().zip(&table.masks).enumerate() {
        if native != table {
            parts.push(format!("mask {index}: {native:x} and {table:x}"));
        }
    }
    for (index, (native, table)) in native.vectors.iter().zip(&table.vectors).enumerate() {
        if native != table {
            parts.push(format!("vector {index}: {native:x?} and {table:x?}"));
        }
    }
    if native.memory != table.memory {
        parts.push(format!("memory {:x?} and {:x?}", native.memory, table.memory));
    }
    format!("the processor and the table have {}", parts.join("; "))
}

fn check(page: &Page, code: Code, random: &mut Random) -> Result<bool, String> {
    let mut is_compared = false;
    for prefers_memory in [false, true] {
        for state in 0..STATES {
            let Some((mut instruction, mut bytes)) = assemble(code, prefers_memory, random.next()) else {
                continue;
            };
            // The table has semantics of moves with a mask, and refuses the other instructions with a mask.
            if state % 4 == 3 && code.op_code().can_use_op_mask_register() {
                instruction.set_op_mask(Register::K3);
                instruction.set_zeroing_masking(state % 8 == 7 && code.op_code().can_use_zeroing_masking());
                let mut encoder = Encoder::new(64);
                encoder.encode(&instruction, 0).map_err(|error| error.to_string())?;
                bytes = encoder.take_buffer();
            }
            is_compared |= difference(page, &instruction, &bytes, random)?;
        }
    }
    Ok(is_compared)
}

#[test]
fn each_entry_computes_what_the_processor_computes() {
    if !std::is_x86_feature_detected!("avx2") {
        println!("NOT TESTED: the table of instructions, because this processor has no AVX2");
        return;
    }
    let (page, mut random) = (Page::new(), Random(1));
    let (mut tested, mut of_avx512, mut missing, mut wrong) = (0, 0, Vec::new(), Vec::new());
    for code in encodings() {
        if !has(code) {
            missing.push(format!("{code:?}"));
            continue;
        }
        match check(&page, code, &mut random) {
            Ok(true) => {
                tested += 1;
                of_avx512 += u32::from(code.op_code().encoding() == EncodingKind::EVEX);
            }
            Ok(false) => missing.push(format!("{code:?} (not assembled, or refused)")),
            Err(difference) => wrong.push(difference),
        }
    }
    println!("{tested} encodings compared, {of_avx512} of AVX-512; {} not: {missing:?}", missing.len());
    let first = wrong.iter().take(3).map(String::as_str).collect::<Vec<_>>().join("\n\n");
    assert!(wrong.is_empty(), "{} encodings differ from the processor:\n{first}", wrong.len());
    assert!(tested > 300, "only {tested} encodings were compared");
}
