//! Assembles programs of users, lists their instructions, and runs them.

use std::collections::BTreeMap;
use std::ops::Range;

use lockstep_spu::asm::{AsmError, Image, assemble};
use lockstep_spu::isa::{Inst, LOCAL_STORE, Reg};
use lockstep_spu::sim::{Machine, Summary, Trace};
use zeroize::Zeroize;

use super::Error;
use super::window::{Both, Window};
use crate::memory;
use crate::mistake::column;

/// Assembles a program and returns a listing: addresses, words and instructions.
///
/// # Errors
/// [`Error::Assembly`] with file, line and column.
pub fn listing(file: &str, source: &str) -> Result<String, Error> {
    let image = assembled(file, source)?;
    let mut labels: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for (label, at) in &image.symbols {
        labels.entry(*at).or_default().push(label);
    }
    let mut text = String::new();
    for at in (image.origin..image.end()).step_by(4) {
        text.extend(labels.get(&at).into_iter().flatten().map(|label| format!("{label}:\n")));
        let code = image.word(at).filter(|_| image.code.contains(&at));
        let shown = code.and_then(Inst::decode).map_or_else(|| ".long".into(), |inst| inst.show(at));
        text += &format!("{at:#07x}  {}  {shown}\n", word(&image, at));
    }
    Ok(text)
}

/// Assembles a program.
fn assembled(file: &str, source: &str) -> Result<Image, Error> {
    assemble(file, source).map_err(|AsmError { file, line, message }| {
        let column = column(source, line, &message);
        Error::Assembly { file, line, column, message }
    })
}

/// Formats the bytes of a word in hexadecimal. The last word of the data may be incomplete.
fn word(image: &Image, at: u32) -> String {
    let start = (at - image.origin) as usize;
    let bytes = &image.bytes[start..image.bytes.len().min(start + 4)];
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{hex:<8}")
}

/// The data that a program finds when it starts. Addresses are numbers, or labels of the program.
#[derive(Default)]
pub struct Setup {
    /// Addresses in the local store, and the bytes there.
    pub memory: Vec<(String, Vec<u8>)>,
    /// Registers and their values: an address or a number of 32 bits for the preferred slot, or 32 hexadecimal digits
    /// for the whole register.
    pub registers: Vec<(u8, String)>,
    /// Main storage from address 0, for DMA commands.
    pub main: Vec<u8>,
}

/// A program that has reached its `stop`.
pub struct Finished {
    /// The first cycles of both pipes, and totals.
    pub text: String,
    machine: Machine,
    image: Image,
}

/// The data are wiped, because they may contain keys.
impl Drop for Setup {
    fn drop(&mut self) {
        self.memory.iter_mut().for_each(|(_, bytes)| bytes.zeroize());
        self.registers.iter_mut().for_each(|(_, value)| value.zeroize());
        self.main.zeroize();
    }
}

impl Finished {
    /// Bytes of the local store.
    ///
    /// # Errors
    /// [`Error::Setup`] if the address is unknown or the bytes are not inside the local store.
    pub fn memory(&self, start: &str, bytes: usize) -> Result<&[u8], Error> {
        Ok(self.machine.memory(range(&self.image, start, bytes)?))
    }

    /// Main storage.
    pub fn main(&self) -> &[u8] {
        self.machine.main()
    }
}

/// Returns the address that a text names by a label or a number.
fn address(image: &Image, text: &str) -> Result<u32, Error> {
    let found = image.symbols.get(text).copied().or_else(|| memory::number(text));
    found.ok_or_else(|| Error::Setup(format!("{text} is no label of the program and no number of 32 bits")))
}

/// Returns the range of `bytes` bytes from an address, which must be inside the local store.
fn range(image: &Image, start: &str, bytes: usize) -> Result<Range<usize>, Error> {
    let from = address(image, start)?;
    memory::range(from, start, bytes, LOCAL_STORE, "local store").map_err(Error::Setup)
}

/// Returns the value for a register that a text describes.
fn value(image: &Image, text: &str) -> Result<u128, Error> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    match u128::from_str_radix(digits, 16) {
        Ok(whole) if digits.len() == 32 => Ok(whole),
        _ => Ok(u128::from(address(image, text)?) << 96),
    }
}

/// Assembles a program and runs it to its `stop`, for at most `budget` cycles. The returned text shows `shown` cycles.
///
/// # Errors
/// [`Error::Assembly`], [`Error::Setup`], or [`Error::Fault`] with file and address.
pub fn run(file: &str, source: &str, mut setup: Setup, shown: u64, budget: u64) -> Result<Finished, Error> {
    let image = assembled(file, source)?;
    let mut machine = Machine::new();
    machine.load(&image);
    for (start, bytes) in &setup.memory {
        machine.memory_mut(range(&image, start, bytes.len())?).copy_from_slice(bytes);
    }
    for (register, text) in &setup.registers {
        machine.set_register(Reg::new(*register), value(&image, text)?);
    }
    machine.set_main(std::mem::take(&mut setup.main));
    let cycles = 1..shown.saturating_add(1);
    let (mut trace, mut summary) = (Trace::new(cycles.clone()), Summary::default());
    let run = machine.run_observed(budget, &mut Both(&mut trace, &mut summary));
    let run = run.map_err(|fault| Error::Fault { file: file.into(), fault })?;
    let title = format!(
        "{file}: {} instructions in {} cycles, then stop {:#x}",
        run.instructions, run.cycles, run.code
    );
    let window = Window::of_program(title, &image, &trace, cycles);
    let mut text = format!("{window}\nall: {summary}");
    if let [first, more @ ..] = machine.mailbox() {
        let more: String = more.iter().map(|value| format!(", {value:#x}")).collect();
        text += &format!("mailbox: {first:#x}{more}\n");
    }
    Ok(Finished { text, machine, image })
}
