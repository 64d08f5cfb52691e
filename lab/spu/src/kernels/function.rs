//! Kernels as functions with the calling convention of the SPU (SPU Application Binary Interface Specification, version 1.9, section 2),
//! for programs of users.
//!
//! The arguments are in `$3` to `$6`: the address of the data, which are processed in place; the address of the round keys of FIPS 197; the
//! number of blocks; and the first counter block or the IV. For CTR, the result in `$3` is the counter block after the processed blocks.
//! The number of blocks is rounded up to a multiple of [`Function::group`], so only the last call of a message may pass a number that is
//! not such a multiple. For CBC, the result is the last ciphertext block. `$0` has the return address and `$1` the stack pointer. A
//! function may change `$2` to `$79`. It saves the registers from `$80` on that it uses in its stack frame.

use super::{Compiled, Loop, Mode, Parameter, Way, r};
use crate::asm::{AsmError, Assembler, Image};
use crate::isa::{Inst, Op, Reg};
use crate::schedule::Effort;

const LINK: Reg = r(0);
const STACK: Reg = r(1);
const DATA: Reg = r(3);
const RESULT: Reg = r(3);
const KEYS: Reg = r(4);
const BLOCKS: Reg = r(5);
const STATE: Reg = r(6);
/// A register for values that the next instructions use.
const NOW: Reg = r(7);
/// The first register of the round keys while they are copied.
const COPIED: u8 = 8;

/// The first register that a function must preserve.
const PRESERVED: u8 = 80;

/// Bytes of a stack frame before the saved registers: the stack pointer of the caller, and the place in which a function that is called
/// saves its return address.
const FRAME: i32 = 32;

/// A kernel as a function.
pub struct Function {
    /// The name of the function, which is a symbol of the image.
    pub name: String,
    /// The code and the data. The code runs at any address that is a multiple of 16.
    pub image: Image,
    /// The number of blocks is rounded up to a multiple of this number, and the data must have room for it.
    pub group: u32,
}

impl Function {
    /// Source in GNU syntax, with the name as a global symbol.
    pub fn source(&self) -> String {
        format!("\t.global {}\n{}", self.name, self.image.source())
    }
}

impl Loop {
    /// Compiles the loop for a number of rounds as a function. Iterations do not overlap, so that a function processes any number of groups
    /// of blocks.
    ///
    /// # Errors
    /// As [`Loop::compile`]; for modes other than ECB, CTR and CBC encryption; and for kernels with tables in the local store or with
    /// round keys in another form than that of FIPS 197.
    pub fn function(self, rounds: usize, name: &str) -> Result<Function, String> {
        let takes_keys = matches!(self.way, Way::Lookup | Way::Columns(..));
        if !takes_keys {
            return Err("a function needs a kernel by lookups in registers, such as ctr4a".into());
        }
        if !matches!(self.mode, Mode::Ecb | Mode::Ctr | Mode::CbcEncrypt) {
            return Err("there are functions for ECB and CBC encryption, and for CTR".into());
        }
        let group = if self.mode.is_chain() { 1 } else { self.blocks };
        if !group.is_power_of_two() {
            return Err(format!("a group has {group} blocks: expected a power of two"));
        }
        let compiled = Loop { overlaps: false, ..self }.compile(rounds, Effort::Straight)?;
        let image = wrapped(&compiled, name, group).map_err(|error| error.to_string())?;
        Ok(Function { name: name.into(), image, group })
    }
}

/// Makes the program of a loop with an entry and an end. The entry saves registers and sets the parameters, and the end restores the
/// registers.
fn wrapped(compiled: &Compiled, name: &str, group: u32) -> Result<Image, AsmError> {
    let program = &compiled.program;
    let mut body = program.image.clone();
    let mut asm = Assembler::at(body.end().next_multiple_of(16));
    let start = asm.here();
    // The registers from $2 on are used in order.
    let last = program.registers as u8 + 1;
    let preserved: Vec<Reg> = (PRESERVED..=last).map(r).collect();
    let entry = asm.label();
    asm.bind_named(entry, name);
    let none = asm.label();
    asm.brz(BLOCKS, none);
    enter_frame(&mut asm, &preserved);
    set_parameters(&mut asm, compiled, group);
    relative(&mut asm, Op::Br, r(0), body.entry);
    // The end of the loop continues here, with the results in the registers of the loop.
    let end = asm.here();
    take_result(&mut asm, compiled);
    wipe(&mut asm, compiled, last);
    leave_frame(&mut asm, &preserved);
    asm.bi(LINK);
    asm.bind(none);
    asm.ori(RESULT, STATE, 0);
    asm.bi(LINK);
    // The end is a multiple of 16, as in a section of the GNU assembler.
    asm.align_pair();
    if !asm.here().is_multiple_of(16) {
        asm.nop();
        asm.align_pair();
    }
    let wrapper = asm.finish()?;
    end_at(&mut body, end);
    Ok(joined(body, wrapper, start))
}

/// Saves the registers to a new stack frame.
fn enter_frame(asm: &mut Assembler, preserved: &[Reg]) {
    let bytes = FRAME + 16 * preserved.len() as i32;
    asm.stqd(STACK, -bytes, STACK);
    // Both words of the stack pointer decrease: the address, and the number of free bytes of the stack.
    asm.il(NOW, -bytes);
    asm.a(STACK, STACK, NOW);
    for (&reg, at) in preserved.iter().zip((FRAME..).step_by(16)) {
        asm.stqd(reg, at, STACK);
    }
}

/// Restores the registers and the stack pointer.
fn leave_frame(asm: &mut Assembler, preserved: &[Reg]) {
    for (&reg, at) in preserved.iter().zip((FRAME..).step_by(16)) {
        asm.lqd(reg, at, STACK);
    }
    asm.lqd(STACK, 0, STACK);
}

/// Writes the parameters of the loop to their addresses.
fn set_parameters(asm: &mut Assembler, compiled: &Compiled, group: u32) {
    let rounds = compiled.rounds;
    let key = |round: usize| r(COPIED + round as u8);
    for round in 0..=rounds {
        asm.lqd(key(round), 16 * round as i32, KEYS);
    }
    for (&what, &at) in compiled.parameters.iter().zip(&compiled.program.parameters) {
        match what {
            Parameter::RoundKey(round) => store(asm, key(round), at),
            // The internal form of these ciphers is the ordinary form of a block, so the chaining value differs from the ciphertext only by
            // the last round key.
            Parameter::ChainKey => {
                asm.xor(NOW, key(0), key(rounds));
                store(asm, NOW, at);
            }
            Parameter::Chain => {
                asm.xor(NOW, STATE, key(rounds));
                store(asm, NOW, at);
            }
            Parameter::Counter => store(asm, STATE, at),
            Parameter::Input | Parameter::Output => store(asm, DATA, at),
            Parameter::FirstRound | Parameter::Hash => unreachable!("no loop of a function has them"),
        }
    }
    asm.ai(NOW, BLOCKS, group as i32 - 1);
    asm.rotmi(NOW, NOW, -(group.trailing_zeros() as i32));
    store(asm, NOW, compiled.program.iterations_at);
}

/// Puts the result into its register.
fn take_result(asm: &mut Assembler, compiled: &Compiled) {
    let Compiled { program, rounds, .. } = compiled;
    // The first carried value is the counter, or it is the chaining value without the last round key.
    match compiled.of.mode {
        Mode::Ctr => asm.ori(RESULT, program.carried[0], 0),
        Mode::CbcEncrypt => {
            let last = Parameter::RoundKey(*rounds);
            let number =
                compiled.parameters.iter().position(|what| *what == last).expect("a loop has all keys");
            // $2 is free: it is neither a result nor preserved, and the loop has ended.
            let key = if program.carried[0] == r(2) { NOW } else { r(2) };
            relative(asm, Op::Lqr, key, program.parameters[number]);
            asm.xor(RESULT, program.carried[0], key);
        }
        _ => {}
    }
}

/// Clears the parameters, and the registers that need not be preserved, because they contain keys and data.
fn wipe(asm: &mut Assembler, compiled: &Compiled, last: u8) {
    // The round keys were in the registers from COPIED on, even if the loop does not use these registers.
    let last = last.max(COPIED + compiled.rounds as u8).min(PRESERVED - 1);
    let has_result = !matches!(compiled.of.mode, Mode::Ecb);
    for number in (2..=last).filter(|number| !has_result || r(*number) != RESULT) {
        asm.il(r(number), 0);
    }
    for &at in &compiled.program.parameters {
        store(asm, r(2), at);
    }
}

fn store(asm: &mut Assembler, reg: Reg, at: u32) {
    relative(asm, Op::Stqr, reg, at);
}

/// Adds an instruction that refers to a place in the program of the loop. A branch has no register, and `rt` is then `$0`.
fn relative(asm: &mut Assembler, op: Op, rt: Reg, at: u32) {
    let imm = words_between(asm.here(), at);
    asm.push(Inst { rt, imm, ..Inst::bare(op) });
}

fn words_between(from: u32, to: u32) -> i32 {
    (to as i32 - from as i32) >> 2
}

/// Replaces the `stop` of a program by a branch.
fn end_at(body: &mut Image, end: u32) {
    let is_stop = |inst: Option<Inst>| inst.is_some_and(|inst| inst.op == Op::Stop);
    let (at, _) = body.instructions().find(|(_, inst)| is_stop(*inst)).expect("a program ends with a stop");
    let word = Inst { imm: words_between(at, end), ..Inst::bare(Op::Br) }.encode();
    let start = (at - body.origin) as usize;
    body.bytes[start..start + 4].copy_from_slice(&word.to_be_bytes());
}

/// Combines both images in one image. In this image, the data of `body` are between the code of `body` and the code of `wrapper`.
fn joined(body: Image, wrapper: Image, start: u32) -> Image {
    let mut joined = body;
    joined.bytes.resize((start - joined.origin) as usize, 0);
    let data = joined.code.end..start;
    joined.bytes.extend(&wrapper.bytes);
    joined.code = joined.origin..wrapper.code.end;
    joined.constants.push(data);
    joined.entry = start;
    joined.symbols.extend(wrapper.symbols);
    joined
}
