//! `lockstep selftest`

use clap::Args;
use lockstep::hazmat::backend::{KernelId, KernelInfo};
use lockstep::hazmat::selftest;
use lockstep::hazmat::work::Operation;
use serde_json::json;

use crate::error::{Result, ensure, not_authentic};
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

pub(crate) fn run(args: &Selftest) -> Result<()> {
    // The engine is built before the tests, because the build returns an error for unknown names of devices and kernels.
    let engine = args.engine.engine(false, None)?;
    let named = |name: &Option<String>| name.clone().filter(|name| !["auto", ""].contains(&name.as_str()));
    let (named_device, named_kernel) = (named(&args.engine.device), named(&args.engine.kernel));
    let (mut text, mut kernels) = (String::new(), Vec::new());
    let (mut tested, mut failed_kernels) = (0, 0);
    for device in super::discover(&engine).devices {
        let id = device.id().to_string();
        if !named_device.as_ref().map_or(!device.properties().by_name_only, |name| *name == id) {
            continue;
        }
        let is_named = |info: &KernelInfo| named_kernel.as_ref().is_none_or(|name| name == info.name);
        for (number, info) in (0..).zip(device.kernels()).filter(|(_, info)| is_named(info)) {
            let operations = selftest::operations(&*device, KernelId(number));
            let run = |operation: &Operation| selftest::run(&*device, KernelId(number), *operation).err();
            let failures: Vec<_> = operations.iter().filter_map(run).map(|error| error.to_string()).collect();
            let count = operations.len();
            let verdict = match &info.missing {
                Some(why) => format!("not here: {why}"),
                None if failures.is_empty() => format!("passed, {count} operations"),
                None => format!("FAILED, {count} operations"),
            };
            text += &terminal::hang(&format!("{id}  {:<18} ", info.name), 4, &verdict);
            text.extend(failures.iter().map(|failure| terminal::hang("    ", 6, failure)));
            tested += usize::from(info.missing.is_none());
            failed_kernels += usize::from(!failures.is_empty());
            kernels.push(json!({
                "device": id,
                "kernel": info.name,
                "missing": info.missing,
                "operations": count,
                "failures": failures,
            }));
        }
    }
    if args.json {
        super::print_json(&json!({ "passed": failed_kernels == 0, "kernels": kernels }))?;
    } else {
        super::print(&text)?;
    }
    if failed_kernels > 0 {
        let message = format!("{failed_kernels} kernels failed the test and are not used: report this");
        return Err(not_authentic(message));
    }
    ensure(tested > 0, "no kernel was tested")
}
