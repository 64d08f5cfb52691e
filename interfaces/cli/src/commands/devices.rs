//! `lockstep devices`

use std::fmt::Write;

use clap::Args;
use lockstep::Engine;
use lockstep::aead::Aead;
use lockstep::hazmat::backend::{Device, DeviceProperties, KernelId, KernelInfo};
use lockstep::hazmat::mode::Direction;
use lockstep::hazmat::planner::Considered;
use lockstep::hazmat::work::Operation;
use serde_json::{Value, json};

use crate::error::Result;
use crate::options::EngineArgs;
use crate::terminal::{self, hang};

/// The width of the table of chosen kernels, in characters.
const TABLE: usize = 66;

/// A small and a large message size in bytes. The command reports the kernel that the planner chooses for each of them.
const SIZES: [usize; 2] = [1024, 16 << 20];

/// List the devices, their kernels, and the kernel that is chosen for each operation
#[derive(Args)]
#[command(after_long_help = "Examples:\n  lockstep devices\n  lockstep devices --json")]
pub struct Devices {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    engine: EngineArgs,
}

pub(crate) fn run(args: &Devices) -> Result<()> {
    let engine = args.engine.engine(false, None)?;
    let found = super::discover(&engine);
    if args.json {
        let missing = found.missing.iter().map(
            |(name, missing)| json!({ "backend": name, "reason": missing.reason, "remedy": missing.remedy }),
        );
        return super::print_json(&json!({
            "threads": engine.threads(),
            "devices": found.devices.iter().map(|device| device_json(&**device)).collect::<Vec<_>>(),
            "missing": missing.collect::<Vec<_>>(),
            "chosen": Operation::all().map(|operation| choice_json(&engine, operation)).collect::<Vec<_>>(),
        }));
    }
    let mut report: String = found.devices.iter().map(|device| describe(&**device)).collect();
    for (name, missing) in &found.missing {
        report += &hang("", 4, &format!("{name}: not here: {missing}"));
    }
    // Writing to a string cannot fail.
    let _ = writeln!(report, "\nchosen on {} CPU threads, AES-256:", engine.threads());
    // On a narrow terminal, the choices for the small and for the large message are in one column.
    let row = |label: &str, small: &str, large: &str| match terminal::width() {
        ..TABLE => hang(&format!("  {label:<18} "), 4, &format!("{small}, {large}")),
        _ => format!("  {label:<18} {small:<22} {large}\n"),
    };
    report += &row("", "1 KiB", "16 MiB");
    let mut has_estimates = false;
    for operation in Operation::all() {
        let choices = chosen(&engine, operation);
        has_estimates |= choices.iter().any(|chosen| chosen.as_ref().is_none_or(|it| !it.is_measured));
        let [small, large] = choices.map(|chosen| match chosen {
            Some(Considered { kernel, is_measured: true, .. }) => kernel.to_owned(),
            Some(Considered { kernel, .. }) => format!("{kernel} *"),
            None if is_composed(&engine, operation) => "composed".into(),
            None => "not supported".into(),
        });
        report += &row(&operation.words(), &small, &large);
    }
    if has_estimates {
        report += &hang("", 2, "* estimated; `lockstep calibrate` measures");
    }
    super::print(&report.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>())
}

fn describe(device: &dyn Device) -> String {
    let properties = match device.properties() {
        DeviceProperties { simulated: true, by_name_only: true, .. } => " (simulated: chosen by name only)",
        DeviceProperties { simulated: true, .. } => " (simulated)",
        DeviceProperties { by_name_only: true, .. } => " (chosen by name only)",
        _ => "",
    };
    let mut report = hang("", 4, &format!("{}: {}{properties}", device.id(), device.description()));
    let width = device.kernels().iter().map(|kernel| kernel.name.len()).max().unwrap_or_default().max(14);
    let beside = |label: &str, words: &str| hang(&format!("  {label:<width$} "), width + 3, words);
    for kernel in device.kernels() {
        report += &beside(kernel.name, kernel.description);
        if !kernel.constant_time {
            report += &beside("", "leaks timing: chosen by name only");
        }
        if let Some(why) = &kernel.missing {
            report += &beside("", &format!("not here: {why}"));
        }
    }
    let lacking: Vec<_> = lacking(device).into_iter().map(Operation::words).collect();
    if !lacking.is_empty() {
        report += &hang("  not supported: ", 4, &lacking.join(", "));
    }
    report
}

/// The passes that no kernel of the device supports. A kernel supports an operation if its `cost` for the operation is not `None`.
fn lacking(device: &dyn Device) -> Vec<Operation> {
    let kernels = || (0..).zip(device.kernels()).filter(|(_, info)| info.missing.is_none());
    let supports = |operation: Operation| {
        let mut kernels = kernels().map(|(number, _)| KernelId(number));
        kernels.any(|kernel| device.cost(kernel, operation, operation.largest_key()).is_some())
    };
    let passes = Operation::all().filter(|operation| matches!(operation, Operation::Pass(_)));
    passes.filter(|&pass| !supports(pass)).collect()
}

fn device_json(device: &dyn Device) -> Value {
    let kernel = |kernel: &KernelInfo| {
        json!({
            "name": kernel.name,
            "description": kernel.description,
            "constant_time": kernel.constant_time,
            "available": kernel.missing.is_none(),
            "missing": kernel.missing,
        })
    };
    json!({
        "name": device.id().to_string(),
        "description": device.description(),
        "simulated": device.properties().simulated,
        "by_name_only": device.properties().by_name_only,
        "kernels": device.kernels().iter().map(kernel).collect::<Vec<_>>(),
        "not_supported": lacking(device).iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// The kernel that the planner chooses for an operation at each of the [`SIZES`]. `None` if no kernel supports the operation.
fn chosen(engine: &Engine, operation: Operation) -> [Option<Considered>; 2] {
    SIZES.map(|bytes| {
        let considered = engine.planner().consider(operation, operation.largest_key(), bytes, None);
        considered.into_iter().find(|choice| choice.is_chosen)
    })
}

/// True if the operation is a fused AEAD and the engine has kernels for the passes of which the AEAD is composed. The engine can then
/// run the passes if it has no fused kernel.
fn is_composed(engine: &Engine, operation: Operation) -> bool {
    let has_operation =
        |mode: &Aead| mode.row().fused.is_some_and(|fused| fused.map(Operation::Fused).contains(&operation));
    let supports = |part, size| matches!(part, Operation::Pass(_)) && engine.planner().supports(part, size);
    let is_supported = |mode: Aead| mode.is_supported(Direction::Decrypt, operation.largest_key(), supports);
    Aead::ALL.into_iter().find(has_operation).is_some_and(is_supported)
}

fn choice_json(engine: &Engine, operation: Operation) -> Value {
    let by_size = SIZES.iter().zip(chosen(engine, operation)).map(|(bytes, chosen)| {
        json!({
            "bytes": bytes,
            "kernel": chosen.as_ref().map(|chosen| chosen.kernel),
            "supported": chosen.is_some() || is_composed(engine, operation),
            "measured": chosen.is_some_and(|chosen| chosen.is_measured),
        })
    });
    json!({ "operation": operation.to_string(), "by_size": by_size.collect::<Vec<_>>() })
}
