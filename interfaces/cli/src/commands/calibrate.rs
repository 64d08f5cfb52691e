//! `lockstep calibrate`

use clap::Args;
use lockstep::hazmat::Cache;
use lockstep::hazmat::calibrate::{Calibrator, Finding, Place};
use lockstep::hazmat::work::Operation;
use lockstep::{Engine, quoted};
use lockstep_report::Table;
use serde_json::{Value, json};

use crate::error::{Result, failed};
use crate::options::EngineArgs;
use crate::progress::Note;
use crate::{terminal, text};

/// Measure the speed of each operation on each device; `auto` uses the results to choose a device
///
/// The results are stored in `$XDG_CACHE_HOME/lockstep/calibration` or `~/.cache/lockstep/calibration`. Running this command
/// is optional, because the other commands measure an operation when there is enough work for the choice to matter. Devices
/// for tests and study, such as `wgpu:software`, are measured only if `--device` names them.
#[derive(Args)]
#[command(after_long_help = "Examples:\n  lockstep calibrate --kernel cpu/soft")]
pub struct Calibrate {
    /// Delete all stored measurements instead
    #[arg(long, conflicts_with_all = ["json", "device", "kernel", "threads", "verify"])]
    forget: bool,

    /// Print JSON, with times in nanoseconds
    #[arg(long)]
    json: bool,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    engine: EngineArgs,
}

pub(crate) fn run(args: &Calibrate) -> Result<()> {
    if args.forget {
        let not_cleared = |error| failed(format!("the cache of measurements cannot be cleared: {error}"));
        return Calibrator::of_user().forget().map_err(not_cleared);
    }
    let engine = args.engine.engine(false, None)?;
    let note = Note::new();
    let findings = engine.planner().calibrate(&mut |done, all| {
        if !args.quiet && done < all {
            note.show(&format!("measuring, {done} of {all} operations done"));
        }
    });
    drop(note);
    // The measurements are printed before the check of the cache: if the check fails, the user still gets them.
    if args.json {
        super::print_json(&as_json(&findings))
    } else {
        super::print(&table(&engine, &findings))
    }?;
    check_kept()
}

/// Checks that the cache can be written. The planner does not report an error if it cannot store the measurements.
fn check_kept() -> Result<()> {
    const TRIAL: &str = "trial";
    let lost = |why: &str| failed(format!("the measurements were not kept: {why}"));
    let none = || lost("there is no cache folder; set HOME or XDG_CACHE_HOME to an absolute path");
    let cache = Cache::of_user("calibration").ok_or_else(none)?;
    let tried = cache.write(TRIAL, b"").and_then(|()| cache.remove(TRIAL));
    let folder = quoted(cache.folder());
    tried.map_err(|error| lost(&format!("cannot write to the cache folder {folder}: {error}")))
}

fn as_json(findings: &[Finding]) -> Value {
    let one = |finding: &Finding| {
        let Finding { device, kernel, operation, key, place, timing } = finding;
        let points: Vec<_> =
            timing.points().iter().map(|point| json!({ "bytes": point.bytes, "ns": point.ns })).collect();
        json!({
            "device": device.to_string(),
            "kernel": kernel,
            "operation": operation.to_string(),
            "key_bits": key.bits(),
            "memory": place.name(),
            "fixed_ns": timing.fixed_ns(),
            "bytes_per_second": timing.bytes_per_second(),
            "ns_per_message": timing.per_message_ns(),
            "ns_per_byte_of_many_messages": timing.wide_ns_per_byte(),
            "single_messages": points,
        })
    };
    json!({ "measured": findings.iter().map(one).collect::<Vec<_>>() })
}

/// A text with the results for AES-256: the time of the shortest call, the rates for long messages and for many short ones, and the
/// fastest kernel for each range of message lengths.
fn table(engine: &Engine, findings: &[Finding]) -> String {
    let title = "AES-256. The shortest call; GB/s of long messages in host memory, of many short ones side by side, \
                 and in the device's memory";
    let head = ["operation", "device", "kernel", "shortest", "GB/s", "many", "in the device"];
    let mut table = Table::new(title, &head, 3);
    let of = |operation: Operation, place: Place| {
        findings.iter().filter(move |finding| {
            (finding.operation, finding.place, finding.key) == (operation, place, operation.largest_key())
        })
    };
    let rate = |rate: Option<f64>| rate.map_or("-".into(), |rate| format!("{:.3}", rate / 1e9));
    for operation in Operation::all() {
        for finding in of(operation, Place::Host) {
            let there = of(operation, Place::Device)
                .find(|other| (other.device, other.kernel) == (finding.device, finding.kernel));
            table.rows.push(vec![
                operation.words(),
                finding.device.to_string(),
                finding.kernel.into(),
                text::time(finding.timing.fixed_ns() / 1e9),
                rate(Some(finding.timing.bytes_per_second())),
                rate(finding.timing.wide_ns_per_byte().map(|ns| 1e9 / ns.max(1e-3))),
                rate(there.map(|there| there.timing.bytes_per_second())),
            ]);
        }
    }
    let mut report = table.text();
    report += "\nThe fastest for one message in host memory, from which length on\n\n";
    for operation in Operation::all() {
        let label = format!("  {:<18} ", operation.words());
        report += &terminal::hang(&label, 18, &fastest_by_length(engine, operation));
    }
    report
}

/// A text that lists ranges of message lengths. For each range it has the length at which the range starts, and the kernel that the
/// planner chooses for one message.
fn fastest_by_length(engine: &Engine, operation: Operation) -> String {
    let chosen = |step: i32| {
        let bytes = 2f64.powf(f64::from(step) / 8.0) as usize;
        let considered = engine.planner().consider(operation, operation.largest_key(), bytes, None);
        let chosen = considered.into_iter().find(|choice| choice.is_chosen && choice.is_measured)?;
        Some((bytes, chosen.kernel))
    };
    // Lengths from 16 bytes to 1 GiB, with eight steps for each doubling of the length.
    let mut fastest: Vec<_> = (4 * 8..=30 * 8).filter_map(chosen).collect();
    fastest.dedup_by_key(|(_, kernel)| *kernel);
    let ranges = fastest.iter().enumerate().map(|(index, (bytes, kernel))| match index {
        0 => (*kernel).to_owned(),
        _ => format!("{kernel} from {}", text::bytes(*bytes as u64)),
    });
    ranges.collect::<Vec<_>>().join(", ")
}
