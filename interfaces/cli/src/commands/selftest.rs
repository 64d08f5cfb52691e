//! `lockstep selftest`

use clap::Args;
use lockstep::hazmat::backend::{Device, KernelId};
use lockstep::hazmat::work::Operation;
use lockstep::hazmat::{KeySize, selftest};
use lockstep_report::hang;
use serde_json::json;

use crate::error::{Error, Result, failed};
use crate::options::EngineArgs;

/// Test every available kernel against known answers
///
/// Devices for tests and study, such as `wgpu:software`, are tested only if `--device` names them.
///
/// In all commands, each kernel is tested automatically before its first use.
#[derive(Args)]
pub struct Selftest {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    engine: EngineArgs,
}

/// The result of the tests of a kernel.
struct Outcome {
    device: String,
    kernel: &'static str,
    operations: usize,
    failures: Vec<String>,
    missing: Option<String>,
}

pub(crate) fn run(args: &Selftest) -> Result<()> {
    // The engine is built first: this returns an error for unknown names of devices and kernels.
    let engine = args.engine.engine(false)?;
    let wanted = |choice: &Option<String>, name: &str| match choice.as_deref() {
        None | Some("auto" | "") => true,
        Some(choice) => choice == name,
    };
    let mut outcomes = Vec::new();
    for device in super::discover(&engine).devices {
        let unnamed = matches!(args.engine.device.as_deref(), None | Some("auto" | ""));
        if !wanted(&args.engine.device, &device.id().to_string())
            || unnamed && device.properties().by_name_only
        {
            continue;
        }
        for (number, kernel) in device.kernels().iter().enumerate() {
            if wanted(&args.engine.kernel, kernel.name) {
                outcomes.push(test(&*device, KernelId(number as u16)));
            }
        }
    }
    if args.json {
        let kernels: Vec<_> = outcomes.iter().map(Outcome::json).collect();
        super::print_json(
            &json!({ "passed": outcomes.iter().all(|o| o.failures.is_empty()), "kernels": kernels }),
        )?;
    } else {
        super::print(&outcomes.iter().map(Outcome::text).collect::<String>())?;
    }
    let failures = outcomes.iter().filter(|outcome| !outcome.failures.is_empty()).count();
    if failures > 0 {
        return Err(Error::NotAuthentic(format!(
            "{failures} kernels failed the test and are not used: report this"
        )));
    }
    if outcomes.iter().all(|outcome| outcome.missing.is_some()) {
        return Err(failed("no kernel was tested"));
    }
    Ok(())
}

fn test(device: &dyn Device, kernel: KernelId) -> Outcome {
    let info = &device.kernels()[usize::from(kernel.0)];
    let mut outcome = Outcome {
        device: device.id().to_string(),
        kernel: info.name,
        operations: 0,
        failures: Vec::new(),
        missing: info.missing.clone(),
    };
    if info.missing.is_some() {
        return outcome;
    }
    for operation in Operation::all() {
        if KeySize::ALL.iter().all(|size| device.cost(kernel, operation, *size).is_none()) {
            continue;
        }
        outcome.operations += 1;
        if let Err(error) = selftest::run(device, kernel, operation) {
            outcome.failures.push(error.to_string());
        }
    }
    outcome
}

impl Outcome {
    fn text(&self) -> String {
        let Outcome { device, kernel, operations, failures, missing } = self;
        if let Some(why) = missing {
            return hang(&format!("{device}  {kernel:<18} "), 4, &format!("not here: {why}"));
        }
        let verdict = if failures.is_empty() { "passed" } else { "FAILED" };
        let mut text = format!("{device}  {kernel:<18} {verdict}, {operations} operations\n");
        text.extend(failures.iter().map(|failure| hang("    ", 6, failure)));
        text
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "device": self.device,
            "kernel": self.kernel,
            "missing": self.missing,
            "operations": self.operations,
            "failures": self.failures,
        })
    }
}
