//! Executes operations: reads their inputs, and makes the effects of writes to each register.

use zeroize::Zeroize;

use super::alu::Results;
use super::pack::{pack_file_a, pack_mul, unpack, unpack_r4};
use super::qpu::{Qpu, Vector};
use super::shared::Shared;
use super::vpm::Access;
use super::{FaultKind, QPUS_PER_SLICE, tmu};
use crate::isa::registers::{self, FILE};
use crate::isa::{
    AddOp, Alu, Condition, Destination, ELEMENTS, Instruction, MulOp, Mux, Signal, SmallImmediate,
};

/// The values that an instruction reads through the two ports from registers other than general registers.
type Ports = [Option<Vector>; 2];

/// The values of all small immediates.
static SMALL_IMMEDIATES: [Vector; 64] = {
    let mut all = [[0; ELEMENTS]; 64];
    let mut code = 0;
    while code < all.len() {
        all[code] = [SmallImmediate::of_code(code as u8).value(); ELEMENTS];
        code += 1;
    }
    all
};

impl Qpu {
    pub(super) fn alu(&mut self, alu: &Alu, shared: &mut Shared<'_>) -> Result<(), FaultKind> {
        let has_small_immediate = alu.signal == Signal::SmallImmediate;
        // Each port is read exactly once, even if no operation or more than one operation uses its value.
        let a = self.read(false, alu.read_a, shared)?;
        let b = match alu.read_b {
            _ if has_small_immediate => None,
            // If both ports read this register, both get the same uniform or vector.
            registers::UNIFORM | registers::VPM if alu.read_b == alu.read_a => a,
            address => self.read(true, address, shared)?,
        };
        let ports = [a, b];
        let (mut add, mut mul) = (Results::NONE, Results::NONE);
        if alu.add != AddOp::Nop {
            let (mut first, mut second) = (None, None);
            let (inputs, floats) = (alu.add_inputs, alu.add.takes_floats());
            let a = self.input(alu, inputs[0], &ports, floats, &mut first)?;
            let b = if alu.add.inputs() == 2 {
                self.input(alu, inputs[1], &ports, floats, &mut second)?
            } else {
                a
            };
            alu.add.compute_all(a, b, alu.to.sets_flags, &mut add);
        }
        if alu.mul != MulOp::Nop {
            let (mut first, mut second) = (None, None);
            let (inputs, floats) = (alu.mul_inputs, alu.mul.is_float());
            let a = self.input(alu, inputs[0], &ports, floats, &mut first)?;
            let b = self.input(alu, inputs[1], &ports, floats, &mut second)?;
            alu.mul.compute_all(a, b, alu.to.sets_flags && alu.add == AddOp::Nop, &mut mul);
            if has_small_immediate {
                self.rotate(alu, &mut mul);
            }
        }
        let exact = match alu.to.pack {
            8 if !alu.to.pm && matches!(alu.add, AddOp::Add | AddOp::Sub) => {
                Some(self.exact_sums(alu, &ports)?)
            }
            _ => None,
        };
        // The conditions use the flags of earlier instructions, because this instruction has not changed the flags yet.
        if alu.add != AddOp::Nop && self.is_written(alu.to.add, alu.to.add_condition) {
            self.write(&alu.to, false, &add.values, alu.add.gives_float(), exact.as_ref(), shared)?;
        }
        if alu.mul != MulOp::Nop && self.is_written(alu.to.mul, alu.to.mul_condition) {
            self.write(&alu.to, true, &mul.values, alu.mul.is_float(), None, shared)?;
        }
        if alu.to.sets_flags {
            match (alu.add, alu.mul) {
                (AddOp::Nop, MulOp::Nop) => {}
                (AddOp::Nop, _) => self.flags.set(&mul, alu.to.mul_condition),
                _ => self.flags.set(&add, alu.to.add_condition),
            }
        }
        match alu.signal {
            Signal::None | Signal::End | Signal::SmallImmediate => Ok(()),
            Signal::LoadTmu0 => self.load_result(0, shared),
            Signal::LoadTmu1 => self.load_result(1, shared),
            _ => Err(FaultKind::NotSimulated("a signal of shaders and debuggers")),
        }
    }

    /// The first input of the mul ALU, which is a general register or an accumulator.
    pub(super) fn mul_input(&self, instruction: &Instruction) -> Result<Vector, FaultKind> {
        let Instruction::Alu(alu) = instruction else { return Err(FaultKind::NoInput) };
        self.input(alu, alu.mul_inputs[0], &[None, None], false, &mut None).copied()
    }

    /// Waits until a clock. Returns the number of clocks for which the QPU waits.
    fn wait_until(&mut self, clock: u64) -> u64 {
        let stall = clock.saturating_sub(self.clocks);
        self.clocks += stall;
        stall
    }

    /// Moves the next result of a texture unit to r4.
    fn load_result(&mut self, unit: usize, shared: &mut Shared<'_>) -> Result<(), FaultKind> {
        let (words, ready_at) = self.requests[unit].front_mut().ok_or(FaultKind::NoRequest)?;
        self.accumulators[4] = *words;
        // The words are wiped here, because the queue does not wipe values that it removes.
        words.zeroize();
        let ready_at = *ready_at;
        self.requests[unit].pop_front();
        shared.counters.tmu_stall_clocks += self.wait_until(ready_at);
        Ok(())
    }

    /// Returns the sums or differences of integers without overflow, for results that are limited to 32 bits.
    fn exact_sums(&self, alu: &Alu, ports: &Ports) -> Result<[i64; ELEMENTS], FaultKind> {
        let (mut first, mut second) = (None, None);
        let a = self.input(alu, alu.add_inputs[0], ports, false, &mut first)?;
        let b = self.input(alu, alu.add_inputs[1], ports, false, &mut second)?;
        Ok(std::array::from_fn(|index| {
            let (a, b) = (i64::from(a[index] as i32), i64::from(b[index] as i32));
            if alu.add == AddOp::Sub { a - b } else { a + b }
        }))
    }

    fn rotate(&self, alu: &Alu, results: &mut Results) {
        let by = match alu.small_immediate() {
            Some(SmallImmediate::Rotate(by)) => by,
            Some(SmallImmediate::RotateByR5) => self.accumulators[5][0] as u8 & 15,
            _ => return,
        };
        let all_are_accumulators = alu.mul_inputs.iter().all(|input| input.code() < 4);
        *results = results.rotated(usize::from(by), !all_are_accumulators);
    }

    /// Returns an input of an operation. A value that is not in a register is stored in `unpacked`.
    fn input<'v>(
        &'v self,
        alu: &Alu,
        input: Mux,
        ports: &'v Ports,
        is_float: bool,
        unpacked: &'v mut Option<Vector>,
    ) -> Result<&'v Vector, FaultKind> {
        match input {
            Mux::A => {
                let value = match alu.read_a {
                    register @ 0..FILE => &self.files[0][usize::from(register)],
                    _ => ports[0].as_ref().ok_or(FaultKind::NoInput)?,
                };
                match alu.unpack {
                    0 => Ok(value),
                    _ if alu.to.pm => Ok(value),
                    mode if alu.read_a >= FILE => Err(FaultKind::Pack(mode)),
                    mode => Ok(unpacked.insert(value.map(|value| unpack(mode, value, is_float)))),
                }
            }
            Mux::B if alu.signal == Signal::SmallImmediate => {
                Ok(&SMALL_IMMEDIATES[usize::from(alu.read_b & 63)])
            }
            Mux::B => match alu.read_b {
                register @ 0..FILE => Ok(&self.files[1][usize::from(register)]),
                _ => ports[1].as_ref().ok_or(FaultKind::NoInput),
            },
            Mux::R4 if alu.to.pm && alu.unpack != 0 => {
                let unpack = |value| unpack_r4(alu.unpack, value, is_float);
                Ok(unpacked.insert(self.accumulators[4].map(unpack)))
            }
            accumulator => Ok(&self.accumulators[usize::from(accumulator.code())]),
        }
    }

    /// Reads a register of a file that is not a general register. Returns `None` for general registers, and for the address
    /// NOP, which reads nothing.
    #[inline]
    fn read(
        &mut self,
        is_b: bool,
        address: u8,
        shared: &mut Shared<'_>,
    ) -> Result<Option<Vector>, FaultKind> {
        match address {
            0..FILE | registers::NOP => Ok(None),
            _ => self.read_special(is_b, address, shared).map(Some),
        }
    }

    fn read_special(
        &mut self,
        is_b: bool,
        address: u8,
        shared: &mut Shared<'_>,
    ) -> Result<Vector, FaultKind> {
        Ok(match address {
            registers::UNIFORM => {
                let value = shared.uniform(self.number, self.uniforms)?;
                self.uniforms = self.uniforms.wrapping_add(4);
                [value; ELEMENTS]
            }
            registers::ELEMENT_NUMBER if !is_b => std::array::from_fn(|index| index as u32),
            registers::QPU_NUMBER if is_b => [u32::from(self.number); ELEMENTS],
            registers::VPM => self.read_vpm(shared)?,
            registers::DMA_BUSY => {
                let engine = if is_b { &self.stores } else { &self.loads };
                [u32::from(engine.done_at > self.clocks); ELEMENTS]
            }
            registers::DMA_WAIT if is_b => {
                shared.counters.store_stall_clocks += self.wait_until(self.stores.done_at);
                [0; ELEMENTS]
            }
            registers::DMA_WAIT => {
                shared.counters.load_stall_clocks += self.wait_until(self.loads.done_at);
                [0; ELEMENTS]
            }
            // The QPU has locked the mutex before it executes the instruction, so the read only returns zeros.
            registers::MUTEX => [0; ELEMENTS],
            _ => return Err(FaultKind::NotSimulated("a register of shaders")),
        })
    }

    fn read_vpm(&mut self, shared: &mut Shared<'_>) -> Result<Vector, FaultKind> {
        let access = self.vpm_reads.as_mut().filter(|access| access.left > 0).ok_or(FaultKind::NoSetup)?;
        access.left -= 1;
        shared.vpm.read(access, self.clocks)
    }

    /// Writes a constant as the result of both ALUs.
    pub(super) fn write_constant(
        &mut self,
        to: &Destination,
        values: Vector,
        shared: &mut Shared<'_>,
    ) -> Result<(), FaultKind> {
        let exact = values.map(|value| i64::from(value as i32));
        for (is_mul, address, condition) in
            [(false, to.add, to.add_condition), (true, to.mul, to.mul_condition)]
        {
            if self.is_written(address, condition) {
                self.write(to, is_mul, &values, false, Some(&exact), shared)?;
            }
        }
        if to.sets_flags {
            self.flags.set(&Results::of(values), to.add_condition);
        }
        Ok(())
    }

    /// False if a result is written to no register. It may still set the flags.
    fn is_written(&self, address: u8, condition: Condition) -> bool {
        address != registers::NOP && condition != Condition::Never
    }

    /// Writes the result of an ALU to the elements that meet its condition. `exact` is the sum or the difference without
    /// overflow, for results that are limited to 32 bits.
    fn write(
        &mut self,
        to: &Destination,
        is_mul: bool,
        values: &Vector,
        is_float: bool,
        exact: Option<&[i64; ELEMENTS]>,
        shared: &mut Shared<'_>,
    ) -> Result<(), FaultKind> {
        let is_b = is_mul != to.is_swapped;
        let (address, condition) =
            if is_mul { (to.mul, to.mul_condition) } else { (to.add, to.add_condition) };
        let place = match address {
            0..FILE => &mut self.files[usize::from(is_b)][usize::from(address)],
            registers::R0..36 => &mut self.accumulators[usize::from(address - registers::R0)],
            _ => {
                if to.pm && is_mul && to.pack != 0 {
                    return Err(FaultKind::Pack(to.pack));
                }
                let mask = self.flags.have(condition);
                return self.write_special(is_b, address, values, &mask, shared);
            }
        };
        let packs_file_a = to.pack != 0 && !to.pm && !is_b && address < FILE;
        let packs_mul = to.pack != 0 && to.pm && is_mul;
        if !packs_file_a && !packs_mul {
            match condition {
                Condition::Always => *place = *values,
                _ => merge(place, values, &self.flags.have(condition)),
            }
            return Ok(());
        }
        let mut packed = *values;
        if packs_file_a {
            for index in 0..ELEMENTS {
                let exact = exact.map_or(i64::from(values[index] as i32), |exact| exact[index]);
                packed[index] = pack_file_a(to.pack, place[index], values[index], is_float, exact);
            }
        } else {
            for index in 0..ELEMENTS {
                let value = pack_mul(to.pack, place[index], values[index]);
                packed[index] = value.ok_or(FaultKind::Pack(to.pack))?;
            }
        }
        merge(place, &packed, &self.flags.have(condition));
        Ok(())
    }

    /// Writes r5, or a register whose write has an effect other than storing a value. `mask` selects the elements for which it is
    /// written.
    fn write_special(
        &mut self,
        is_b: bool,
        address: u8,
        values: &Vector,
        mask: &Vector,
        shared: &mut Shared<'_>,
    ) -> Result<(), FaultKind> {
        match address {
            registers::R5 => {
                // File A: each quad gets its element 0. File B: all elements get element 0.
                let from = |index: usize| if is_b { 0 } else { index & !3 };
                for index in (0..ELEMENTS).filter(|index| mask[from(*index)] != 0) {
                    self.accumulators[5][index] = values[from(index)];
                }
            }
            registers::HOST_INTERRUPT => {
                // Only a nonzero value causes an interrupt (vc4asm's addendum).
                if (0..ELEMENTS).any(|index| values[index] & mask[index] != 0) {
                    shared.interrupt(self.clocks);
                }
            }
            registers::TMU_NOSWAP => self.is_unswapped = values[0] & mask[0] != 0,
            registers::UNIFORMS_ADDRESS if mask[0] == 0 => {}
            registers::UNIFORMS_ADDRESS if is_b => self.uniforms = self.uniforms.wrapping_add(values[0]),
            registers::UNIFORMS_ADDRESS => self.uniforms = values[0],
            registers::RECIPROCAL..=registers::LOGARITHM => self.special_function(address, values, mask),
            registers::MUTEX => shared.unlock(self.number)?,
            registers::TMU0_S => self.request(0, values, shared)?,
            registers::TMU1_S => self.request(1, values, shared)?,
            57..60 | 61..64 => {
                return Err(FaultKind::NotSimulated("a texture unit with coordinates"));
            }
            registers::VPM..=registers::DMA_ADDRESS => self.write_vpm(is_b, address, values, shared)?,
            _ => return Err(FaultKind::NotSimulated("a register of shaders")),
        }
        Ok(())
    }

    /// Computes a special function with `f32`. The hardware computes only an approximation of the function.
    fn special_function(&mut self, address: u8, values: &Vector, mask: &Vector) {
        for index in (0..ELEMENTS).filter(|index| mask[*index] != 0) {
            let value = f32::from_bits(values[index]);
            let result = match address {
                registers::RECIPROCAL => value.recip(),
                registers::RECIPROCAL_SQUARE_ROOT => value.sqrt().recip(),
                registers::EXPONENT => value.exp2(),
                _ => value.log2(),
            };
            self.accumulators[4][index] = result.to_bits();
        }
    }

    /// Requests words from texture unit 0 or 1. For two of the four QPUs of a slice, the numbers of the two units are
    /// exchanged. Therefore a program that uses only one unit uses both units of the slice.
    fn request(&mut self, unit: usize, addresses: &Vector, shared: &mut Shared<'_>) -> Result<(), FaultKind> {
        if self.requests[unit].len() >= tmu::FIFO {
            return Err(FaultKind::TooManyRequests);
        }
        let is_swapped = !self.is_unswapped && usize::from(self.number) % QPUS_PER_SLICE >= 2;
        let result = shared.request(self.number, unit ^ usize::from(is_swapped), addresses, self.clocks)?;
        self.requests[unit].push_back(result);
        Ok(())
    }

    fn write_vpm(
        &mut self,
        is_b: bool,
        address: u8,
        values: &Vector,
        shared: &mut Shared<'_>,
    ) -> Result<(), FaultKind> {
        let (word, now) = (values[0], self.clocks);
        match (address, is_b) {
            (registers::VPM, _) => {
                let access = self.vpm_writes.as_mut().ok_or(FaultKind::NoSetup)?;
                shared.vpm.write(access, values, now)
            }
            (registers::VPM_SETUP, false) if word >> 31 == 0 => {
                // A setup must not follow while vectors of an earlier setup are left, because setups cannot be queued (vc4asm's
                // addendum).
                if self.vpm_reads.is_some_and(|access| access.left > 0) {
                    return Err(FaultKind::Setup(word));
                }
                self.vpm_reads = Some(Access::of_setup(word)?);
                Ok(())
            }
            (registers::VPM_SETUP, false) => self.loads.set_up_load(word, now),
            (registers::VPM_SETUP, true) if word >> 30 == 0 => {
                self.vpm_writes = Some(Access::of_setup(word)?);
                Ok(())
            }
            (registers::VPM_SETUP, true) => self.stores.set_up_store(word, now),
            (_, false) => shared.start_load(&mut self.loads, word, now),
            (_, true) => shared.start_store(&mut self.stores, word, now),
        }
    }
}

/// Replaces the elements that a mask selects.
fn merge(place: &mut Vector, values: &Vector, mask: &Vector) {
    for index in 0..ELEMENTS {
        place[index] = place[index] & !mask[index] | values[index] & mask[index];
    }
}
