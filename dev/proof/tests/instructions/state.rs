//! The state before and after one instruction.

use std::rc::Rc;
use std::sync::Arc;

use iced_x86::Register;
use lockstep_proof::contracts;
use lockstep_proof::image::Image;
use lockstep_proof::machine::{Flags, Machine, Program, Stop};
use lockstep_proof::memory::{Region, Role};
use lockstep_proof::semantics;
use lockstep_proof::taint::{Taint, Tainted};
use lockstep_proof::value::{Domain, Flag};

/// Registers, flags and the memory to which RDI points.
#[repr(C, align(64))]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) general: [u64; 16],
    pub(crate) vectors: [[u8; 64]; 16],
    pub(crate) memory: [u8; 64],
    pub(crate) masks: [u64; 8],
    pub(crate) flags: u64,
}

impl State {
    /// A state of zeros. As a mask of secret bits, it means that nothing is secret.
    pub(crate) const ZERO: State =
        State { general: [0; 16], vectors: [[0; 64]; 16], memory: [0; 64], masks: [0; 8], flags: 0 };
}

/// The bits of the flags in RFLAGS, in the order of [`flags`].
pub(crate) const FLAG_BITS: [u32; 5] = [0, 2, 6, 7, 11];

/// The flags in the order of their bits.
pub(crate) fn flags(flags: &Flags) -> [Flag; 5] {
    [flags.carry, flags.parity, flags.zero, flags.sign, flags.overflow]
}

/// A generator of test values (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// A number that is often small, or has long runs of equal bits.
    pub(crate) fn number(&mut self) -> u64 {
        match self.next() % 8 {
            0 => 0,
            1 => u64::MAX,
            2 => self.next() % 70,
            3 => 1 << (self.next() % 64),
            _ => self.next(),
        }
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.number().to_le_bytes()[..chunk.len()]);
        }
        bytes
    }

    /// A state whose RDI points to memory at `memory`.
    pub(crate) fn state(&mut self, memory: u64) -> State {
        let mut general: [u64; 16] = std::array::from_fn(|_| self.number());
        general[Register::RDI.number()] = memory;
        State {
            general,
            vectors: std::array::from_fn(|_| self.bytes()),
            masks: std::array::from_fn(|_| self.next()),
            flags: self.next() & FLAG_BITS.iter().fold(0, |bits, bit| bits | 1 << bit),
            memory: self.bytes(),
        }
    }
}

/// A machine with one instruction, in the state `state` whose secret bits are those of `secret`.
pub(crate) fn machine(code: &[u8], state: &State, secret: &State) -> Machine<Taint> {
    const CODE: u64 = 0x1000;
    let image = Image::of_function(CODE, code);
    let mut machine =
        Machine::new(Rc::new(Program::new(Arc::new(image), semantics::all(), contracts::answer)));
    let join = |values: &[u8], secrets: &[u8]| -> Vec<Tainted> {
        values
            .iter()
            .zip(secrets)
            .map(|(value, secret)| {
                let all = Tainted::secret(*value);
                let kept = Taint.and(all, Taint::constant(*secret));
                Taint.or(kept, Taint::constant(value & !secret))
            })
            .collect()
    };
    for index in 0..16 {
        let (value, secret) = (state.general[index].to_le_bytes(), secret.general[index].to_le_bytes());
        machine.set_general(Register::RAX + index as u32, &join(&value, &secret));
    }
    for index in 0..16 {
        let bytes = join(&state.vectors[index], &secret.vectors[index]).try_into().expect("64 bytes");
        machine.set_vector(Register::ZMM0 + index as u32, &bytes, false);
    }
    for index in 0..8 {
        let (value, secret) = (state.masks[index].to_le_bytes(), secret.masks[index].to_le_bytes());
        machine.masks[index] = join(&value, &secret).try_into().expect("8 bytes");
    }
    let flag = |bit: u32| Flag::new(state.flags >> bit & 1 == 1, secret.flags >> bit & 1 == 1);
    let [carry, parity, zero, sign, overflow] = FLAG_BITS.map(flag);
    machine.flags = Flags { carry, parity, zero, sign, overflow };
    let memory = join(&state.memory, &secret.memory);
    let base = state.general[Register::RDI.number()];
    machine.memory.add(Region::new("memory", Role::Buffer, base, true, memory));
    machine
}

/// Executes the instruction of a machine.
pub(crate) fn execute(machine: &mut Machine<Taint>) -> Result<(), Stop> {
    machine.execute(0x1000)
}

/// Values or secret bits of a machine.
pub(crate) fn read(
    machine: &Machine<Taint>,
    memory: u64,
    part: fn(Tainted) -> u8,
    of_flag: fn(Flag) -> bool,
) -> State {
    let number = |bytes: &[Tainted]| u64::from_le_bytes(std::array::from_fn(|i| part(bytes[i])));
    let vector = |index: usize| machine.register(Register::ZMM0 + index as u32).map(part);
    let region = machine.memory.region(memory).expect("the memory of the test");
    State {
        general: std::array::from_fn(|index| number(&machine.register(Register::RAX + index as u32)[..8])),
        vectors: std::array::from_fn(vector),
        masks: std::array::from_fn(|index| number(&machine.masks[index])),
        flags: flags(&machine.flags)
            .into_iter()
            .zip(FLAG_BITS)
            .fold(0, |bits, (flag, bit)| bits | u64::from(of_flag(flag)) << bit),
        memory: std::array::from_fn(|index| part(region.bytes()[index])),
    }
}
