//! Tests of kernels as functions. Programs call the functions by the calling convention of the SPU.

use lockstep_reference as reference;
use lockstep_spu::asm::assemble;
use lockstep_spu::isa::Reg;
use lockstep_spu::kernels::{Function, KERNELS, Loop, Mode, Named, PUBLISHED};
use lockstep_spu::sim::{Machine, Run};

/// Addresses in the local store: the data, the round keys, and the stack pointer.
const DATA: usize = 0x2_0000;
const KEYS: usize = 0x1_f000;
const STACK: usize = 0x3_ffe0;

fn kernel(name: &str) -> &'static Named {
    KERNELS.iter().chain(PUBLISHED).find(|kernel| kernel.name == name).unwrap()
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 29 + at / 16) as u8).collect()
}

/// The preferred slot.
fn scalar(value: usize) -> u128 {
    (value as u128) << 96
}

/// Returns the value of a register that a function must preserve.
fn pattern(number: u8) -> u128 {
    u128::from_be_bytes([number; 16]) ^ 0xa5
}

/// Returns a program that calls the function. Its text begins with the instruction at an address.
fn caller(function: &Function, address: usize) -> String {
    format!(
        ".text\n.space {address}\nmain: brsl $lr, {}\nstop 7\n.align 4\n{}",
        function.name,
        function.source()
    )
}

/// Calls the function on the data. Returns the machine after the call.
fn call(
    function: &Function,
    address: usize,
    aes: &reference::Aes,
    state: &[u8; 16],
    data: &[u8],
) -> (Machine, Run) {
    let mut image =
        assemble("caller.s", &caller(function, address)).unwrap_or_else(|error| panic!("{error}"));
    image.entry = address as u32;
    let mut machine = Machine::new();
    machine.load(&image);
    for (round, key) in aes.round_keys().iter().enumerate() {
        machine.memory_mut(KEYS + 16 * round..KEYS + 16 * round + 16).copy_from_slice(key);
    }
    machine.memory_mut(DATA..DATA + data.len()).copy_from_slice(data);
    for number in 0..128 {
        machine.set_register(Reg::new(number), pattern(number));
    }
    // The second word of the stack pointer is the number of free bytes of the stack.
    machine.set_register(Reg::new(1), scalar(STACK) | 0x4000 << 64);
    let arguments = [DATA, KEYS, data.len() / 16].map(scalar);
    for (number, value) in (3..).zip(arguments.into_iter().chain([u128::from_be_bytes(*state)])) {
        machine.set_register(Reg::new(number), value);
    }
    let run = machine.run(1_000_000).unwrap_or_else(|fault| panic!("{}: {fault}", function.name));
    (machine, run)
}

/// Returns the result of the mode, and the value that the function returns.
fn expected(mode: Mode, aes: &reference::Aes, state: &[u8; 16], data: &[u8]) -> (Vec<u8>, Option<u128>) {
    match mode {
        Mode::Ctr => {
            let counter = u128::from_be_bytes(*state);
            let low = (counter as u32).wrapping_add(data.len() as u32 / 16);
            (
                reference::ctr::apply32(aes, state, data),
                Some(counter & !u128::from(u32::MAX) | u128::from(low)),
            )
        }
        Mode::CbcEncrypt => {
            let output = reference::cbc::encrypt(aes, state, data);
            let last = *output.last_chunk().unwrap_or(state);
            (output, Some(u128::from_be_bytes(last)))
        }
        _ => (reference::ecb::encrypt(aes, data), None),
    }
}

#[test]
fn functions_keep_the_calling_convention() {
    let mut state = [0x5a; 16];
    state[12..].copy_from_slice(&u32::MAX.to_be_bytes());
    for name in [
        "published/ctr1",
        "published/ctr4",
        "spu/ctr2",
        "spu/ctr4a",
        "spu/cbc2",
        "published/cbc2",
        "spu/ecb4",
    ] {
        let of = kernel(name).loops[0].1;
        for (key, rounds) in [(16, 10), (24, 12), (32, 14)] {
            let aes = reference::Aes::new(&bytes(key));
            let function = of.function(rounds, "aes").unwrap_or_else(|error| panic!("{name}: {error}"));
            let group = function.group as usize;
            // The code runs at any address.
            for (blocks, address) in [(group, 0), (5 * group, 0x120), (0, 0)] {
                let data = bytes(16 * blocks);
                let (machine, run) = call(&function, address, &aes, &state, &data);
                assert_eq!(run.code, 7, "{name}: the function returns to its caller");
                let (output, result) = expected(of.mode, &aes, &state, &data);
                assert!(machine.memory(DATA..DATA + data.len()) == output, "{name}: {blocks} blocks");
                let returned = machine.register(Reg::new(3));
                assert!(result.is_none_or(|result| returned == result), "{name}: {returned:x}");
                assert_eq!(
                    machine.register(Reg::new(1)),
                    scalar(STACK) | 0x4000 << 64,
                    "{name}: the stack pointer"
                );
                for number in 80..128 {
                    assert_eq!(machine.register(Reg::new(number)), pattern(number), "{name}: ${number}");
                }
            }
        }
    }
}

/// A function for groups of blocks processes whole groups, and returns the counter block after these groups.
#[test]
fn functions_round_up() {
    let function = kernel("spu/ctr4a").loops[0].1.function(10, "aes_ctr").unwrap();
    assert_eq!(function.group, 4);
    let (aes, state) = (reference::Aes::new(&bytes(16)), [9; 16]);
    let data = bytes(16 * 5);
    let (machine, _) = call(&function, 0, &aes, &state, &data);
    let mut whole = data.clone();
    whole.resize(16 * 8, 0);
    let (output, counter) = expected(Mode::Ctr, &aes, &state, &whole);
    assert!(machine.memory(DATA..DATA + whole.len()) == output);
    assert_eq!(Some(machine.register(Reg::new(3))), counter);
}

/// No function leaves a round key in a register, or in the local store outside of the keys of its caller.
#[test]
fn functions_leave_no_keys() {
    let aes = reference::Aes::new(&bytes(32));
    let functions = KERNELS.iter().chain(PUBLISHED).filter_map(|kernel| {
        let function = kernel.loops[0].1.function(14, "aes").ok()?;
        Some((kernel.name, function))
    });
    let mut tested = 0;
    for (name, function) in functions {
        let data = bytes(16 * 2 * function.group as usize);
        let (machine, _) = call(&function, 0, &aes, &[9; 16], &data);
        let elsewhere = [machine.memory(0..KEYS), machine.memory(DATA + data.len()..0x4_0000)];
        let registers: Vec<[u8; 16]> =
            (0..128).map(|number| machine.register(Reg::new(number)).to_be_bytes()).collect();
        for key in aes.round_keys() {
            let is_key = |block: &[u8]| block == key;
            assert!(elsewhere.iter().all(|memory| !memory.chunks_exact(16).any(is_key)), "{name}: memory");
            assert!(!registers.contains(key), "{name}: registers");
        }
        tested += 1;
    }
    assert!(tested >= 10, "{tested} functions");
}

#[test]
fn loops_that_cannot_be_functions_are_refused() {
    for (name, expected) in [
        ("spu/tab2", "a kernel by lookups in registers"),
        ("spu/vperm", "a kernel by lookups in registers"),
        ("spu/ctr0", "a kernel by lookups in registers"),
    ] {
        let error = kernel(name).loops[0].1.function(10, "aes").err().unwrap();
        assert!(error.contains(expected), "{name}: {error}");
    }
    let of = kernel("spu/ctr4a").loops[0].1;
    let error = Loop { mode: Mode::CfbDecrypt, ..of }.function(10, "aes").err().unwrap();
    assert!(error.contains("ECB and CBC encryption"), "{error}");
    let error = Loop { blocks: 3, ..of }.function(10, "aes").err().unwrap();
    assert!(error.contains("a power of two"), "{error}");
}
