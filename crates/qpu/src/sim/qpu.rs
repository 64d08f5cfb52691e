//! One QPU: its registers, and the execution of instructions.

use super::pack::{pack_file_a, pack_mul, unpack, unpack_r4};
use super::shared::Shared;
use super::{FaultKind, Hazards};
use crate::isa::registers::{self, FILE};
use crate::isa::{
    AddOp, Alu, Branch, BranchCondition, Condition, Destination, ELEMENTS, INSTRUCTION_BYTES, Instruction,
    LoadImmediate, MulOp, Mux, Semaphore, Signal, SmallImmediate,
};

/// A register: the values of all elements.
pub type Vector = [u32; ELEMENTS];

/// Clocks of an instruction: the 16 elements are processed as four quads.
pub const CLOCKS_PER_INSTRUCTION: u64 = 4;

/// Instructions after a branch that are executed before its target.
const DELAY_SLOTS: u8 = 3;

/// The flags of all elements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Flags {
    zero: [bool; ELEMENTS],
    negative: [bool; ELEMENTS],
    carry: [bool; ELEMENTS],
}

/// What becomes of a QPU after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Runs,
    /// The instruction waits for another QPU, and is tried again.
    Waits,
    Ended,
}

/// One QPU.
pub(super) struct Qpu {
    number: u8,
    /// The general registers of files A and B.
    files: [[Vector; FILE as usize]; 2],
    /// r0 to r5.
    accumulators: [Vector; 6],
    flags: Flags,
    /// The address of the next instruction.
    pub(super) address: u32,
    /// The target of a branch, and the number of instructions before it.
    branch: Option<(u32, u8)>,
    /// The number of instructions before the end, once it has been signalled.
    ending: Option<u8>,
    /// The address of the next uniform.
    uniforms: u32,
    hazards: Hazards,
    /// The number of instructions so far.
    pub(super) instructions: u64,
    /// The number of clocks so far.
    pub(super) clocks: u64,
}

/// The results of an ALU.
#[derive(Clone, Copy)]
pub(super) struct Results {
    pub(super) values: Vector,
    /// The flag C of all elements, if flags are set.
    pub(super) carry: [bool; ELEMENTS],
}

impl Results {
    fn of_constant(load: &LoadImmediate) -> Results {
        Results { values: std::array::from_fn(|index| load.element(index)), carry: [false; ELEMENTS] }
    }

    /// Rotates by a number of elements: among all elements, or only within quads.
    fn rotated(self, by: usize, within_quads: bool) -> Results {
        let from = |index: usize| match within_quads {
            true => index & !3 | (index.wrapping_sub(by) & 3),
            false => index.wrapping_sub(by) & 15,
        };
        Results {
            values: std::array::from_fn(|index| self.values[from(index)]),
            carry: std::array::from_fn(|index| self.carry[from(index)]),
        }
    }
}

impl Flags {
    /// True for the elements that have a condition.
    fn have(&self, condition: Condition) -> [bool; ELEMENTS] {
        match condition {
            Condition::Never => [false; ELEMENTS],
            Condition::Always => [true; ELEMENTS],
            Condition::Zero => self.zero,
            Condition::NotZero => self.zero.map(|flag| !flag),
            Condition::Negative => self.negative,
            Condition::NotNegative => self.negative.map(|flag| !flag),
            Condition::Carry => self.carry,
            Condition::NoCarry => self.carry.map(|flag| !flag),
        }
    }

    /// Sets the flags of some elements.
    fn set(&mut self, results: &Results, elements: [bool; ELEMENTS]) {
        for index in (0..ELEMENTS).filter(|index| elements[*index]) {
            self.zero[index] = results.values[index] == 0;
            self.negative[index] = (results.values[index] as i32) < 0;
            self.carry[index] = results.carry[index];
        }
    }

    fn allow(&self, condition: BranchCondition) -> bool {
        use BranchCondition::*;
        let all = |flags: [bool; ELEMENTS]| flags.iter().all(|flag| *flag);
        let any = |flags: [bool; ELEMENTS]| flags.iter().any(|flag| *flag);
        match condition {
            AllZero => all(self.zero),
            AllNotZero => !any(self.zero),
            AnyZero => any(self.zero),
            AnyNotZero => !all(self.zero),
            AllNegative => all(self.negative),
            AllNotNegative => !any(self.negative),
            AnyNegative => any(self.negative),
            AnyNotNegative => !all(self.negative),
            AllCarry => all(self.carry),
            AllNoCarry => !any(self.carry),
            AnyCarry => any(self.carry),
            AnyNoCarry => !all(self.carry),
            Always => true,
        }
    }
}

impl Qpu {
    /// A QPU whose uniforms start at an address. All registers are zero; on hardware they have any values.
    pub(super) fn new(number: u8, uniforms: u32) -> Qpu {
        Qpu {
            number,
            files: [[[0; ELEMENTS]; FILE as usize]; 2],
            accumulators: [[0; ELEMENTS]; 6],
            flags: Flags::default(),
            address: 0,
            branch: None,
            ending: None,
            uniforms,
            hazards: Hazards::new(),
            instructions: 0,
            clocks: 0,
        }
    }

    /// A general register.
    pub(super) fn register(&self, is_b: bool, number: u8) -> &Vector {
        &self.files[usize::from(is_b)][usize::from(number)]
    }

    /// An accumulator.
    pub(super) fn accumulator(&self, number: u8) -> &Vector {
        &self.accumulators[usize::from(number)]
    }

    /// Executes an instruction, which is that of the present address.
    pub(super) fn step(
        &mut self,
        instruction: &Instruction,
        shared: &mut Shared<'_>,
    ) -> Result<Progress, FaultKind> {
        if let Instruction::Semaphore(semaphore) = instruction
            && !shared.change_semaphore(semaphore.number, semaphore.decrements)
        {
            return Ok(Progress::Waits);
        }
        self.hazards.check(instruction).map_err(FaultKind::Hazard)?;
        self.instructions += 1;
        self.clocks += CLOCKS_PER_INSTRUCTION;
        let mut ends = false;
        let mut taken = None;
        match instruction {
            Instruction::Alu(alu) => {
                self.alu(alu, shared)?;
                ends = alu.signal == Signal::End;
            }
            Instruction::LoadImmediate(load) => {
                self.write_constant(&load.to, Results::of_constant(load), shared)?
            }
            Instruction::Semaphore(Semaphore { to, number, decrements }) => {
                let value = u32::from(*number) | u32::from(*decrements) << 4;
                let results = Results { values: [value; ELEMENTS], carry: [false; ELEMENTS] };
                self.write_constant(to, results, shared)?;
            }
            Instruction::Branch(branch) => taken = self.branch(branch),
        }
        self.advance(taken);
        Ok(self.end_after(ends))
    }

    fn advance(&mut self, taken: Option<u32>) {
        self.address = match &mut self.branch {
            Some((target, 0)) => {
                let target = *target;
                self.branch = None;
                target
            }
            Some((_, slots)) => {
                *slots -= 1;
                self.address.wrapping_add(INSTRUCTION_BYTES)
            }
            None => self.address.wrapping_add(INSTRUCTION_BYTES),
        };
        if let Some(target) = taken {
            self.branch = Some((target, DELAY_SLOTS - 1));
        }
    }

    /// The end comes two instructions after its signal.
    fn end_after(&mut self, ends: bool) -> Progress {
        match &mut self.ending {
            None if ends => self.ending = Some(2),
            None => {}
            Some(1) => return Progress::Ended,
            Some(left) => *left -= 1,
        }
        Progress::Runs
    }

    /// The target of a branch, if it is taken.
    fn branch(&mut self, branch: &Branch) -> Option<u32> {
        if !self.flags.allow(branch.condition) {
            return None;
        }
        let after = self.address.wrapping_add(4 * INSTRUCTION_BYTES);
        // The value is that of element 15 (the addendum).
        let base = branch.register.map_or(0, |number| self.files[0][usize::from(number)][ELEMENTS - 1]);
        let start = if branch.is_relative { after } else { 0 };
        for (is_b, address) in [(branch.is_swapped, branch.link_add), (!branch.is_swapped, branch.link_mul)] {
            if address < FILE {
                self.files[usize::from(is_b)][usize::from(address)] = [after; ELEMENTS];
            }
        }
        Some(start.wrapping_add(base).wrapping_add_signed(branch.offset))
    }

    fn alu(&mut self, alu: &Alu, shared: &mut Shared<'_>) -> Result<(), FaultKind> {
        match alu.signal {
            Signal::None | Signal::End | Signal::SmallImmediate => {}
            Signal::LoadTmu0 | Signal::LoadTmu1 => return Err(FaultKind::NotSimulated("a texture unit")),
            _ => return Err(FaultKind::NotSimulated("a signal of shaders and debuggers")),
        }
        // Both ports are read once, whatever the operations use.
        let ports = [
            self.read(false, alu.read_a, shared)?,
            match alu.small_immediate() {
                Some(small) => Some([small.value(); ELEMENTS]),
                None => self.read(true, alu.read_b, shared)?,
            },
        ];
        let add = match alu.add {
            AddOp::Nop => None,
            op => {
                let [a, b] = self.inputs(alu, alu.add_inputs, op.inputs(), &ports, op.takes_floats())?;
                Some(op.compute_all(&a, &b, alu.to.sets_flags))
            }
        };
        let mul = match alu.mul {
            MulOp::Nop => None,
            op => {
                let [a, b] = self.inputs(alu, alu.mul_inputs, op.inputs(), &ports, op.is_float())?;
                Some(self.rotate(alu, op.compute_all(&a, &b, alu.to.sets_flags)))
            }
        };
        // Conditions are those before this instruction.
        let flags = self.flags;
        if alu.to.sets_flags {
            let of_add = add.map(|results| (results, alu.to.add_condition));
            if let Some((results, condition)) = of_add.or(mul.map(|results| (results, alu.to.mul_condition)))
            {
                self.flags.set(&results, flags.have(condition));
            }
        }
        let exact = |index: usize| self.exact_sum(alu, &ports, index);
        let exact: [i64; ELEMENTS] =
            if alu.to.pack == 8 { std::array::from_fn(exact) } else { [0; ELEMENTS] };
        for (is_mul, results, is_float) in
            [(false, add, alu.add.gives_float()), (true, mul, alu.mul.is_float())]
        {
            if let Some(results) = results {
                self.write(&alu.to, is_mul, &results, is_float, &exact, &flags, shared)?;
            }
        }
        Ok(())
    }

    /// The sum or difference of integers without overflow, for limits to 32 bits.
    fn exact_sum(&self, alu: &Alu, ports: &[Option<Vector>; 2], index: usize) -> i64 {
        let inputs = self.inputs(alu, alu.add_inputs, 2, ports, false);
        let [a, b] = inputs.map_or([0; 2], |inputs| inputs.map(|vector| i64::from(vector[index] as i32)));
        if alu.add == AddOp::Sub { a - b } else { a + b }
    }

    fn rotate(&self, alu: &Alu, results: Results) -> Results {
        let by = match alu.small_immediate() {
            Some(SmallImmediate::Rotate(by)) => by,
            Some(SmallImmediate::RotateByR5) => self.accumulators[5][0] as u8 & 15,
            _ => return results,
        };
        let all_are_accumulators = alu.mul_inputs.iter().all(|input| input.code() < 4);
        results.rotated(usize::from(by), !all_are_accumulators)
    }

    /// The inputs of an operation.
    fn inputs(
        &self,
        alu: &Alu,
        inputs: [Mux; 2],
        count: usize,
        ports: &[Option<Vector>; 2],
        is_float: bool,
    ) -> Result<[Vector; 2], FaultKind> {
        let one = |place: usize| {
            if place >= count {
                return Ok([0; ELEMENTS]);
            }
            match inputs[place] {
                Mux::A => {
                    let value = ports[0].ok_or(FaultKind::NoInput)?;
                    match alu.unpack {
                        0 => Ok(value),
                        _ if alu.to.pm => Ok(value),
                        mode if alu.read_a >= FILE => Err(FaultKind::Pack(mode)),
                        mode => Ok(value.map(|value| unpack(mode, value, is_float))),
                    }
                }
                Mux::B => ports[1].ok_or(FaultKind::NoInput),
                Mux::R4 if alu.to.pm => {
                    Ok(self.accumulators[4].map(|value| unpack_r4(alu.unpack, value, is_float)))
                }
                accumulator => Ok(self.accumulators[usize::from(accumulator.code())]),
            }
        };
        Ok([one(0)?, one(1)?])
    }

    /// Reads a register of a file. `None` for the address that reads nothing.
    fn read(&mut self, is_b: bool, address: u8, shared: &Shared<'_>) -> Result<Option<Vector>, FaultKind> {
        Ok(Some(match address {
            0..FILE => self.files[usize::from(is_b)][usize::from(address)],
            registers::NOP => return Ok(None),
            registers::UNIFORM => {
                let value = shared.load(self.uniforms)?;
                self.uniforms = self.uniforms.wrapping_add(4);
                [value; ELEMENTS]
            }
            registers::ELEMENT_NUMBER if !is_b => std::array::from_fn(|index| index as u32),
            registers::QPU_NUMBER => [u32::from(self.number); ELEMENTS],
            registers::VPM..=registers::DMA_WAIT => return Err(FaultKind::NotSimulated("the VPM")),
            registers::MUTEX => return Err(FaultKind::NotSimulated("the mutex")),
            _ => return Err(FaultKind::NotSimulated("a register of shaders")),
        }))
    }

    fn write_constant(
        &mut self,
        to: &Destination,
        results: Results,
        shared: &mut Shared<'_>,
    ) -> Result<(), FaultKind> {
        let flags = self.flags;
        if to.sets_flags {
            self.flags.set(&results, flags.have(to.add_condition));
        }
        let exact = results.values.map(|value| i64::from(value as i32));
        for is_mul in [false, true] {
            self.write(to, is_mul, &results, false, &exact, &flags, shared)?;
        }
        Ok(())
    }

    /// Writes the results of an ALU.
    #[expect(clippy::too_many_arguments, reason = "what packing depends on")]
    fn write(
        &mut self,
        to: &Destination,
        is_mul: bool,
        results: &Results,
        is_float: bool,
        exact: &[i64; ELEMENTS],
        flags: &Flags,
        shared: &mut Shared<'_>,
    ) -> Result<(), FaultKind> {
        let is_b = is_mul != to.is_swapped;
        let (address, condition) =
            if is_mul { (to.mul, to.mul_condition) } else { (to.add, to.add_condition) };
        if address == registers::NOP || condition == Condition::Never {
            return Ok(());
        }
        let elements = flags.have(condition);
        let place = match address {
            0..FILE => &mut self.files[usize::from(is_b)][usize::from(address)],
            registers::R0..36 => &mut self.accumulators[usize::from(address - registers::R0)],
            _ => {
                if to.pm && is_mul && to.pack != 0 {
                    return Err(FaultKind::Pack(to.pack));
                }
                return self.write_special(is_b, address, &results.values, elements, shared);
            }
        };
        let packs_file_a = !to.pm && !is_b && address < FILE;
        if to.pack == 0 && condition == Condition::Always {
            *place = results.values;
            return Ok(());
        }
        for index in (0..ELEMENTS).filter(|index| elements[*index]) {
            let (old, value) = (place[index], results.values[index]);
            place[index] = if packs_file_a {
                pack_file_a(to.pack, old, value, is_float, exact[index])
            } else if to.pm && is_mul {
                pack_mul(to.pack, old, value).ok_or(FaultKind::Pack(to.pack))?
            } else {
                value
            };
        }
        Ok(())
    }

    fn write_special(
        &mut self,
        is_b: bool,
        address: u8,
        values: &Vector,
        elements: [bool; ELEMENTS],
        shared: &mut Shared<'_>,
    ) -> Result<(), FaultKind> {
        match address {
            registers::R5 => {
                // File A: element 0 of each quad; file B: element 0.
                let from = |index: usize| if is_b { 0 } else { index & !3 };
                for index in (0..ELEMENTS).filter(|index| elements[from(*index)]) {
                    self.accumulators[5][index] = values[from(index)];
                }
            }
            registers::HOST_INTERRUPT => {
                // Only a value other than zero interrupts (the addendum).
                let interrupts = (0..ELEMENTS).any(|index| elements[index] && values[index] != 0);
                shared.interrupts += u64::from(interrupts);
            }
            registers::UNIFORMS_ADDRESS if !is_b && elements[0] => self.uniforms = values[0],
            registers::UNIFORMS_ADDRESS if elements[0] => {
                self.uniforms = self.uniforms.wrapping_add(values[0])
            }
            registers::UNIFORMS_ADDRESS => {}
            registers::VPM..=registers::DMA_ADDRESS => return Err(FaultKind::NotSimulated("the VPM")),
            registers::MUTEX => return Err(FaultKind::NotSimulated("the mutex")),
            registers::RECIPROCAL..=registers::LOGARITHM => {
                return Err(FaultKind::NotSimulated("a special function"));
            }
            registers::TMU_NOSWAP | registers::TMU0_S..64 => {
                return Err(FaultKind::NotSimulated("a texture unit"));
            }
            _ => return Err(FaultKind::NotSimulated("a register of shaders")),
        }
        Ok(())
    }
}
