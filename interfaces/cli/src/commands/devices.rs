//! `lockstep devices`

use std::fmt::Write;

use clap::Args;
use lockstep::Engine;
use lockstep::hazmat::backend::{Device, DeviceProperties, KernelId, KernelInfo};
use lockstep::hazmat::work::{FusedAead, Operation, Pass};
use lockstep_report::hang;
use serde_json::{Value, json};

use crate::error::Result;
use crate::options::EngineArgs;

/// Message sizes for which the chosen kernel is reported: a small and a large message.
const SIZES: [usize; 2] = [1024, 16 << 20];

/// Texts in the place of a kernel name: for an operation that is composed of other operations, and for an operation
/// that no kernel supports.
const COMPOSED: &str = "composed";
const NONE: &str = "not supported";

/// List the devices, their kernels, and the kernel that is chosen for each operation
#[derive(Args)]
pub struct Devices {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    engine: EngineArgs,
}

pub(crate) fn run(args: &Devices) -> Result<()> {
    let engine = args.engine.engine(false)?;
    let found = super::discover(&engine);
    let choices: Vec<_> = Operation::all().map(|operation| Choice::of(&engine, operation)).collect();
    if args.json {
        let devices: Vec<_> = found.devices.iter().map(|device| device_json(&**device)).collect();
        let missing: Vec<_> = found
            .missing
            .iter()
            .map(|(name, missing)| json!({ "backend": name, "reason": missing.reason, "remedy": missing.remedy }))
            .collect();
        let chosen: Vec<_> = choices.iter().map(Choice::json).collect();
        let all =
            json!({ "threads": engine.threads(), "devices": devices, "missing": missing, "chosen": chosen });
        return super::print_json(&all);
    }
    let mut text = String::new();
    for device in &found.devices {
        describe(&mut text, &**device);
    }
    for (name, missing) in &found.missing {
        text += &hang("", 4, &format!("{name}: not here: {missing}"));
    }
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\nchosen on {} CPU threads, AES-256:", engine.threads());
    let _ = writeln!(text, "  {:<18} {:<22} {:<22}", "", "1 KiB", "16 MiB");
    for choice in &choices {
        let by_statement = |index: usize| !choice.is_measured[index] && choice.kernels[index].contains('/');
        let mark = |index: usize| if by_statement(index) { " *" } else { "" };
        let [small, large] = [0, 1].map(|index| format!("{}{}", choice.kernels[index], mark(index)));
        let _ = writeln!(text, "  {:<18} {small:<22} {large:<22}", choice.operation.to_string());
    }
    if choices.iter().any(|choice| choice.is_measured.contains(&false)) {
        text += "* by what the device states; `lockstep calibrate` measures\n";
    }
    super::print(&text.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>())
}

fn describe(text: &mut String, device: &dyn Device) {
    let properties = match device.properties() {
        DeviceProperties { simulated: true, by_name_only: true, .. } => " (simulated: chosen by name only)",
        DeviceProperties { simulated: true, .. } => " (simulated)",
        DeviceProperties { by_name_only: true, .. } => " (chosen by name only)",
        _ => "",
    };
    *text += &hang("", 4, &format!("{}: {}{properties}", device.id(), device.description()));
    let width = device.kernels().iter().map(|kernel| kernel.name.len()).max().unwrap_or_default().max(14);
    let beside = |label: &str, words: &str| hang(&format!("  {label:<width$} "), width + 3, words);
    for kernel in device.kernels() {
        *text += &beside(kernel.name, kernel.description);
        if !kernel.constant_time {
            *text += &beside("", "leaks timing: chosen by name only");
        }
        if let Some(why) = &kernel.missing {
            *text += &beside("", &format!("not here: {why}"));
        }
    }
    let lacking: Vec<_> =
        passes().filter(|&pass| !supports(device, pass)).map(|pass| pass.to_string()).collect();
    if !lacking.is_empty() {
        *text += &hang("  not supported: ", 4, &lacking.join(", "));
    }
}

fn passes() -> impl Iterator<Item = Operation> {
    Operation::all().filter(|operation| matches!(operation, Operation::Pass(_)))
}

/// True if a kernel of the device supports the operation. A kernel supports an operation if its `cost` is not
/// `None`; the planner chooses only such kernels.
fn supports(device: &dyn Device, operation: Operation) -> bool {
    let kernels = device.kernels().iter().enumerate().filter(|(_, info)| info.missing.is_none());
    kernels
        .into_iter()
        .any(|(number, _)| device.cost(KernelId(number as u16), operation, operation.largest_key()).is_some())
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
        "not_supported": passes()
            .filter(|&pass| !supports(device, pass))
            .map(|pass| pass.to_string())
            .collect::<Vec<_>>(),
    })
}

/// The kernels that are chosen for an operation, one for each of [`SIZES`].
struct Choice {
    operation: Operation,
    kernels: [String; 2],
    /// Whether the choice is based on measurements.
    is_measured: [bool; 2],
}

impl Choice {
    fn of(engine: &Engine, operation: Operation) -> Choice {
        let chosen = SIZES.map(|bytes| {
            let considered = engine.planner().consider(operation, operation.largest_key(), bytes, None);
            considered.into_iter().find(|choice| choice.is_chosen)
        });
        // A fused AEAD that no kernel supports is composed of passes, if there are kernels for them.
        let supports = |pass| {
            let pass = Operation::Pass(pass);
            engine.planner().supports(pass, pass.largest_key())
        };
        let is_composed = match operation {
            Operation::Pass(_) => false,
            Operation::Fused(fused) => match fused.sealing() {
                FusedAead::OcbSeal => supports(Pass::EcbEncrypt) && supports(Pass::EcbDecrypt),
                FusedAead::GcmSivSeal => supports(Pass::CtrLittle32) && supports(Pass::Polyval),
                _ => supports(Pass::Ctr32) && supports(Pass::Ghash),
            },
        };
        let without = if is_composed { COMPOSED } else { NONE };
        let kernels = chosen.each_ref().map(|one| one.as_ref().map_or(without, |one| one.kernel).to_owned());
        Choice { operation, kernels, is_measured: chosen.map(|one| one.is_some_and(|one| one.is_measured)) }
    }

    fn json(&self) -> Value {
        let by_size = SIZES.iter().zip(&self.kernels).zip(&self.is_measured);
        let by_size = by_size.map(|((bytes, kernel), measured)| {
            let is_supported = kernel != NONE;
            let kernel = Some(kernel).filter(|kernel| is_supported && *kernel != COMPOSED);
            json!({ "bytes": bytes, "kernel": kernel, "supported": is_supported, "measured": measured })
        });
        json!({ "operation": self.operation.to_string(), "by_size": by_size.collect::<Vec<_>>() })
    }
}
