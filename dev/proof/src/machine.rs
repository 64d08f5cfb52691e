//! The machine: registers, flags and memory, and the loop that executes instructions.

mod change;
mod remains;

use std::array::from_fn;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register, RflagsBits};

pub use change::Change;

use crate::convention::Convention;
use crate::decoder;
use crate::image::Image;
use crate::memory::{Denied, Memory, Region, Role, Writer};
use crate::value::{Domain, Flag, Number};

/// The bytes of the largest register.
pub type Bytes<D> = [<D as Domain>::Byte; 64];

/// The size of the stack in bytes.
const STACK: usize = 64 << 10;
/// The address after the stack.
const STACK_END: u64 = 0x7e00_0000_0000;
/// The stack pointer after the return of the outermost function. Above it is the frame of the caller.
const CALLER: u64 = STACK_END - 4096;
/// The address to which the outermost function returns.
const RETURN: u64 = 0x7f10_0000_0000;
/// Maximum number of instructions of a run. No case needs this many instructions. A run that exceeds the limit is
/// therefore faulty, and is stopped.
pub const MOST_STEPS: u64 = 200_000_000;

/// A fault of constant time or of memory safety, or a secret that is left behind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A branch depends on a secret.
    Branch,
    /// An address depends on a secret.
    Address,
    /// An instruction whose time depends on its operands has a secret operand.
    Time,
    /// An access is out of bounds, or writes to read-only memory.
    Access,
    /// A register that functions preserve has another value at return.
    Preserved,
    /// A register holds a secret at return.
    Register,
    /// The stack holds a secret at return.
    Stack,
    /// A block holds a secret when it is freed.
    Heap,
    /// A static variable holds a secret at return.
    Static,
    /// A byte of output has not been written.
    Output,
    /// A result differs from that of the reference implementation.
    Result,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Branch => "a branch depends on a secret",
            Kind::Address => "an address depends on a secret",
            Kind::Time => "the time of an instruction depends on a secret",
            Kind::Access => "an access is out of bounds",
            Kind::Preserved => "a register is not preserved",
            Kind::Register => "a register holds a secret at return",
            Kind::Stack => "the stack holds a secret at return",
            Kind::Heap => "freed memory holds a secret",
            Kind::Static => "a static variable holds a secret at return",
            Kind::Output => "a byte of output is not written",
            Kind::Result => "the result is wrong",
        })
    }
}

/// A fault that the analysis has found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Finding {
    /// The kind of the fault.
    pub kind: Kind,
    /// The function whose instruction is the cause.
    pub function: String,
    /// Number of secret bytes that instructions of the function have left behind; 0 for other kinds.
    pub bytes: usize,
    /// For the stack: the distance in bytes from the stack pointer after the return down to the lowest secret byte; 0 for other kinds.
    pub depth: usize,
    /// The instruction and its operands, or the places of the secret bytes that are left behind.
    pub detail: String,
}

/// Why a run cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stop {
    /// The place of the instruction.
    pub place: String,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped at {}: {}", self.place, self.reason)
    }
}

/// The outcome of an instruction: success, or the reason why the run stops.
pub type Step = Result<(), Stop>;

/// The function that executes an instruction.
pub type Run<D> = fn(&mut Machine<D>, &Instruction) -> Step;

/// The tables of instructions.
pub struct Semantics<D: Domain> {
    /// The function that executes an instruction of x86-64; `None` if it is not in the table.
    pub x86: fn(Mnemonic) -> Option<Run<D>>,
    /// Executes an instruction of 64-bit Arm, or stops because the word is not an instruction.
    pub arm: fn(&mut Machine<D>, Option<&decoder::Instruction>) -> Step,
}

/// A decoded instruction.
enum Decoded<D: Domain> {
    X86 {
        instruction: Instruction,
        /// The function that executes the instruction.
        run: Option<Run<D>>,
        /// The flags that the instruction leaves undefined, as iced-x86 states them.
        undefined: u32,
    },
    /// `None` if the word is not an instruction.
    Arm(Option<decoder::Instruction>),
}

/// The instruction that starts at a byte, decoded at its first execution.
type Place<D> = OnceCell<Box<Decoded<D>>>;

/// A program and its decoded instructions. Only executed instructions are decoded.
pub struct Program<D: Domain> {
    /// The program as it is laid out in memory.
    pub image: Arc<Image>,
    /// Maximum number of instructions of a run.
    pub most_steps: u64,
    /// A change of instructions whose effect the runs show.
    pub change: Option<Change>,
    /// The seed of the keys, data and other pseudo-random inputs of the runs, below 2^32.
    pub seed: u64,
    /// The table of instructions.
    semantics: Semantics<D>,
    /// Answers the call of an imported function.
    imports: fn(&mut Machine<D>) -> Step,
    /// For each segment of code: its address, and the instruction that starts at each byte.
    decoded: Vec<(u64, Vec<Place<D>>)>,
}

impl<D: Domain> Program<D> {
    /// The program of an image, with the table of instructions and the function that answers calls of imported functions.
    pub fn new(image: Arc<Image>, semantics: Semantics<D>, imports: fn(&mut Machine<D>) -> Step) -> Self {
        let code = image.segments.iter().filter(|segment| segment.is_code);
        let decoded = code
            .map(|segment| (segment.address, segment.bytes.iter().map(|_| OnceCell::new()).collect()))
            .collect();
        Program { image, most_steps: MOST_STEPS, change: None, seed: 0, semantics, imports, decoded }
    }

    /// The addresses of all instructions that have been executed.
    pub fn visited(&self) -> impl Iterator<Item = u64> {
        self.decoded.iter().flat_map(|(base, places)| {
            let visited = places.iter().enumerate().filter(|(_, place)| place.get().is_some());
            visited.map(move |(offset, _)| base + offset as u64)
        })
    }

    fn decoded(&self, address: u64) -> Option<&Decoded<D>> {
        let (base, places) = self.decoded.iter().rfind(|(base, _)| *base <= address)?;
        let place = places.get((address - base) as usize)?;
        Some(place.get_or_init(|| {
            let code = self.image.code_at(address).expect("the segment of this code");
            if self.image.is_arm {
                return Box::new(Decoded::Arm(decoder::decode(code)));
            }
            let instruction = Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode();
            let (run, undefined) =
                ((self.semantics.x86)(instruction.mnemonic()), instruction.rflags_undefined());
            Box::new(Decoded::X86 { instruction, run, undefined })
        }))
    }
}

/// The flags of the processor that instructions read.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    /// CF.
    pub carry: Flag,
    /// PF.
    pub parity: Flag,
    /// ZF.
    pub zero: Flag,
    /// SF.
    pub sign: Flag,
    /// OF.
    pub overflow: Flag,
}

impl Flags {
    /// The flags at the start of a run, when no instruction has set them.
    pub const UNDEFINED: Flags = {
        let undefined = Flag::UNDEFINED;
        Flags { carry: undefined, parity: undefined, zero: undefined, sign: undefined, overflow: undefined }
    };

    /// The flags in the order of [`FLAGS`].
    fn all(&mut self) -> [&mut Flag; 5] {
        [&mut self.carry, &mut self.parity, &mut self.zero, &mut self.sign, &mut self.overflow]
    }
}

/// The bits that stand for flags in the tables of iced-x86.
const FLAGS: [u32; 5] = [RflagsBits::CF, RflagsBits::PF, RflagsBits::ZF, RflagsBits::SF, RflagsBits::OF];

/// The state of a run.
pub struct Machine<D: Domain> {
    /// The domain, which computes with values.
    pub domain: D,
    /// The regions that the program can access.
    pub memory: Memory<D>,
    /// Number of bytes of the address space that allocations have used so far.
    pub heap_used: u64,
    /// The flags of the processor.
    pub flags: Flags,
    /// The mask registers k0 to k7, each with eight bytes.
    pub masks: [[D::Byte; 8]; 8],
    /// The address of the next instruction.
    pub next: u64,
    /// True if a comparison of tags whose result is not known is assumed to find them equal. Otherwise, it finds them different.
    pub assumes_equal: bool,
    /// The findings so far, each with the number of times that it occurred.
    pub findings: BTreeMap<Finding, u64>,
    /// Number of executed instructions.
    pub steps: u64,
    program: Rc<Program<D>>,
    pub(crate) general: [[D::Byte; 8]; 32],
    pub(crate) vectors: [Bytes<D>; 32],
    general_writers: [Writer; 32],
    vector_writers: [Writer; 32],
    at: u64,
    /// The last executed instruction of the program. It counts as the writer of the bytes that a function of the C library writes.
    writer: Writer,
    /// The lowest address of the stack that the program has written.
    pub(crate) lowest: u64,
    /// The functions that have been called and have not returned.
    frames: Vec<Frame<D>>,
}

/// A called function.
#[derive(Clone)]
struct Frame<D: Domain> {
    /// The called address.
    function: u64,
    /// The values at the call of the general registers and of the vector registers that a function preserves, in the order of the
    /// [`Convention`].
    preserved: Vec<[D::Byte; 8]>,
}

impl<D: Domain> Clone for Machine<D> {
    fn clone(&self) -> Self {
        Machine {
            domain: self.domain.clone(),
            memory: self.memory.clone(),
            program: Rc::clone(&self.program),
            findings: self.findings.clone(),
            frames: self.frames.clone(),
            ..*self
        }
    }
}

/// The number of a general register, from 0 for RAX to 15 for R15. Parts of a register have its number.
fn number(register: Register) -> usize {
    register.full_register().number()
}

/// The offset of a register in its full register: AH, BH, CH and DH are the second byte.
fn offset(register: Register) -> usize {
    usize::from(matches!(register, Register::AH | Register::BH | Register::CH | Register::DH))
}

impl<D: Domain> Machine<D> {
    /// A machine with the image of a program and a stack.
    pub fn new(program: Rc<Program<D>>) -> Self {
        let mut memory = Memory::new();
        for segment in &program.image.segments {
            let bytes = segment.bytes.iter().map(|byte| D::constant(*byte)).collect();
            memory.add(Region::new("the image", Role::Image, segment.address, segment.is_writable, bytes));
        }
        memory.add(stack());
        let zero = D::constant(0);
        Machine {
            domain: D::default(),
            memory,
            heap_used: 0,
            flags: Flags::UNDEFINED,
            masks: [[zero; 8]; 8],
            next: RETURN,
            assumes_equal: false,
            findings: BTreeMap::new(),
            steps: 0,
            program,
            general: [[zero; 8]; 32],
            vectors: [[zero; 64]; 32],
            general_writers: [0; 32],
            vector_writers: [0; 32],
            at: 0,
            writer: 0,
            lowest: STACK_END,
            frames: Vec::new(),
        }
    }

    /// The image of the program.
    pub fn image(&self) -> &Image {
        &self.program.image
    }

    /// The addresses of all instructions that runs of the program have executed.
    pub fn visited(&self) -> impl Iterator<Item = u64> {
        self.program.visited()
    }

    /// The calling convention of the program.
    pub fn convention(&self) -> &'static Convention {
        self.image().convention()
    }

    /// Calls an exported function with at most six arguments, and returns the value of the register of results.
    ///
    /// # Errors
    /// If the run cannot go on.
    pub fn call(&mut self, function: &str, arguments: &[u64]) -> Result<u64, Stop> {
        self.start(function, arguments)?;
        let program = Rc::clone(&self.program);
        while self.is_running() {
            self.step(&program)?;
        }
        Ok(Number::of::<D>(&self.general[0]).value)
    }

    /// Prepares the call of an exported function: sets the arguments (at most six) and the address of the first instruction.
    ///
    /// # Errors
    /// If there is no such function.
    pub fn start(&mut self, function: &str, arguments: &[u64]) -> Step {
        assert!(arguments.len() <= 6, "arguments beyond the sixth are on the stack");
        let Some(start) = self.image().function(function) else {
            return Err(Stop {
                place: "the start".into(),
                reason: format!("no exported function {function}"),
            });
        };
        (self.general_writers, self.vector_writers, self.flags) = ([0; 32], [0; 32], Flags::UNDEFINED);
        let convention = self.convention();
        for (number, argument) in convention.arguments.iter().zip(arguments) {
            self.set_general_number(*number, argument.to_le_bytes().map(D::constant));
        }
        // A multiple of 16. On x86-64, the return address is then pushed.
        self.set_general_number(convention.stack, CALLER.to_le_bytes().map(D::constant));
        self.at = start;
        self.frames.clear();
        self.enter(start, RETURN)?;
        self.next = start;
        Ok(())
    }

    /// True until the outermost function has returned.
    pub fn is_running(&self) -> bool {
        self.next != RETURN
    }

    /// The instruction of x86-64 at an address. `None` if there is no code.
    pub fn instruction(&self, address: u64) -> Option<Instruction> {
        match self.program.decoded(address)? {
            Decoded::X86 { instruction, .. } => Some(*instruction),
            Decoded::Arm(_) => None,
        }
    }

    /// Executes the instruction at an address, with the registers and flags as they are.
    ///
    /// # Errors
    /// If the run cannot go on.
    pub fn execute(&mut self, address: u64) -> Step {
        let program = Rc::clone(&self.program);
        self.next = address;
        self.step(&program)
    }

    /// Executes one instruction, or answers a call of an imported function.
    fn step(&mut self, program: &Program<D>) -> Step {
        self.at = self.next;
        self.steps += 1;
        if self.steps > program.most_steps {
            return Err(self.stop(format!("more than {} instructions", program.most_steps)));
        }
        let Some(decoded) = program.decoded(self.at) else {
            return (program.imports)(self);
        };
        self.writer = self.at as Writer;
        if let Some(change) = program.change.as_ref().filter(|change| change.contains(self.at)) {
            return self.step_both(program, change);
        }
        match decoded {
            Decoded::X86 { instruction, run, undefined } => {
                self.next = instruction.next_ip();
                self.execute_one(instruction, *run, *undefined)
            }
            Decoded::Arm(instruction) => {
                self.next = self.at + 4;
                (program.semantics.arm)(self, instruction.as_ref())
            }
        }
    }

    fn execute_one(&mut self, instruction: &Instruction, run: Option<Run<D>>, undefined: u32) -> Step {
        let Some(run) = run else {
            return Err(self.stop(format!("the instruction `{}` has no semantics", text(instruction))));
        };
        run(self, instruction)?;
        if undefined != 0 {
            self.undefine(undefined);
        }
        Ok(())
    }

    fn undefine(&mut self, bits: u32) {
        for (bit, flag) in FLAGS.into_iter().zip(self.flags.all()) {
            flag.defined &= bits & bit == 0;
        }
    }

    /// The reason why a run cannot go on, at the current instruction.
    pub fn stop(&self, reason: impl Into<String>) -> Stop {
        let place = match self.image_import() {
            Some(name) => format!("the imported function {name}"),
            None => self.image().place(self.at),
        };
        Stop { place, reason: reason.into() }
    }

    fn image_import(&self) -> Option<&str> {
        self.image().imports.get(&self.at).map(String::as_str)
    }

    /// The address of the current instruction.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Adds a finding at the current instruction.
    pub fn find(&mut self, kind: Kind, detail: &str) {
        let at = u64::from(self.writer);
        let place = self.image().place(at);
        let code = self.program.decoded(at).map(|decoded| match decoded {
            Decoded::X86 { instruction, .. } => text(instruction),
            Decoded::Arm(instruction) => decoder::text(instruction.as_ref()),
        });
        let detail = format!("{detail}: `{}` at {place}", code.unwrap_or_default());
        let function = self.image().function_at(at);
        *self.findings.entry(Finding { kind, function, bytes: 0, depth: 0, detail }).or_default() += 1;
    }

    /// Returns a flag that an instruction reads. An undefined flag is an error, because its value is unknown, and so is whether it
    /// depends on a secret.
    ///
    /// # Errors
    /// If the flag is undefined.
    pub fn defined(&self, flag: Flag) -> Result<Flag, Stop> {
        if flag.defined { Ok(flag) } else { Err(self.stop("the instruction reads an undefined flag")) }
    }

    /// The outcome of a branch, or of another choice that an observer can see. A secret flag is reported. In a domain without values,
    /// the run then stops.
    ///
    /// # Errors
    /// If the flag is undefined, or is secret and has no value.
    pub fn decide(&mut self, flag: Flag) -> Result<bool, Stop> {
        let flag = self.defined(flag)?;
        if flag.secret {
            self.find(Kind::Branch, "branch");
            if !D::HAS_VALUES {
                return Err(self.stop("the branch has no value"));
            }
        }
        Ok(flag.value)
    }

    /// A number that an observer can see, such as an address. A secret number is reported.
    ///
    /// # Errors
    /// If the number is secret and has no value.
    pub fn public(&mut self, kind: Kind, what: &str, bytes: &[D::Byte]) -> Result<u64, Stop> {
        let number = Number::of::<D>(bytes);
        if number.is_secret() {
            self.find(kind, what);
            if !D::HAS_VALUES {
                return Err(self.stop(format!("the {what} has no value")));
            }
        }
        Ok(number.value)
    }

    /// The content of a register, with zeros above it.
    #[inline]
    pub fn register(&self, register: Register) -> Bytes<D> {
        let mut bytes = [D::constant(0); 64];
        if register.is_gpr64() {
            bytes[..8].copy_from_slice(&self.general[register.number()]);
            return bytes;
        }
        let size = register.size();
        if register.is_gpr() {
            let offset = offset(register);
            bytes[..size].copy_from_slice(&self.general[number(register)][offset..offset + size]);
        } else if register.is_vector_register() {
            bytes[..size].copy_from_slice(&self.vectors[register.number()][..size]);
        } else if register.is_k() {
            bytes[..8].copy_from_slice(&self.masks[register.number()]);
        }
        bytes
    }

    /// The content of a general register with this number.
    pub fn general_number(&self, number: usize) -> [D::Byte; 8] {
        self.general[number]
    }

    /// Sets the general register with this number.
    pub fn set_general_number(&mut self, number: usize, bytes: [D::Byte; 8]) {
        (self.general[number], self.general_writers[number]) = (bytes, self.writer);
    }

    /// The lowest 16 bytes of the vector register with this number.
    pub fn vector_number(&self, number: usize) -> [D::Byte; 16] {
        from_fn(|place| self.vectors[number][place])
    }

    /// Sets the lowest 16 bytes of the vector register with this number.
    pub fn set_vector_number(&mut self, number: usize, bytes: [D::Byte; 16]) {
        self.vectors[number][..16].copy_from_slice(&bytes);
        self.vector_writers[number] = self.writer;
    }

    /// Sets a general register. A register of 4 bytes clears the bytes above it.
    pub fn set_general(&mut self, register: Register, bytes: &[D::Byte]) {
        let (index, offset, size) = (number(register), offset(register), register.size());
        self.general[index][offset..offset + size].copy_from_slice(&bytes[..size]);
        if size == 4 {
            self.general[index][4..].fill(D::constant(0));
        }
        self.general_writers[index] = self.writer;
    }

    /// Sets a vector register. If `keeps_rest` is false, clears the bytes above the written ones.
    pub fn set_vector(&mut self, register: Register, bytes: &Bytes<D>, keeps_rest: bool) {
        let (index, size) = (register.number(), register.size());
        self.vectors[index][..size].copy_from_slice(&bytes[..size]);
        if !keeps_rest {
            self.vectors[index][size..].fill(D::constant(0));
        }
        self.vector_writers[index] = self.writer;
    }

    /// Sets a general register of 8 bytes to a public number.
    pub fn set_number(&mut self, register: Register, value: u64) {
        self.set_general(register, &value.to_le_bytes().map(D::constant));
    }

    /// Reads memory.
    ///
    /// # Errors
    /// If the access is out of bounds.
    pub fn load(&mut self, address: u64, size: usize) -> Result<Bytes<D>, Stop> {
        let mut bytes = [D::constant(0); 64];
        self.memory.read(address, &mut bytes[..size]).map_err(|denied| self.deny(&denied))?;
        Ok(bytes)
    }

    /// Writes memory.
    ///
    /// # Errors
    /// If the access is out of bounds.
    pub fn store(&mut self, address: u64, bytes: &[D::Byte]) -> Step {
        if (STACK_END - STACK as u64..self.lowest).contains(&address) {
            self.lowest = address;
        }
        if bytes.len() == 1 && self.is_verdict() && !self.follows_change() {
            let is_assumed = self.assumes_equal && D::secret(bytes[0]) != 0;
            let verdict = D::constant(if is_assumed { 1 } else { D::value(bytes[0]) });
            return self.memory.write(address, &[verdict], self.writer).map_err(|denied| self.deny(&denied));
        }
        self.memory.write(address, bytes, self.writer).map_err(|denied| self.deny(&denied))
    }

    /// True inside the function of the crate `subtle` that returns the result of each comparison of secrets. This result is public.
    fn is_verdict(&self) -> bool {
        let name = self.program.image.verdict;
        name.is_some_and(|(start, end)| (start..end).contains(&self.at))
    }

    /// Reports an access that is a fault.
    pub fn deny(&mut self, denied: &Denied) -> Stop {
        let Denied { address, len, writes, near } = denied;
        let what = if *writes { "write" } else { "read" };
        let near = match near {
            Some((name, offset)) => format!("byte {offset} from the start of {name}"),
            None => format!("address {address:#x}"),
        };
        let detail = format!("{what} of {len} bytes at {near}");
        self.find(Kind::Access, &detail);
        self.stop(detail)
    }

    /// Pushes a public number of 8 bytes.
    ///
    /// # Errors
    /// If the stack is full.
    pub fn push(&mut self, value: u64) -> Step {
        self.push_bytes(&value.to_le_bytes().map(D::constant))
    }

    /// Pushes bytes.
    ///
    /// # Errors
    /// If the stack is full.
    pub fn push_bytes(&mut self, bytes: &[D::Byte]) -> Step {
        let top = self.register(Register::RSP);
        let top = self.public(Kind::Address, "stack pointer", &top[..8])? - bytes.len() as u64;
        self.set_number(Register::RSP, top);
        self.store(top, bytes)
    }

    /// Pops 8 bytes.
    ///
    /// # Errors
    /// If the stack is empty.
    pub fn pop(&mut self) -> Result<Bytes<D>, Stop> {
        let top = self.register(Register::RSP);
        let top = self.public(Kind::Address, "stack pointer", &top[..8])?;
        let bytes = self.load(top, 8)?;
        self.set_number(Register::RSP, top + 8);
        Ok(bytes)
    }

    /// Sets all registers and the stack to arbitrary public values, as if an unrelated program had run.
    pub fn clear_scratch(&mut self) {
        static ARBITRARY: LazyLock<Vec<u8>> = LazyLock::new(|| (0..72 * 64).map(arbitrary).collect());
        let (registers, masks) = ARBITRARY.as_chunks::<64>().0.split_at(64);
        for (index, register) in self.general.iter_mut().enumerate() {
            *register = from_fn(|place| D::constant(registers[index][place]));
        }
        for (index, register) in self.vectors.iter_mut().enumerate() {
            *register = registers[32 + index].map(D::constant);
        }
        for (index, register) in self.masks.iter_mut().enumerate() {
            *register = from_fn(|place| D::constant(masks[index][place]));
        }
        // The bytes below the lowest one that the program has written have not changed.
        let start = STACK_END - STACK as u64;
        let from = (self.lowest.max(start) - start) as usize;
        self.memory.restore(start, from, |place| D::constant(arbitrary(place)));
        self.lowest = STACK_END;
    }
}

/// The initial value of a byte of memory or of a register. Neighbouring bytes have different values.
fn arbitrary(place: usize) -> u8 {
    ((place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// The stack at the start of a run.
fn stack<D: Domain>() -> Region<D> {
    let bytes = (0..STACK).map(|place| D::constant(arbitrary(place))).collect();
    Region::new("the stack", Role::Stack, STACK_END - STACK as u64, true, bytes)
}

/// An instruction in the syntax of Intel's manuals.
pub fn text(instruction: &Instruction) -> String {
    use iced_x86::FastFormatter;
    let mut text = String::new();
    FastFormatter::new().format(instruction, &mut text);
    text
}

#[cfg(test)]
mod tests;
