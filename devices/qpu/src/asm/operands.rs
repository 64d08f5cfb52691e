//! The operands of an instruction in text form. This module also chooses the register files for the operands.

use crate::isa::{Alu, Condition, Destination, Mux, Signal, SmallImmediate, registers};

/// A register file. `Either` means that both files have the register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum File {
    A,
    B,
    Either,
}

/// A register that is read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Register {
    pub(super) file: File,
    pub(super) address: u8,
}

/// An input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Accumulator(Mux),
    Register(Register),
    Value(u32),
}

/// An input with its unpacking and its rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) source: Source,
    pub(super) unpack: u8,
    pub(super) rotation: Option<SmallImmediate>,
}

/// An output with its packing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) register: Register,
    pub(super) pack: u8,
}

/// Returns the register for a name. Some names mean one register when they are read and another one when they are written.
pub(super) fn register(name: &str, is_written: bool) -> Option<Register> {
    // The names with a number are the general registers. All other names belong to the addresses from 32 on.
    for (prefix, file) in [("ra", File::A), ("rb", File::B)] {
        if let Some(number) = name.strip_prefix(prefix).and_then(|number| number.parse::<u8>().ok()) {
            return (number < 64).then_some(Register { file, address: number });
        }
    }
    let name = match name {
        "tmu_noswap" => "tmurs",
        "host_int" | "interrupt" => "irq",
        name => name,
    };
    let shown = if is_written { registers::write_name } else { registers::read_name };
    let has = |is_b: bool| (registers::FILE..64).find(|address| shown(is_b, *address) == name);
    match (has(false), has(true)) {
        (Some(address), Some(_)) => Some(Register { file: File::Either, address }),
        (Some(address), None) => Some(Register { file: File::A, address }),
        (None, Some(address)) => Some(Register { file: File::B, address }),
        (None, None) => None,
    }
}

impl Destination {
    /// Sets the outputs of both ALUs.
    ///
    /// # Errors
    /// A message if both outputs require the same file, or if the word cannot encode the mode of packing.
    pub(super) fn set_outputs(&mut self, outputs: [Option<Output>; 2]) -> Result<(), String> {
        let fits = |is_swapped: bool| {
            (outputs.iter().zip([is_swapped, !is_swapped])).all(|(output, is_b)| {
                let file = output.map_or(File::Either, |output| output.register.file);
                file == File::Either || (file == File::B) == is_b
            })
        };
        self.is_swapped = match (fits(false), fits(true)) {
            (true, _) => false,
            (false, true) => true,
            (false, false) => return Err("both operations write to the same register file".into()),
        };
        for (output, is_mul) in outputs.into_iter().zip([false, true]) {
            let Some(Output { register, pack }) = output else { continue };
            *(if is_mul { &mut self.mul } else { &mut self.add }) = register.address;
            if pack == 0 {
                continue;
            }
            let is_a = is_mul == self.is_swapped && register.address < registers::FILE;
            if !is_a && !is_mul {
                return Err("the add ALU packs only what it writes to file A".into());
            }
            if self.pack != 0 {
                return Err("an instruction has one mode of packing".into());
            }
            // If `pm` is false, values that are written to file A are packed. If `pm` is true, results of the mul ALU are
            // packed.
            (self.pack, self.pm) = (pack, !is_a);
        }
        Ok(())
    }

    pub(super) fn set_condition(&mut self, is_mul: bool, condition: Condition) {
        *(if is_mul { &mut self.mul_condition } else { &mut self.add_condition }) = condition;
    }
}

impl Alu {
    /// Sets the inputs of both ALUs. First it places the inputs that require a certain file, then the inputs that both files
    /// can provide.
    ///
    /// # Errors
    /// A message if the inputs require more registers, constants, rotations or modes of unpacking than a word can encode.
    pub(super) fn set_inputs(&mut self, inputs: &[[Option<Input>; 2]; 2]) -> Result<(), String> {
        let mut files = Files::default();
        for is_fixed in [true, false] {
            for (is_mul, of_alu) in [false, true].into_iter().zip(inputs) {
                for (place, input) in of_alu.iter().enumerate() {
                    let Some(input) = input else { continue };
                    let Some(mux) = files.place(input, is_fixed)? else { continue };
                    let muxes = if is_mul { &mut self.mul_inputs } else { &mut self.add_inputs };
                    muxes[place] = mux;
                    self.set_unpack(mux, input.unpack)?;
                }
            }
        }
        if let Some(rotation) = inputs[1].iter().flatten().find_map(|input| input.rotation) {
            let all_agree = inputs[1].iter().flatten().all(|input| input.rotation == Some(rotation));
            if !all_agree {
                return Err(
                    "a rotation is that of the result: all inputs of the operation must have it".into()
                );
            }
            files.set_immediate(rotation)?;
        }
        if inputs[0].iter().flatten().any(|input| input.rotation.is_some()) {
            return Err("only the mul ALU rotates".into());
        }
        self.read_a = files.a.unwrap_or(registers::NOP);
        self.read_b = match (files.b, files.immediate) {
            (Some(_), Some(_)) => return Err("a constant or a rotation takes the place of file B".into()),
            (_, Some(immediate)) => {
                if self.signal != Signal::None {
                    return Err("a constant or a rotation takes the place of the signal".into());
                }
                self.signal = Signal::SmallImmediate;
                immediate.code().expect("checked when it was placed")
            }
            (register, None) => register.unwrap_or(registers::NOP),
        };
        Ok(())
    }

    fn set_unpack(&mut self, mux: Mux, unpack: u8) -> Result<(), String> {
        if unpack == 0 {
            return Ok(());
        }
        let is_r4 = match mux {
            Mux::A => false,
            Mux::R4 => true,
            _ => return Err("only registers of file A and r4 are unpacked".into()),
        };
        let is_taken = self.unpack != 0 && (self.unpack != unpack || self.to.pm != is_r4);
        if is_taken || (self.to.pack != 0 && self.to.pm != is_r4) {
            return Err("the modes of packing and unpacking do not fit into one instruction".into());
        }
        (self.unpack, self.to.pm) = (unpack, is_r4);
        Ok(())
    }
}

/// The registers and the immediate that an instruction reads.
#[derive(Default)]
struct Files {
    a: Option<u8>,
    b: Option<u8>,
    immediate: Option<SmallImmediate>,
}

impl Files {
    /// Returns the mux of an input. All inputs are passed twice: first with `is_fixed`, which places all inputs except the
    /// registers that both files have, then without `is_fixed`, which places these registers. Returns `None` if this call does
    /// not place the input.
    fn place(&mut self, input: &Input, is_fixed: bool) -> Result<Option<Mux>, String> {
        let register = match input.source {
            Source::Accumulator(mux) => return Ok(is_fixed.then_some(mux)),
            Source::Value(value) if is_fixed => {
                let small = small_immediate(value)
                    .ok_or_else(|| format!("{value:#x} is no small constant: use ldi"))?;
                self.set_immediate(small)?;
                return Ok(Some(Mux::B));
            }
            Source::Value(_) => return Ok(None),
            Source::Register(register) => register,
        };
        if (register.file != File::Either) != is_fixed {
            return Ok(None);
        }
        let address = Some(register.address);
        let takes_a = match register.file {
            File::A => true,
            File::B => false,
            File::Either if self.a == address || self.b == address => self.a == address,
            File::Either => self.a.is_none(),
        };
        let (place, mux, name) =
            if takes_a { (&mut self.a, Mux::A, 'A') } else { (&mut self.b, Mux::B, 'B') };
        if place.is_some() && *place != address {
            return Err(format!("the instruction reads two registers of file {name}"));
        }
        *place = address;
        Ok(Some(mux))
    }

    fn set_immediate(&mut self, small: SmallImmediate) -> Result<(), String> {
        // The code of a rotation also has a value as an input. Another input may be a constant with this value.
        match self.immediate {
            None => self.immediate = Some(small),
            Some(have) if have == small => {}
            Some(have) if have.value() == small.value() => {
                let rotates = !matches!(have, SmallImmediate::Value(_));
                self.immediate = Some(if rotates { have } else { small });
            }
            Some(_) => return Err("the instruction has two constants or rotations".into()),
        }
        Ok(())
    }
}

/// Returns the small immediate with this value, if there is one.
pub(super) fn small_immediate(value: u32) -> Option<SmallImmediate> {
    let small = SmallImmediate::Value(value);
    small.code().map(|_| small)
}
