//! Instructions as text, in the syntax of vc4asm.

use std::fmt;

use super::registers::{self, read_name, write_name};
use super::{
    AddOp, Alu, Branch, Condition, Destination, INSTRUCTION_BYTES, ImmediateKind, Instruction, LoadImmediate,
    MulOp, Mux, Semaphore, SmallImmediate,
};

/// The suffixes of the modes of packing. The first eight modes write the lower bits. All other modes first limit the value to
/// the range of the packed format.
const PACK: [&str; 16] = [
    "", ".16a", ".16b", ".8abcd", ".8a", ".8b", ".8c", ".8d", ".32s", ".16as", ".16bs", ".8abcds", ".8as",
    ".8bs", ".8cs", ".8ds",
];

/// The suffixes of the modes of unpacking.
const UNPACK: [&str; 8] = ["", ".16a", ".16b", ".8dr", ".8a", ".8b", ".8c", ".8d"];

impl Destination {
    /// The register that an ALU writes, with the suffix of its packing.
    fn show(&self, is_mul: bool) -> String {
        let is_b = is_mul != self.is_swapped;
        let address = if is_mul { self.mul } else { self.add };
        let is_packed = if self.pm { is_mul } else { !is_b && address < registers::FILE };
        let pack = if is_packed { PACK[usize::from(self.pack & 15)] } else { "" };
        write_name(is_b, address) + pack
    }

    /// True if an ALU writes nothing, under any condition.
    fn is_unused(&self, is_mul: bool) -> bool {
        let (condition, address) =
            if is_mul { (self.mul_condition, self.mul) } else { (self.add_condition, self.add) };
        condition == Condition::Never && address == registers::NOP
    }

    /// Returns the suffixes of an instruction without ALU operations, and the registers that it writes. If one register is
    /// written, its condition is a suffix of the instruction. If two registers are written, their conditions are suffixes of
    /// the registers.
    fn show_of_constant(&self) -> String {
        let written: Vec<bool> =
            [false, true].into_iter().filter(|is_mul| !self.is_unused(*is_mul)).collect();
        let condition = |is_mul: bool| if is_mul { self.mul_condition } else { self.add_condition }.text();
        match written[..] {
            [] => format!("{} -", self.setf()),
            [is_mul] => format!("{}{} {}", self.setf(), condition(is_mul), self.show(is_mul)),
            _ => {
                let [add, mul] = [false, true].map(|is_mul| self.show(is_mul) + condition(is_mul));
                format!("{} {add}, {mul}", self.setf())
            }
        }
    }

    /// Returns the suffix of the condition of an ALU. There is no suffix if the ALU writes nothing and sets no flags.
    fn show_condition(&self, is_mul: bool) -> &'static str {
        let condition = if is_mul { self.mul_condition } else { self.add_condition };
        if self.is_unused(is_mul) && !self.sets_flags { "" } else { condition.text() }
    }

    fn setf(&self) -> &'static str {
        if self.sets_flags { ".setf" } else { "" }
    }
}

impl Alu {
    fn show_input(&self, input: Mux) -> String {
        let unpack = UNPACK[usize::from(self.unpack & 7)];
        match input {
            Mux::A => read_name(false, self.read_a) + if self.to.pm { "" } else { unpack },
            Mux::B => self
                .small_immediate()
                .map_or_else(|| read_name(true, self.read_b), |small| show_value(small.value())),
            Mux::R4 if self.to.pm => format!("r4{unpack}"),
            _ => input.text().into(),
        }
    }

    fn show_mul_input(&self, input: Mux) -> String {
        let input = self.show_input(input);
        match self.small_immediate() {
            // vc4asm writes rotations towards higher elements as `>>`.
            Some(SmallImmediate::Rotate(by @ ..=8)) => format!("{input} >> {by}"),
            Some(SmallImmediate::Rotate(by)) => format!("{input} << {}", 16 - by),
            Some(SmallImmediate::RotateByR5) => format!("{input} << r5"),
            _ => input,
        }
    }

    fn show_add(&self) -> String {
        // If the mul ALU sets the flags, vc4asm writes the condition of the add ALU as "always".
        let of_nop = if self.to.sets_flags { Condition::Always } else { Condition::Never };
        if self.add == AddOp::Nop && (self.to.add, self.to.add_condition) == (registers::NOP, of_nop) {
            return "nop".into();
        }
        let [first, second] = self.add_inputs;
        let is_move = self.add == AddOp::Or && first == second;
        let (name, inputs) = if is_move { ("mov", 1) } else { (self.add.text(), self.add.inputs()) };
        let setf = if self.add == AddOp::Nop { "" } else { self.to.setf() };
        let mut text = format!("{name}{setf}{} {}", self.to.show_condition(false), self.to.show(false));
        for input in self.add_inputs.into_iter().take(inputs) {
            text += &format!(", {}", self.show_input(input));
        }
        text
    }

    fn show_mul(&self) -> String {
        if self.mul == MulOp::Nop && self.to.is_unused(true) {
            return String::new();
        }
        let [first, second] = self.mul_inputs;
        let (name, inputs) = match self.mul {
            MulOp::Nop => ("mnop", 0),
            MulOp::V8min if first == second => ("mov", 1),
            mul => (mul.text(), mul.inputs()),
        };
        let setf = if self.add == AddOp::Nop { self.to.setf() } else { "" };
        let mut text = format!(";  {name}{setf}{} {}", self.to.show_condition(true), self.to.show(true));
        for input in self.mul_inputs.into_iter().take(inputs) {
            text += &format!(", {}", self.show_mul_input(input));
        }
        text
    }
}

/// A constant as text: decimal if it is small, otherwise hexadecimal.
fn show_value(value: u32) -> String {
    match value as i32 {
        small @ -4096..=4096 => small.to_string(),
        _ => format!("{value:#x}"),
    }
}

impl Instruction {
    /// The text of the instruction at an address in bytes. Targets of relative branches are shown as absolute addresses.
    pub fn show(&self, address: u32) -> String {
        match self {
            Instruction::Alu(alu) => {
                let signal = match alu.signal.text() {
                    "" => String::new(),
                    name => format!(";  {name}"),
                };
                alu.show_add() + &alu.show_mul() + &signal
            }
            Instruction::LoadImmediate(LoadImmediate { kind, to, value }) => {
                let load = LoadImmediate { kind: *kind, to: *to, value: *value };
                let value = match kind {
                    ImmediateKind::Word => show_value(*value),
                    _ => {
                        let elements =
                            (0..super::ELEMENTS).map(|index| (load.element(index) as i32).to_string());
                        format!("[{}]", elements.collect::<Vec<_>>().join(","))
                    }
                };
                let name = match kind {
                    ImmediateKind::Word => "ldi",
                    ImmediateKind::PairsSigned => "ldipes",
                    ImmediateKind::PairsUnsigned => "ldipeu",
                };
                format!("{name}{}, {value}", to.show_of_constant())
            }
            Instruction::Semaphore(Semaphore { to, number, decrements }) => {
                let name = if *decrements { "sacq" } else { "srel" };
                format!("{name}{}, {number}", to.show_of_constant())
            }
            Instruction::Branch(branch) => branch.show(address),
        }
    }
}

impl Branch {
    fn show(&self, address: u32) -> String {
        let links = [(self.link_add, self.is_swapped), (self.link_mul, !self.is_swapped)];
        let links: Vec<String> = links
            .into_iter()
            .filter(|(address, _)| *address != registers::NOP)
            .map(|(address, is_b)| write_name(is_b, address))
            .collect();
        let links = if links.is_empty() { "-".into() } else { links.join(", ") };
        let register = self.register.map_or_else(String::new, |number| format!(", ra{number}"));
        let (name, target) = if self.is_relative {
            let target = address.wrapping_add(4 * INSTRUCTION_BYTES).wrapping_add_signed(self.offset);
            ("brr", format!(", {target:#x}"))
        } else if self.offset == 0 && self.register.is_some() {
            ("bra", String::new())
        } else {
            ("bra", format!(", {:#x}", self.offset as u32))
        };
        format!("{name}{} {links}{register}{target}", self.condition.text())
    }
}

impl fmt::Display for Instruction {
    /// The text of the instruction at address 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show(0))
    }
}

/// The lines of a program at address 0: address, word and text. A word that is not an instruction is shown as data.
pub fn disassemble(words: &[u64]) -> String {
    let mut text = String::new();
    for (address, &word) in (0..).step_by(INSTRUCTION_BYTES as usize).zip(words) {
        let shown = Instruction::decode(word)
            .map_or_else(|error| format!(".data  # {error}"), |found| found.show(address));
        text += &format!("{address:#06x}  {word:016x}  {shown}\n");
    }
    text
}
