//! The state before and after one instruction.

use std::rc::Rc;
use std::sync::Arc;

use lockstep_proof::contracts;
use lockstep_proof::decoder::{Instruction, Operand};
use lockstep_proof::image::Image;
use lockstep_proof::machine::{Flags, Machine, Program, Stop};
use lockstep_proof::memory::{Region, Role};
use lockstep_proof::random::Random;
use lockstep_proof::semantics;
use lockstep_proof::taint::{Taint, Tainted};
use lockstep_proof::value::{Domain, Flag};

/// The address of the code for the interpreter.
const CODE: u64 = 0x1000;

/// Registers, flags and memory. The code in `native` uses the offsets of the fields.
#[repr(C, align(16))]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    /// X0 to X30.
    pub(crate) general: [u64; 31],
    /// NZCV.
    pub(crate) flags: u64,
    pub(crate) vectors: [[u8; 16]; 32],
    pub(crate) memory: [u8; 128],
    /// The stack pointer of the caller.
    pub(crate) stack: u64,
}

/// A generator of states.
pub(crate) struct Values(pub(crate) u64);

impl Values {
    /// A number that is often small, or has long runs of equal bits.
    fn number(&mut self) -> u64 {
        let mut random = Random(self.0);
        let (kind, number, count) = (random.next(), random.next(), random.next());
        self.0 = random.next();
        match kind % 8 {
            0 => 0,
            1 => u64::MAX,
            2 => number % 70,
            3 => 1 << (count % 64),
            _ => number,
        }
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.number().to_le_bytes()[..chunk.len()]);
        }
        bytes
    }

    pub(crate) fn state(&mut self) -> State {
        State {
            general: std::array::from_fn(|_| self.number()),
            flags: self.number() & 0xf << 28,
            vectors: std::array::from_fn(|_| self.bytes()),
            memory: self.bytes(),
            stack: 0,
        }
    }
}

impl State {
    pub(crate) const ZERO: State =
        State { general: [0; 31], flags: 0, vectors: [[0; 16]; 32], memory: [0; 128], stack: 0 };

    /// The address of the memory of this state.
    #[cfg(all(target_arch = "aarch64", target_os = "linux"))]
    pub(crate) fn memory_address(&self) -> u64 {
        self.memory.as_ptr().expose_provenance() as u64
    }

    /// The registers of the address of a memory operand.
    pub(crate) fn address_registers(i: &Instruction) -> Vec<usize> {
        let of_operand = |operand: &Operand| match *operand {
            Operand::RegPreIndex(base, ..) | Operand::RegPostIndex(base, _) => vec![base.into()],
            Operand::RegRegOffset(base, index, ..) => vec![base.into(), index.into()],
            _ => vec![],
        };
        i.operands.iter().flat_map(of_operand).collect()
    }

    /// Sets the registers of the address of a memory operand such that the access is inside of the memory.
    pub(crate) fn point_to_memory(&mut self, i: &Instruction, memory: u64, random: &mut Values) {
        for operand in i.operands {
            match operand {
                Operand::RegPreIndex(base, offset, _) => {
                    self.general[usize::from(base)] = (memory + 32).wrapping_add_signed(-i64::from(offset));
                }
                Operand::RegPostIndex(base, _) => self.general[usize::from(base)] = memory + 32,
                Operand::RegRegOffset(base, index, ..) => {
                    self.general[usize::from(index)] = random.number() % 3;
                    self.general[usize::from(base)] = memory + 16;
                }
                _ => {}
            }
        }
    }

    /// Applies a function to the parts of this state and two others.
    fn zip(&self, x: &State, y: &State, function: impl Fn(u64, u64, u64) -> u64) -> State {
        let bytes = |a: &[u8], x: &[u8], y: &[u8], place: usize| {
            function(a[place].into(), x[place].into(), y[place].into()) as u8
        };
        State {
            general: std::array::from_fn(|n| function(self.general[n], x.general[n], y.general[n])),
            flags: function(self.flags, x.flags, y.flags),
            vectors: std::array::from_fn(|n| {
                std::array::from_fn(|place| bytes(&self.vectors[n], &x.vectors[n], &y.vectors[n], place))
            }),
            memory: std::array::from_fn(|place| bytes(&self.memory, &x.memory, &y.memory, place)),
            stack: 0,
        }
    }

    /// This state, with the bits of `mask` from another state.
    pub(crate) fn combined(&self, mask: &State, other: &State) -> State {
        self.zip(mask, other, |x, mask, other| x & !mask | other & mask)
    }

    /// True if another state differs in no bit that is clear in `mask`.
    pub(crate) fn equals_except(&self, other: &State, mask: &State) -> bool {
        self.zip(other, mask, |x, other, mask| (x ^ other) & !mask) == State::ZERO
    }
}

fn tainted(value: u8, secret: u8) -> Tainted {
    Taint.marked(Taint::constant(value), Taint::constant(value ^ secret))
}

/// A machine whose program is one word.
pub(crate) fn machine(word: u32) -> Machine<Taint> {
    let image = Image { is_arm: true, ..Image::of_function(CODE, &word.to_le_bytes()) };
    Machine::new(Rc::new(Program::new(Arc::new(image), semantics::all(), contracts::answer)))
}

/// Executes the word of a machine in a state whose bits of `secret` are secret, and whose memory is at the address `memory`.
pub(crate) fn execute(
    machine: &Machine<Taint>,
    values: &State,
    secret: &State,
    memory: u64,
) -> Result<Machine<Taint>, Stop> {
    let mut m = machine.clone();
    for (number, (value, secret)) in values.general.iter().zip(secret.general).enumerate() {
        let (value, secret) = (value.to_le_bytes(), secret.to_le_bytes());
        m.set_general_number(number, std::array::from_fn(|place| tainted(value[place], secret[place])));
    }
    for (number, (value, secret)) in values.vectors.iter().zip(&secret.vectors).enumerate() {
        m.set_vector_number(number, std::array::from_fn(|place| tainted(value[place], secret[place])));
    }
    let flag = |bit: u32| Flag::new(values.flags >> bit & 1 == 1, secret.flags >> bit & 1 == 1);
    m.flags = Flags {
        sign: flag(31),
        zero: flag(30),
        carry: flag(29),
        overflow: flag(28),
        parity: Flag::UNDEFINED,
    };
    let bytes =
        values.memory.iter().zip(secret.memory).map(|(value, secret)| tainted(*value, secret)).collect();
    m.memory.add(Region::new("memory", Role::Buffer, memory, true, bytes));
    m.execute(CODE).map(|()| m)
}

/// The values and the secret bits of a machine whose memory is at an address.
pub(crate) fn read(m: &Machine<Taint>, memory: u64) -> (State, State) {
    let part = |part: fn(Tainted) -> u8, flag: fn(Flag) -> bool| {
        let Flags { sign, zero, carry, overflow, .. } = m.flags;
        let flag = |value: Flag, bit: u32| u64::from(flag(value)) << bit;
        let region = m.memory.region(memory).expect("the memory");
        State {
            general: std::array::from_fn(|number| u64::from_le_bytes(m.general_number(number).map(part))),
            flags: flag(sign, 31) | flag(zero, 30) | flag(carry, 29) | flag(overflow, 28),
            vectors: std::array::from_fn(|number| m.vector_number(number).map(part)),
            memory: std::array::from_fn(|place| part(region.bytes()[place])),
            stack: 0,
        }
    };
    (part(Taint::value, |flag| flag.value), part(Taint::secret, |flag| flag.secret))
}
