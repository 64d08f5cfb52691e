//! `lockstep selftest`

use clap::Args;
use lockstep::hazmat::backend::{Device, KernelId};
use lockstep::hazmat::work::Operation;
use lockstep::hazmat::{KeySize, selftest};
use serde_json::json;

use crate::error::{Result, failed, not_authentic};
use crate::options::EngineArgs;
use crate::terminal;

/// Test every available kernel against known answers
///
/// Devices for tests and study, such as `wgpu:software`, are tested only if `--device` names them.
///
/// In all commands, each kernel is tested automatically before its first use.
#[derive(Args)]
#[command(after_long_help = "Examples:\n  lockstep selftest\n  lockstep selftest --kernel cpu/soft")]
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
    let engine = args.engine.engine(false, None)?;
    let named = |name: &Option<String>| name.clone().filter(|name| !["auto", ""].contains(&name.as_str()));
    let (named_device, named_kernel) = (named(&args.engine.device), named(&args.engine.kernel));
    let mut outcomes = Vec::new();
    for device in super::discover(&engine).devices {
        let id = device.id().to_string();
        if !named_device.as_ref().map_or(!device.properties().by_name_only, |name| *name == id) {
            continue;
        }
        for (number, kernel) in (0..).zip(device.kernels()) {
            if named_kernel.as_ref().is_none_or(|name| name == kernel.name) {
                outcomes.push(test(&*device, KernelId(number)));
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
        return Err(not_authentic(format!(
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
    let is_supported = |operation: &Operation| {
        let cost = |size: &KeySize| device.cost(kernel, *operation, *size);
        info.missing.is_none() && KeySize::ALL.iter().any(|size| cost(size).is_some())
    };
    let operations: Vec<_> = Operation::all().filter(is_supported).collect();
    let run = |operation: &Operation| selftest::run(device, kernel, *operation).err();
    Outcome {
        device: device.id().to_string(),
        kernel: info.name,
        operations: operations.len(),
        failures: operations.iter().filter_map(run).map(|error| error.to_string()).collect(),
        missing: info.missing.clone(),
    }
}

impl Outcome {
    fn text(&self) -> String {
        let Outcome { device, kernel, operations, failures, missing } = self;
        let verdict = match missing {
            Some(why) => format!("not here: {why}"),
            None if failures.is_empty() => format!("passed, {operations} operations"),
            None => format!("FAILED, {operations} operations"),
        };
        let mut report = terminal::hang(&format!("{device}  {kernel:<18} "), 4, &verdict);
        report.extend(failures.iter().map(|failure| terminal::hang("    ", 6, failure)));
        report
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
