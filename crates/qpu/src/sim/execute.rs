//! The execution of operations: their inputs, and what the writes to each register do.

use super::alu::Results;
use super::flags::{ALL, Flags};
use super::pack::{pack_file_a, pack_mul, unpack, unpack_r4};
use super::qpu::{Qpu, Vector};
use super::shared::Shared;
use super::vpm::Access;
use super::{FaultKind, QPUS_PER_SLICE, tmu};
use crate::isa::registers::{self, FILE};
use crate::isa::{AddOp, Alu, Condition, Destination, ELEMENTS, MulOp, Mux, Signal, SmallImmediate};

/// What is written by one ALU.
struct Output<'r> {
    is_mul: bool,
    results: &'r Results,
    is_float: bool,
    /// The result without overflow of a sum or a difference, for the limits to 32 bits.
    exact: Option<&'r [i64; ELEMENTS]>,
}

impl Qpu {
    pub(super) fn alu(&mut self, alu: &Alu, shared: &mut Shared<'_>) -> Result<(), FaultKind> {
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
        let exact = match alu.to.pack {
            8 if !alu.to.pm => Some(std::array::from_fn(|index| self.exact_sum(alu, &ports, index))),
            _ => None,
        };
        let flags = self.flags;
        if alu.to.sets_flags {
            let of_add = add.as_ref().map(|results| (results, alu.to.add_condition));
            let of_mul = mul.as_ref().map(|results| (results, alu.to.mul_condition));
            if let Some((results, condition)) = of_add.or(of_mul) {
                self.flags.set(results, &flags.have(condition));
            }
        }
        for (is_mul, results, is_float) in
            [(false, &add, alu.add.gives_float()), (true, &mul, alu.mul.is_float())]
        {
            if let Some(results) = results {
                let output = Output { is_mul, results, is_float, exact: exact.as_ref() };
                self.write(&alu.to, &output, &flags, shared)?;
            }
        }
        match alu.signal {
            Signal::None | Signal::End | Signal::SmallImmediate => Ok(()),
            Signal::LoadTmu0 => self.load_result(0, shared),
            Signal::LoadTmu1 => self.load_result(1, shared),
            _ => Err(FaultKind::NotSimulated("a signal of shaders and debuggers")),
        }
    }

    /// Waits until a clock. Returns the clocks of waiting.
    fn wait_until(&mut self, clock: u64) -> u64 {
        let stall = clock.saturating_sub(self.clocks);
        self.clocks += stall;
        stall
    }

    /// Moves the next result of a texture unit to r4.
    fn load_result(&mut self, unit: usize, shared: &mut Shared<'_>) -> Result<(), FaultKind> {
        let (words, ready_at) = self.requests[unit].pop_front().ok_or(FaultKind::NoRequest)?;
        shared.counters.tmu_stall_clocks += self.wait_until(ready_at);
        self.accumulators[4] = words;
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
    fn read(
        &mut self,
        is_b: bool,
        address: u8,
        shared: &mut Shared<'_>,
    ) -> Result<Option<Vector>, FaultKind> {
        let values = match address {
            0..FILE => self.files[usize::from(is_b)][usize::from(address)],
            registers::NOP => return Ok(None),
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
            // The lock has been taken before.
            registers::MUTEX => [0; ELEMENTS],
            _ => return Err(FaultKind::NotSimulated("a register of shaders")),
        };
        Ok(Some(values))
    }

    fn read_vpm(&mut self, shared: &mut Shared<'_>) -> Result<Vector, FaultKind> {
        let access = self.vpm_reads.as_mut().filter(|access| access.left > 0).ok_or(FaultKind::NoSetup)?;
        access.left -= 1;
        shared.vpm.read(access, self.clocks)
    }

    /// Writes a constant by both ALUs.
    pub(super) fn write_constant(
        &mut self,
        to: &Destination,
        values: Vector,
        shared: &mut Shared<'_>,
    ) -> Result<(), FaultKind> {
        let (results, flags) = (Results::of(values), self.flags);
        if to.sets_flags {
            self.flags.set(&results, &flags.have(to.add_condition));
        }
        let exact = values.map(|value| i64::from(value as i32));
        for is_mul in [false, true] {
            let output = Output { is_mul, results: &results, is_float: false, exact: Some(&exact) };
            self.write(to, &output, &flags, shared)?;
        }
        Ok(())
    }

    /// Writes the results of an ALU, under the conditions of the flags before the instruction.
    fn write(
        &mut self,
        to: &Destination,
        output: &Output<'_>,
        flags: &Flags,
        shared: &mut Shared<'_>,
    ) -> Result<(), FaultKind> {
        let is_b = output.is_mul != to.is_swapped;
        let (address, condition) =
            if output.is_mul { (to.mul, to.mul_condition) } else { (to.add, to.add_condition) };
        if address == registers::NOP || condition == Condition::Never {
            return Ok(());
        }
        let values = &output.results.values;
        let place = match address {
            0..FILE => &mut self.files[usize::from(is_b)][usize::from(address)],
            registers::R0..36 => &mut self.accumulators[usize::from(address - registers::R0)],
            _ => {
                if to.pm && output.is_mul && to.pack != 0 {
                    return Err(FaultKind::Pack(to.pack));
                }
                return self.write_special(is_b, address, values, &flags.have(condition), shared);
            }
        };
        let packs_file_a = to.pack != 0 && !to.pm && !is_b && address < FILE;
        let packs_mul = to.pack != 0 && to.pm && output.is_mul;
        let mask = if condition == Condition::Always { ALL } else { flags.have(condition) };
        for index in 0..ELEMENTS {
            let (old, value) = (place[index], values[index]);
            let value = if packs_file_a {
                let exact = output.exact.map_or(0, |exact| exact[index]);
                pack_file_a(to.pack, old, value, output.is_float, exact)
            } else if packs_mul {
                pack_mul(to.pack, old, value).ok_or(FaultKind::Pack(to.pack))?
            } else {
                value
            };
            place[index] = old & !mask[index] | value & mask[index];
        }
        Ok(())
    }

    /// Writes a register that is no memory. `mask` has the elements for which it is written.
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
                // File A: element 0 of each quad; file B: element 0.
                let from = |index: usize| if is_b { 0 } else { index & !3 };
                for index in (0..ELEMENTS).filter(|index| mask[from(*index)] != 0) {
                    self.accumulators[5][index] = values[from(index)];
                }
            }
            registers::HOST_INTERRUPT => {
                // Only a value other than zero interrupts (the addendum).
                let interrupts = (0..ELEMENTS).any(|index| values[index] & mask[index] != 0);
                shared.interrupts += u64::from(interrupts);
            }
            registers::TMU_NOSWAP => self.is_unswapped = values[0] & mask[0] != 0,
            registers::UNIFORMS_ADDRESS if mask[0] == 0 => {}
            registers::UNIFORMS_ADDRESS if is_b => self.uniforms = self.uniforms.wrapping_add(values[0]),
            registers::UNIFORMS_ADDRESS => self.uniforms = values[0],
            registers::RECIPROCAL..=registers::LOGARITHM => self.special_function(address, values, mask),
            registers::MUTEX => shared.unlock(self.number)?,
            registers::TMU0_S => self.request(0, values, shared)?,
            registers::TMU1_S => self.request(1, values, shared)?,
            registers::TMU0_S..64 => {
                return Err(FaultKind::NotSimulated("a texture unit with coordinates"));
            }
            registers::VPM..=registers::DMA_ADDRESS => self.write_vpm(is_b, address, values, shared)?,
            _ => return Err(FaultKind::NotSimulated("a register of shaders")),
        }
        Ok(())
    }

    /// Computes by f32 what hardware approximates.
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

    /// Requests words from texture unit 0 or 1. Two of the four QPUs of a slice have the units exchanged, so that a program that
    /// uses one unit uses both of the slice.
    fn request(&mut self, unit: usize, addresses: &Vector, shared: &mut Shared<'_>) -> Result<(), FaultKind> {
        if self.requests[unit].len() >= tmu::FIFO {
            return Err(FaultKind::TooManyRequests);
        }
        let is_swapped = !self.is_unswapped && usize::from(self.number) % QPUS_PER_SLICE >= 2;
        let result =
            shared.request(self.number, unit ^ usize::from(is_swapped), addresses, self.clocks)?;
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
                // The setups cannot be queued (the addendum).
                if self.vpm_reads.is_some_and(|access| access.left > 0) {
                    return Err(FaultKind::Setup(word));
                }
                self.vpm_reads = Some(Access::of_setup(word)?);
                Ok(())
            }
            (registers::VPM_SETUP, false) => self.loads.set_up_load(word),
            (registers::VPM_SETUP, true) if word >> 30 == 0 => {
                self.vpm_writes = Some(Access::of_setup(word)?);
                Ok(())
            }
            (registers::VPM_SETUP, true) => self.stores.set_up_store(word),
            (_, false) => shared.start_load(&mut self.loads, word, now),
            (_, true) => shared.start_store(&mut self.stores, word, now),
        }
    }
}
