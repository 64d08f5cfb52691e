//! Secret bits of the table: other values of the secrets change no bit that is not secret. This needs no processor.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};
use lockstep_proof::contracts;
use lockstep_proof::image::Image;
use lockstep_proof::machine::{Kind, Machine, Program, text};
use lockstep_proof::memory::{Region, Role};
use lockstep_proof::semantics;
use lockstep_proof::taint::{Taint, Tainted};
use lockstep_proof::value::Domain;

use crate::assemble::{assemble, encodings};
use crate::state::{Random, State, execute, machine, read};

/// The address of the memory of a state.
const MEMORY: u64 = 0x2000;
/// Number of states for each encoding.
const STATES: usize = 12;

/// Applies a function to all parts of two states, except the address in RDI.
fn combine(x: &State, y: &State, function: impl Fn(u64, u64) -> u64) -> State {
    let bytes = |x: &[u8; 64], y: &[u8; 64]| {
        std::array::from_fn(|i| function(u64::from(x[i]), u64::from(y[i])) as u8)
    };
    let mut general = std::array::from_fn(|i| function(x.general[i], y.general[i]));
    general[7] = x.general[7];
    State {
        general,
        vectors: std::array::from_fn(|i| bytes(&x.vectors[i], &y.vectors[i])),
        memory: bytes(&x.memory, &y.memory),
        masks: std::array::from_fn(|i| function(x.masks[i], y.masks[i])),
        flags: function(x.flags, y.flags),
    }
}

#[test]
fn other_secrets_change_secret_bits_only() {
    let mut random = Random(2);
    let (mut tested, mut reported) = (0, 0);
    for code in encodings() {
        for state in 0..STATES {
            let prefers_memory = state % 2 == 1;
            let Some((instruction, bytes)) = assemble(code, prefers_memory, random.next()) else { continue };
            let (values, mut secret) = (random.state(MEMORY), random.state(MEMORY));
            secret.general[7] = 0;
            let noise = random.state(MEMORY);
            let others =
                combine(&combine(&noise, &secret, |noise, secret| noise & secret), &values, |x, y| x ^ y);
            let mut others = others;
            others.general[7] = MEMORY;
            let mut first = machine(&bytes, &values, &secret);
            let mut second = machine(&bytes, &others, &secret);
            if execute(&mut first).is_err() || execute(&mut second).is_err() {
                continue;
            }
            // If the table demands a public number and gets a secret, it reports this. Such cases are counted and not compared.
            let is_reported = |kind: Kind| matches!(kind, Kind::Time | Kind::Address | Kind::Branch);
            if first.findings.keys().any(|finding| is_reported(finding.kind)) {
                reported += 1;
                continue;
            }
            let values_of = |machine| read(machine, MEMORY, Taint::value, |flag| flag.value && flag.defined);
            let result_secret = read(&first, MEMORY, Taint::secret, |flag| flag.secret || !flag.defined);
            let changed = combine(&values_of(&first), &values_of(&second), |x, y| x ^ y);
            let missing = combine(&changed, &result_secret, |changed, secret| changed & !secret);
            let mut nothing = combine(&missing, &missing, |_, _| 0);
            nothing.general[7] = missing.general[7];
            assert_eq!(
                missing,
                nothing,
                "`{}`: bits depend on secrets and are not secret",
                text(&instruction)
            );
            tested += 1;
        }
    }
    assert!(tested > 5000, "only {tested} states were compared; {reported} were reported");
}

fn bytes_of(instruction: &Instruction) -> Vec<u8> {
    let mut encoder = Encoder::new(64);
    encoder.encode(instruction, 0).expect("an instruction");
    encoder.take_buffer()
}

fn kinds(machine: &Machine<Taint>) -> Vec<Kind> {
    machine.findings.keys().map(|finding| finding.kind).collect()
}

#[test]
fn a_division_by_a_secret_is_reported_and_its_results_are_secret() {
    let code = bytes_of(&Instruction::with1(Code::Div_rm64, Register::RCX).expect("an instruction"));
    let mut values = Random(5).state(MEMORY);
    // 2^64 + 1000 divided by 77.
    (values.general[0], values.general[2], values.general[1]) = (1000, 1, 77);
    for (secret_of_divisor, secret_of_dividend) in [(0, 0), (4, 0), (0, 4)] {
        let mut secret = State::ZERO;
        (secret.general[1], secret.general[2]) = (secret_of_divisor, secret_of_dividend);
        let mut machine = machine(&code, &values, &secret);
        execute(&mut machine).expect("an instruction of the table");
        let result = read(&machine, MEMORY, Taint::value, |flag| flag.value);
        let (quotient, remainder) = ((1 << 64 | 1000u128) / 77, (1 << 64 | 1000u128) % 77);
        assert_eq!([result.general[0], result.general[2]], [quotient as u64, remainder as u64]);
        let marks = read(&machine, MEMORY, Taint::secret, |flag| flag.secret);
        let is_secret = secret_of_divisor | secret_of_dividend != 0;
        let expected = if is_secret { u64::MAX } else { 0 };
        assert_eq!([marks.general[0], marks.general[2]], [expected; 2]);
        assert_eq!(kinds(&machine).contains(&Kind::Time), is_secret);
    }
}

#[test]
fn a_masked_move_keeps_the_marks_of_the_bytes_that_it_selects_and_reports_a_secret_mask() {
    let mut instruction =
        Instruction::with2(Code::EVEX_Vmovdqu8_zmm_k1z_zmmm512, Register::ZMM1, Register::ZMM4)
            .expect("an instruction");
    instruction.set_op_mask(Register::K3);
    let mut values = Random(6).state(MEMORY);
    values.masks[3] = 0x00ff_00ff_1234_8001;
    for zeroing in [false, true] {
        instruction.set_zeroing_masking(zeroing);
        let mut secret = State::ZERO;
        // The upper bits of every even byte of the source are secret, and the lower bits of the second half of the destination.
        secret.vectors[4] = std::array::from_fn(|place| if place % 2 == 0 { 0xf0 } else { 0 });
        secret.vectors[1] = std::array::from_fn(|place| if place >= 32 { 0x0f } else { 0 });
        let mut first = machine(&bytes_of(&instruction), &values, &secret);
        execute(&mut first).expect("an instruction of the table");
        let marks = read(&first, MEMORY, Taint::secret, |flag| flag.secret).vectors[1];
        for (place, mark) in marks.iter().enumerate().take(64) {
            let kept = if zeroing { 0 } else { secret.vectors[1][place] };
            let is_selected = values.masks[3] >> place & 1 == 1;
            let expected = if is_selected { secret.vectors[4][place] } else { kept };
            assert_eq!(*mark, expected, "byte {place}");
        }
        assert!(kinds(&first).is_empty());
        secret.masks[3] = 1 << 20;
        let mut second = machine(&bytes_of(&instruction), &values, &secret);
        execute(&mut second).expect("an instruction of the table");
        assert_eq!(kinds(&second), [Kind::Address]);
    }
}

#[test]
fn a_prefetch_of_a_secret_address_is_reported() {
    let operand = MemoryOperand::with_base(Register::RDI);
    for code in [Code::Prefetcht0_m8, Code::Prefetchnta_m8, Code::Prefetchw_m8] {
        let code = bytes_of(&Instruction::with1(code, operand).expect("an instruction"));
        for secret_bits in [0, 0x40] {
            let mut secret = State::ZERO;
            secret.general[7] = secret_bits;
            let mut machine = machine(&code, &Random(7).state(MEMORY), &secret);
            execute(&mut machine).expect("an instruction of the table");
            assert_eq!(kinds(&machine).contains(&Kind::Address), secret_bits != 0);
        }
    }
}

#[test]
fn an_instruction_that_reads_an_undefined_flag_stops() {
    let (rax, rcx, al) = (Register::RAX, Register::RCX, Register::AL);
    let readers = [
        Instruction::with2(Code::Cmove_r64_rm64, rax, rcx),
        Instruction::with1(Code::Setle_rm8, al),
        Instruction::with2(Code::Adc_r64_rm64, rax, rcx),
        Instruction::with2(Code::Sbb_r64_rm64, rax, rax),
    ];
    for reader in readers.map(|reader| reader.expect("an instruction")) {
        let mut machine = machine(&bytes_of(&reader), &Random(8).state(MEMORY), &State::ZERO);
        let flags = &mut machine.flags;
        for flag in [&mut flags.carry, &mut flags.zero] {
            flag.defined = false;
        }
        let stop = execute(&mut machine).expect_err("the flag is undefined");
        assert!(stop.reason.contains("undefined flag"), "{}: {stop}", text(&reader));
    }
}

#[test]
fn a_call_of_the_c_library_keeps_secrets_in_registers() {
    const IMPORT: u64 = 0x5000;
    let imports = BTreeMap::from([(IMPORT, "free".to_string())]);
    let image = Image { imports, ..Image::of_function(0x1000, &[]) };
    let program = Program::new(Arc::new(image), semantics::all(), contracts::answer);
    let mut machine: Machine<Taint> = Machine::new(Rc::new(program));
    let stack = vec![Taint::constant(0); 64];
    machine.memory.add(Region::new("a frame", Role::Buffer, MEMORY, true, stack));
    machine.set_number(Register::RSP, MEMORY);
    // `free(NULL)`, with secrets in registers that the call may change.
    machine.set_number(Register::RDI, 0);
    for register in [Register::RAX, Register::RCX, Register::R11] {
        machine.set_general(register, &[Tainted::secret(0x5b); 8]);
    }
    machine.execute(IMPORT).expect("the function has a contract");
    for register in [Register::RAX, Register::RCX, Register::R11] {
        let bytes = machine.register(register);
        assert!(bytes[..8].iter().all(|byte| Taint::secret(*byte) == 0xff), "{register:?}");
    }
    assert!(machine.register(Register::RDI)[..8].iter().all(|byte| Taint::secret(*byte) == 0));
    assert!(!machine.flags.zero.defined);
}
