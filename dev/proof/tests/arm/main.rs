//! The table of instructions of 64-bit Arm: each entry compared with the processor or with QEMU's emulator of it, if the test runs there,
//! and with itself on other secrets.
//!
//! `words.txt` lists words of the harness's code by opcode: one to three for each form of operands. Branches, exclusive stores and words
//! that use the stack pointer are not in it. `fmov` also has FMOV V3.D\[1\], X1, which the harness does not have.

#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
mod native;
mod state;

use lockstep_proof::decoder;
use state::{State, Values, execute, machine, read};

/// Number of states for each word.
const STATES: usize = 40;

/// The address of the memory of a state that only the table executes.
const MEMORY: u64 = 0x2000;

/// The words of the list.
fn words() -> Vec<u32> {
    let words = include_str!("words.txt").split_whitespace().filter(|word| !word.ends_with(':'));
    words.map(|word| u32::from_str_radix(word, 16).expect("a number")).collect()
}

#[test]
fn every_word_has_semantics() {
    let mut random = Values(1);
    for word in words() {
        let i = decoder::decode(&word.to_le_bytes()).expect("an instruction");
        let mut state = random.state();
        state.point_to_memory(&i, MEMORY, &mut random);
        if let Err(stop) = execute(&machine(word), &state, &State::ZERO, MEMORY) {
            panic!("{word:08x}: {stop}");
        }
    }
}

#[test]
fn fmov_to_the_high_half_keeps_the_low_half() {
    let before = Values(4).state();
    let after =
        execute(&machine(0x9eaf_0023), &before, &State::ZERO, MEMORY).expect("the table has the word");
    let mut expected = before.clone();
    expected.vectors[3][8..].copy_from_slice(&before.general[1].to_le_bytes());
    assert_eq!(read(&after, MEMORY).0, expected);
}

#[test]
fn hints_other_than_nop_and_bti_stop() {
    let stops = |word| execute(&machine(word), &State::ZERO, &State::ZERO, MEMORY).is_err();
    // NOP, BTI, BTI C
    assert!([0xd503_201f, 0xd503_241f, 0xd503_245f].into_iter().all(|word| !stops(word)));
    // PACIASP, AUTIASP, CHKFEAT
    assert!([0xd503_233f, 0xd503_23bf, 0xd503_251f].into_iter().all(stops));
}

#[test]
fn other_secrets_change_secret_bits_only() {
    let mut random = Values(2);
    let (mut compared, mut reported) = (0, 0);
    for word in words() {
        let i = decoder::decode(&word.to_le_bytes()).expect("an instruction");
        let machine = machine(word);
        for _ in 0..STATES {
            let (mut values, mut secret, mut others) = (random.state(), random.state(), random.state());
            values.point_to_memory(&i, MEMORY, &mut random);
            for register in State::address_registers(&i) {
                secret.general[register] = 0;
            }
            others = values.combined(&secret, &others);
            let (Ok(first), Ok(second)) =
                (execute(&machine, &values, &secret, MEMORY), execute(&machine, &others, &secret, MEMORY))
            else {
                panic!("{word:08x} `{i}` stops");
            };
            // If the table demands a public number and gets a secret, it reports this. Such cases are counted and not compared.
            if !first.findings.is_empty() {
                reported += 1;
                continue;
            }
            let ((first, marks), (second, _)) = (read(&first, MEMORY), read(&second, MEMORY));
            assert!(
                first.equals_except(&second, &marks),
                "{word:08x} `{i}`: {first:x?} {second:x?} {marks:x?}"
            );
            compared += 1;
        }
    }
    println!("{compared} states compared, {reported} reported");
    assert!(
        compared > 8 * reported,
        "most instructions take secrets: {compared} compared, {reported} reported"
    );
}
