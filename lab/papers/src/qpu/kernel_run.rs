//! Compiles kernels that are written as text, lists their instructions, and runs them.

use lockstep_qpu::sim::{self, Event, Leftovers, Machine, Observer, QPUS, Vector};
use lockstep_report::{WIDTH, wrap};
use zeroize::{Zeroize, Zeroizing};

use super::Error;
use super::language::{Element, Mistake, Print, Program, Type, compile};
use super::program::{printable, totals};
use super::window::{Recorded, Window};

/// Maximum size of the memory of a run in bytes.
const MAX_MEMORY: usize = 256 << 20;

/// Number of zero bytes after each buffer: two vectors for each QPU, because kernels request vectors in advance, and the last vectors may
/// be incomplete.
const MARGIN: usize = 2 * 64 * QPUS as usize;

/// Buffers, and the uniforms of a QPU, start at a multiple of this number of bytes, which is a line of the caches.
const ALIGNMENT: usize = 64;

/// Maximum number of printed vectors.
const MAX_PRINTS: usize = 10_000;

/// The data of a run. The names are those of parameters of the function `kernel`.
#[derive(Default)]
pub struct Data {
    /// The contents of buffers before the run.
    pub inputs: Vec<(String, Vec<u8>)>,
    /// The buffers that are read after the run, with their lengths in bytes. A missing length is the length of the buffer's input or, if
    /// the buffer has no input, of the first input.
    pub outputs: Vec<(String, Option<usize>)>,
    /// The values of the parameters that are not pointers.
    pub values: Vec<(String, String)>,
    /// The buffers whose files have one byte for each word of the buffer.
    pub bytes: Vec<String>,
}

/// The data are wiped, because they may contain keys.
impl Drop for Data {
    fn drop(&mut self) {
        self.inputs.iter_mut().for_each(|(_, bytes)| bytes.zeroize());
        self.values.iter_mut().for_each(|(_, value)| value.zeroize());
    }
}

/// A kernel that has ended, or stopped with a fault.
pub struct Finished {
    /// The printed vectors, the first instructions, and totals.
    pub text: String,
    /// The contents of the outputs, in the order of [`Data::outputs`].
    pub outputs: Vec<Zeroizing<Vec<u8>>>,
    /// The fault, if there was one.
    pub fault: Option<Error>,
}

/// A buffer in the memory of a run.
struct Buffer<'d> {
    name: &'d str,
    address: usize,
    input: &'d [u8],
    output: usize,
    /// True if the buffer has a word for each byte of its file.
    is_bytes: bool,
}

impl Buffer<'_> {
    /// The number of bytes of memory for each byte of a file.
    fn stride(&self) -> usize {
        if self.is_bytes { 4 } else { 1 }
    }

    /// The end of the content in memory, without the margin.
    fn end(&self) -> Option<usize> {
        let bytes = self.input.len().max(self.output).checked_mul(self.stride())?;
        self.address.checked_add(bytes.checked_next_multiple_of(ALIGNMENT)?)
    }
}

fn setup(message: String) -> Error {
    Error::Setup(message)
}

fn compiled(file: &str, source: &str) -> Result<Program, Error> {
    compile(source).map_err(|Mistake { line, column, message }| Error::Text {
        file: file.into(),
        line,
        column,
        message: printable(&message),
    })
}

/// Compiles a kernel and returns a listing: addresses, words and instructions.
///
/// # Errors
/// [`Error::Text`].
pub fn kernel_listing(file: &str, source: &str) -> Result<String, Error> {
    let words: Vec<u64> = compiled(file, source)?.instructions.iter().map(|one| one.encode()).collect();
    Ok(lockstep_qpu::isa::disassemble(&words))
}

/// Compiles a kernel and runs it for at most `budget` clocks. The returned text shows the first `shown` instructions.
///
/// # Errors
/// [`Error::Text`], and [`Error::Setup`] if the data do not fit the parameters of the kernel.
///
/// # Panics
/// If there are more QPUs than the chip has.
pub fn run_kernel(
    file: &str,
    source: &str,
    data: &Data,
    qpus: u8,
    shown: usize,
    budget: u64,
) -> Result<Finished, Error> {
    let program = compiled(file, source)?;
    check_names(&program, data)?;
    let buffers = buffers(&program, data, qpus)?;
    let (mut memory, starts) = filled(&program, data, &buffers, qpus)?;
    let keep: fn(&Event) -> bool = |_| true;
    let mut watch = Watch { recorded: Recorded::new(keep, shown), prints: Vec::new() };
    let simulated = sim::Program::new(&program.instructions);
    let result = Machine::new(&simulated, &starts).run_observed(&mut memory, budget, &mut watch);
    let mut text = watch.printed(&program);
    let run = match result {
        Ok(run) => run,
        Err(fault) => {
            let fault = match program.line(fault.address) {
                Some(line) => Error::Program { file: file.into(), line, message: fault.to_string() },
                None => Error::Fault { file: file.into(), fault },
            };
            return Ok(Finished { text, outputs: Vec::new(), fault: Some(fault) });
        }
    };
    let title = format!("{file}: {} instructions in {} clocks", run.instructions, run.clocks);
    if shown > 0 {
        let window = Window::of_program(title, program.instructions.clone(), watch.recorded, qpus);
        text += &format!("{window}\n");
    } else {
        text.extend(wrap(&title, WIDTH).into_iter().map(|line| line + "\n"));
    }
    text += &totals(&run);
    text += &warning(&run.leftovers);
    let output = |(name, _): &(String, Option<usize>)| {
        let buffer = buffers.iter().find(|buffer| buffer.name == name).expect("the names are checked");
        let words = memory[buffer.address..].chunks_exact(buffer.stride());
        Zeroizing::new(words.take(buffer.output).map(|word| word[0]).collect())
    };
    Ok(Finished { text, outputs: data.outputs.iter().map(output).collect(), fault: None })
}

/// The distance in bytes from the uniforms of a QPU to the uniforms of the next QPU.
fn uniforms_stride(program: &Program) -> usize {
    (4 * (2 + program.parameters.len())).next_multiple_of(ALIGNMENT)
}

/// The memory at the start of a run, and the address of the first uniform of each QPU.
fn filled(
    program: &Program,
    data: &Data,
    buffers: &[Buffer<'_>],
    qpus: u8,
) -> Result<(Zeroizing<Vec<u8>>, Vec<u32>), Error> {
    let mut uniforms = vec![0, u32::from(qpus)];
    for (kind, name) in &program.parameters {
        uniforms.push(match buffers.iter().find(|buffer| buffer.name == name) {
            Some(buffer) => buffer.address as u32,
            None => value(*kind, name, data)?,
        });
    }
    let stride = uniforms_stride(program);
    let end = buffers.last().and_then(Buffer::end).unwrap_or(stride * usize::from(qpus));
    let mut memory = Zeroizing::new(vec![0; end + MARGIN]);
    let starts: Vec<u32> = (0..u32::from(qpus)).map(|qpu| stride as u32 * qpu).collect();
    for (qpu, start) in (0..).zip(&starts) {
        uniforms[0] = qpu;
        let places = memory[*start as usize..].chunks_exact_mut(4);
        places.zip(&uniforms).for_each(|(place, word)| place.copy_from_slice(&word.to_le_bytes()));
    }
    for buffer in buffers {
        let places = memory[buffer.address..].chunks_exact_mut(buffer.stride());
        places.zip(buffer.input).for_each(|(place, byte)| place[0] = *byte);
    }
    Ok((memory, starts))
}

/// Checks that each name in the data is the name of a parameter of the right kind, and that each parameter has one value.
fn check_names(program: &Program, data: &Data) -> Result<(), Error> {
    let lists: [(&str, Vec<&String>, bool); 4] = [
        ("two inputs", data.inputs.iter().map(|(name, _)| name).collect(), true),
        ("two outputs", data.outputs.iter().map(|(name, _)| name).collect(), true),
        ("--bytes twice", data.bytes.iter().collect(), true),
        ("two values", data.values.iter().map(|(name, _)| name).collect(), false),
    ];
    for (twice, names, is_pointer) in lists {
        for (number, name) in names.iter().enumerate() {
            let shown = printable(name);
            let Some((kind, _)) = program.parameters.iter().find(|(_, parameter)| parameter == *name) else {
                let all: Vec<&str> = program.parameters.iter().map(|(_, name)| name.as_str()).collect();
                let all = if all.is_empty() { "none".into() } else { all.join(", ") };
                return Err(setup(format!("`{shown}` is no parameter of `kernel`, which has {all}")));
            };
            if matches!(kind, Type::Pointer(_)) != is_pointer {
                let right = if is_pointer { "--set" } else { "--in, --out or --round-keys" };
                return Err(setup(format!("the parameter `{shown}` of `kernel` is {kind}: use {right}")));
            }
            if names[..number].contains(name) {
                return Err(setup(format!("the parameter `{shown}` has {twice}: remove one")));
            }
        }
    }
    Ok(())
}

/// The buffers to which the parameters point. In memory, they come after the uniforms.
fn buffers<'d>(program: &'d Program, data: &'d Data, qpus: u8) -> Result<Vec<Buffer<'d>>, Error> {
    let mut buffers: Vec<Buffer<'_>> = Vec::new();
    let mut address = uniforms_stride(program) * usize::from(qpus);
    for (_, name) in program.parameters.iter().filter(|(kind, _)| matches!(kind, Type::Pointer(_))) {
        let input = data.inputs.iter().find(|(input, _)| input == name);
        let output = data.outputs.iter().find(|(output, _)| output == name);
        if input.is_none() && output.is_none() {
            let message = format!(
                "the parameter `{name}` of `kernel` has no memory: give --in {name}=FILE, --out {name}=FILE, or both"
            );
            return Err(setup(message));
        }
        let default = || input.or(data.inputs.first()).map(|(_, bytes)| bytes.len());
        let output = match output {
            None => 0,
            Some((_, bytes)) => bytes.or_else(default).ok_or_else(|| {
                setup(format!(
                    "--out {name}: there is no input that has its length: give --out {name}:BYTES=FILE"
                ))
            })?,
        };
        let input = input.map_or(&[][..], |(_, bytes)| bytes);
        let buffer = Buffer { name, address, input, output, is_bytes: data.bytes.contains(name) };
        let end = buffer.end().and_then(|end| end.checked_add(MARGIN)).filter(|end| *end <= MAX_MEMORY);
        address = end.ok_or_else(|| {
            setup(format!(
                "the buffer `{name}` does not fit: all buffers have at most {} MiB",
                MAX_MEMORY >> 20
            ))
        })?;
        buffers.push(buffer);
    }
    Ok(buffers)
}

/// The uniform of a parameter that is not a pointer.
fn value(kind: Type, name: &str, data: &Data) -> Result<u32, Error> {
    let found = data.values.iter().find(|(value, _)| value == name);
    let (_, text) = found.ok_or_else(|| {
        setup(format!("the parameter `{name}` of `kernel` has no value: give --set {name}=NUMBER"))
    })?;
    let value = match kind {
        Type::Vector(Element::Float) => {
            text.parse::<f32>().ok().filter(|value| value.is_finite()).map(f32::to_bits)
        }
        _ => crate::memory::word(text),
    };
    value.ok_or_else(|| setup(format!("--set {name}: `{}` is no {kind}", printable(text))))
}

/// Records the first instructions and the printed vectors of a run.
struct Watch {
    recorded: Recorded<fn(&Event) -> bool>,
    prints: Vec<(u8, u32, Vector)>,
}

impl Observer for Watch {
    fn executed(&mut self, event: Event) {
        self.recorded.executed(event);
    }

    fn printed(&mut self, qpu: u8, address: u32, vector: &Vector) {
        // One vector more than the maximum is stored, so that the text can state that there are more.
        if self.prints.len() <= MAX_PRINTS {
            self.prints.push((qpu, address, *vector));
        }
    }
}

impl Watch {
    /// The printed vectors as text.
    fn printed(&self, program: &Program) -> String {
        let mut text = String::new();
        for (qpu, address, vector) in self.prints.iter().take(MAX_PRINTS) {
            let Some(Print { line, text: label, kind }) = program.print(*address) else { continue };
            let label = label.as_ref().map_or_else(String::new, |label| format!(" {}", printable(label)));
            let elements: Vec<String> = vector.iter().map(|bits| element(*bits, *kind)).collect();
            let shown = format!("line {line}, QPU {qpu}:{label} {}", elements.join(" "));
            text.extend(wrap(&shown, WIDTH).into_iter().map(|line| line + "\n"));
        }
        if self.prints.len() > MAX_PRINTS {
            text += &format!("More than {MAX_PRINTS} vectors were printed: the others are not shown.\n");
        }
        if text.is_empty() { text } else { text + "\n" }
    }
}

fn element(bits: u32, kind: Type) -> String {
    match kind {
        Type::Vector(Element::Int) => (bits as i32).to_string(),
        Type::Vector(Element::Float) => f32::from_bits(bits).to_string(),
        Type::Vector(Element::Char) => format!("{bits:08x}"),
        Type::Pointer(_) => format!("{bits:#x}"),
    }
}

/// A warning about work that the kernel has left unfinished. On a board, this work would disturb the next program.
fn warning(left: &Leftovers) -> String {
    match left.requests {
        0 => String::new(),
        1 => "warning: 1 vector was requested by gather() and not received\n".into(),
        requests => format!("warning: {requests} vectors were requested by gather() and not received\n"),
    }
}
