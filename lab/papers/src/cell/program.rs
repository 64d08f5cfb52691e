//! User programs: assembled, listed, run.

use std::collections::BTreeMap;

use lockstep_spu::asm::{Image, assemble};
use lockstep_spu::isa::Inst;
use lockstep_spu::sim::{Machine, Summary, Trace};

use super::Error;
use super::window::{Both, Window};

/// Assembles a program and returns a listing: addresses, words and instructions.
///
/// # Errors
/// [`Error::Assembly`] with file and line.
pub fn listing(file: &str, source: &str) -> Result<String, Error> {
    let image = assemble(file, source)?;
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

/// The bytes of a word in hex; the last word of the data may be incomplete.
fn word(image: &Image, at: u32) -> String {
    let start = (at - image.origin) as usize;
    let bytes = &image.bytes[start..image.bytes.len().min(start + 4)];
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{hex:<8}")
}

/// Assembles a program and runs it to its `stop`, for at most `budget` cycles. Returns the first cycles of both pipes,
/// and totals.
///
/// # Errors
/// [`Error::Assembly`], or [`Error::Fault`] with file and address.
pub fn run(file: &str, source: &str, shown: u64, budget: u64) -> Result<String, Error> {
    let image = assemble(file, source)?;
    let mut machine = Machine::new();
    machine.load(&image);
    let range = 1..shown.saturating_add(1);
    let (mut trace, mut summary) = (Trace::new(range.clone()), Summary::default());
    let run = machine.run_observed(budget, &mut Both(&mut trace, &mut summary));
    let run = run.map_err(|fault| Error::Fault { file: file.into(), fault })?;
    let title = format!(
        "{file}: {} instructions in {} cycles, then stop {:#x}",
        run.instructions, run.cycles, run.code
    );
    let window = Window::of_program(title, &image, &trace, range);
    Ok(format!("{window}\nall: {summary}"))
}
