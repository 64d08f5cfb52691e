//! The subcommand `lockstep-lab lab geforce`.

use std::sync::Arc;

use clap::{Args, Subcommand};
use lockstep::hazmat::backend::Device;
use lockstep_cli::program::{Note, Result, failed, print, print_json, today};
use lockstep_papers::geforce::engine::{self, Conditions, EDGES, Report};
use lockstep_papers::geforce::{self, Model, Sweep};

use super::{ReportForm, cuda, opengl, write_page};

mod program;

/// AES on a GeForce 6800 and 8800 in an OpenSSL engine (a thesis of 2007): a model of the 6800's texture cache
///
/// Prints the thesis's times, and those of a model of the texture cache on the lookups of the shader: which times fix its
/// parameters, which ones it predicts, and which experiments would refute it. The results do not depend on the machine.
/// `lockstep-lab lab geforce measure` runs the thesis's kernels on this machine.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Geforce {
    #[command(flatten)]
    form: ReportForm,

    #[command(subcommand)]
    more: Option<More>,
}

#[derive(Subcommand)]
enum More {
    Measure(Measure),
    #[command(name = "openssl")]
    OpenSsl(program::OpenSslRuns),
}

/// Encrypt the thesis's files on this machine, by its kernels in OpenGL and CUDA
///
/// Measures the eight files by the edge of the texture, with whole and with fitted passes; the padding; copies without
/// encryption; the kernel of the GeForce 8800 by its configuration, if there is a GPU with CUDA; and encrypts a file on a
/// device with injected errors, once for each kind of `--verify`. Every encryption by a device is compared with the CPU's.
#[derive(Args)]
pub(super) struct Measure {
    /// Measure this OpenGL device, such as `opengl:software` [default: the first GPU]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// Measure the kernel of the GeForce 8800 on this CUDA device, such as `cuda:emu` [default: the first GPU, if there is
    /// one]
    #[arg(long, value_name = "NAME")]
    cuda: Option<String>,

    /// Divide the sizes of the files by this number [default: 1; for a software device 64, for the CUDA emulator 4096]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    scale: Option<u64>,

    /// Number of runs whose mean is printed
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,

    /// Edges of the texture in texels, from 1 to 1024 [default: 256,512,1024]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    edges: Vec<u32>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// By default, the sizes of the files are divided by these numbers on software devices and on the emulator.
const SOFTWARE_SCALE: u64 = 64;
const EMULATOR_SCALE: u64 = 4096;

pub(super) fn run(args: &Geforce) -> Result<()> {
    match (&args.more, &args.form.page) {
        (Some(More::Measure(args)), _) => measure(args),
        (Some(More::OpenSsl(args)), _) => program::run(args),
        (None, Some(file)) => {
            write_page(file, |folder| Ok(geforce::page(&Model::run(), &Sweep::run(), folder)))
        }
        (None, None) if args.form.json => print_json(&geforce::json(&Model::run())),
        (None, None) => print(&geforce::text(&Model::run())),
    }
}

fn measure(args: &Measure) -> Result<()> {
    let cuda = match &args.cuda {
        Some(name) => Some(cuda::device(Some(name))?),
        None => cuda::device(None).ok(),
    };
    let opengl = opengl::device(args.device.as_deref())?;
    let is_software = |device: &dyn Device| device.properties().by_name_only;
    let scale = args.scale.unwrap_or(if is_software(&opengl) { SOFTWARE_SCALE } else { 1 });
    let is_emulated = cuda.as_ref().is_some_and(|cuda| is_software(cuda));
    let scale_8800 = if is_emulated { args.scale.unwrap_or(EMULATOR_SCALE) } else { scale };
    let edges: Vec<usize> = args.edges.iter().map(|edge| *edge as usize).collect();
    let edges = if edges.is_empty() { EDGES.into() } else { edges };
    let conditions = Conditions { scale, scale_8800, runs: args.runs as usize, edges };
    let name = opengl.id().to_string();
    let open = |experiment| match opengl::device(Some(&name)) {
        Ok(device) => Ok(device.with_experiment(experiment)),
        Err(_) => Err(lockstep::hazmat::Error::UnknownDevice { name: name.clone(), known: String::new() }),
    };
    let note = Note::new();
    let measured = engine::measure(&open, cuda.as_ref(), conditions, |step| note.show(&step));
    let measured = measured.map_err(|error| failed(error.to_string()))?;
    note.show("a hot card");
    let opengl: Arc<dyn Device> = Arc::new(opengl);
    let hot_card = engine::hot_card(&opengl, scale).map_err(|error| failed(error.to_string()))?;
    drop(note);
    let report = Report { measured, hot_card, date: today() };
    if args.json { print_json(&report.json()) } else { print(&report.text()) }
}
