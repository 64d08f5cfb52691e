//! Tests of sequences of instructions that are refused, and of similar sequences that are accepted.

use lockstep_qpu::asm::assemble;
use lockstep_qpu::sim::{Hazard, Hazards};

/// The line of the first instruction that breaks a rule, and the rule.
fn broken(source: &str) -> Option<(usize, Hazard)> {
    let program = assemble(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let mut hazards = Hazards::new();
    let checked = program.instructions.iter().zip(&program.lines);
    checked
        .into_iter()
        .find_map(|(instruction, line)| hazards.check(instruction).err().map(|hazard| (*line, hazard)))
}

/// Checks that the last line of a sequence breaks `rule` if the lines `~` are removed, and that no line breaks any rule if they are
/// replaced by `nop`.
fn refused(source: &str, rule: Hazard) {
    let near: Vec<&str> = source.lines().filter(|line| *line != "~").collect();
    assert_eq!(broken(&near.join("\n")), Some((near.len(), rule)), "{source}");
    if near.len() < source.lines().count() {
        assert_eq!(broken(&source.replace('~', "nop")), None, "{source}");
    }
}

#[test]
fn a_general_register_is_readable_an_instruction_later() {
    refused("mov ra3, r0\n~\nmov r1, ra3", Hazard::ReadAfterWrite { is_b: false, register: 3 });
    refused("mov.ifz rb3, r0\n~\nadd r1, r2, rb3", Hazard::ReadAfterWrite { is_b: true, register: 3 });
    refused("ldi ra0, 7\n~\nbra -, ra0", Hazard::ReadAfterWrite { is_b: false, register: 0 });
    refused("nop; v8min ra9, r0, r1\n~\nmov t0s, ra9", Hazard::ReadAfterWrite { is_b: false, register: 9 });
    // Reads of another file, of another register, of an accumulator, and of a register whose write has no effect are
    // accepted.
    assert_eq!(broken("mov ra3, r0\nmov r1, rb3\nmov ra4, r0\nmov r1, ra5\nmov r2, r1\nmov r1, r2"), None);
    assert_eq!(broken("mov.never ra3, r0\nmov r1, ra3"), None);
}

#[test]
fn a_rotated_accumulator_is_not_written_before() {
    refused("mov r1, r0\n~\nnop; mov r2, r1 >> 1", Hazard::RotationAfterWrite { accumulator: 1 });
    refused("mov r5rep, r0\n~\nnop; mov r2, r1 << r5", Hazard::RotationAfterWrite { accumulator: 5 });
    assert_eq!(broken("mov r5rep, r0\nnop; mov r2, r1 >> 1\nmov r0, r1; mov r2, r1 >> 3"), None);
}

#[test]
fn r4_is_defined_two_instructions_after_a_special_function() {
    for use_of_r4 in ["mov r0, r4", "mov recip, r1", "mov r0, r1; ldtmu0"] {
        refused(&format!("mov recip, r0\nnop\n~\n{use_of_r4}"), Hazard::R4AfterSpecialFunction);
    }
    assert_eq!(broken("mov r0, r1; ldtmu0\nmov r0, r4"), None);
}

#[test]
fn an_instruction_uses_one_peripheral() {
    for source in [
        "mov t0s, r0; ldtmu0",
        "mov t0s, vpm",
        "mov recip, mutex",
        "mov vpm, r0; ldtmu1",
        "mov t0s, r0; mov t1s, r1",
        "sacq recip, 1",
    ] {
        refused(source, Hazard::TwoPeripherals);
    }
    assert_eq!(broken("xor vpm, vpm, r1\nmov r0, vpm; mov r1, unif"), None);
}

#[test]
fn requests_have_no_condition() {
    refused("mov.ifz t0s, r0", Hazard::ConditionalRequest);
    refused("mov.ifn vpm, r0", Hazard::ConditionalRequest);
    assert_eq!(broken("mov.ifz irq, r0"), None);
}

#[test]
fn both_operations_write_to_different_registers() {
    refused("mov r0, r1; mov r0, r2", Hazard::TwoWrites { address: 32 });
    refused("mov.ifz r0, r1; mov.ifn r0, r2", Hazard::TwoWrites { address: 32 });
    refused("mov.ifz irq, r1; mov.ifnz irq, r2", Hazard::TwoWrites { address: 38 });
    assert_eq!(
        broken("mov.ifz r0, r1; mov.ifnz r0, r2\nmov ra1, r1; mov rb1, r2\nldi vr_setup, vw_setup, 0"),
        None
    );
}

#[test]
fn setups_take_time() {
    refused("mov unif_addr, r0\nnop\n~\nmov r1, unif", Hazard::UniformAfterAddress);
    refused("mov vr_setup, r0\nnop\nnop\n~\nmov r1, vpm", Hazard::VpmReadAfterSetup);
    refused("mov tmurs, r0\nnop\nnop\n~\nmov t0s, r1", Hazard::RequestAfterNoswap);
    // No delay is needed after the setup of writes.
    assert_eq!(broken("mov vw_setup, r0\nmov vpm, r1"), None);
}

#[test]
fn branches_are_apart() {
    refused("brr -, 0\nnop\n~\nbra -, ra0", Hazard::BranchAfterBranch);
    assert_eq!(broken("brr.anyz -, 0\nnop\nnop\nnop\nbrr -, 0"), None);
}

#[test]
fn the_last_three_instructions() {
    refused("mov ra0, r0; mov rb0, r1; thrend", Hazard::EndWrites);
    refused("mov r0, unif; thrend", Hazard::AccessAtEnd);
    refused("nop; thrend\nmov r0, unif", Hazard::AccessAtEnd);
    refused("nop; thrend\nnop\nmov ra14, r0", Hazard::AccessAtEnd);
    refused("nop; thrend\nnop\nmov vpm, r0", Hazard::AccessAtEnd);
    assert_eq!(broken("mov r0, unif\nmov r0, r1; thrend\nmov irq, r0\nmov ra3, r0"), None);
}

#[test]
fn rules_are_stated() {
    for rule in
        [Hazard::ReadAfterWrite { is_b: true, register: 3 }, Hazard::TwoPeripherals, Hazard::AccessAtEnd]
    {
        assert!(rule.to_string().starts_with("it "), "{rule}");
    }
    let rule = Hazard::ReadAfterWrite { is_b: true, register: 3 };
    assert_eq!(rule.to_string(), "it reads rb3, which the instruction before it writes");
}
