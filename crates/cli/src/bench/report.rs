//! The results as a table for people and as JSON for programs.

use std::fmt::Write;

use lockstep::Engine;
use serde_json::{Value, json};

use super::Outcome;

/// A table: rates in GB/s (10^9 bytes per second) with the spread, and how they compare with ours.
pub(crate) fn table(engine: &Engine, outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for device in engine.devices() {
        let _ = writeln!(text, "{}: {}", device.id(), device.description());
    }
    text += "GB/s, median of the rounds (least to most); in brackets: how many times as fast lockstep is\n\n";
    for outcome in outcomes {
        let many = if outcome.messages > 1 { format!("{} x ", outcome.messages) } else { String::new() };
        let _ = writeln!(text, "{} {many}{} [{}]", outcome.work, human(outcome.size), outcome.kernel);
        for (i, (name, rate)) in outcome.rates.iter().enumerate() {
            let ours = outcome.rates[0].1.median;
            let ratio = if i == 0 { String::new() } else { format!("  ({:.2} x)", ours / rate.median) };
            let _ = writeln!(
                text,
                "  {name:<28} {:>8.3}  ({:.3} to {:.3}){ratio}",
                rate.median / 1e9,
                rate.least / 1e9,
                rate.most / 1e9
            );
        }
    }
    text
}

/// The same as one JSON document.
pub(crate) fn json(engine: &Engine, outcomes: &[Outcome]) -> Value {
    let devices: Vec<_> = engine
        .devices()
        .iter()
        .map(|device| json!({"id": device.id().to_string(), "description": device.description()}))
        .collect();
    let results: Vec<_> = outcomes
        .iter()
        .map(|outcome| {
            let rates: serde_json::Map<_, _> = outcome
                .rates
                .iter()
                .map(|(name, rate)| {
                    let rate = json!({"median": rate.median, "min": rate.least, "max": rate.most});
                    (name.clone(), rate)
                })
                .collect();
            json!({
                "work": outcome.work,
                "size": outcome.size,
                "messages": outcome.messages,
                "kernel": outcome.kernel,
                "bytes_per_second": rates,
                "ratio_to_openssl": outcome.ratio("OpenSSL"),
                "ratio_to_aws_lc": outcome.ratio("aws-lc"),
                "ratio_to_rustcrypto": outcome.ratio("rustcrypto"),
            })
        })
        .collect();
    json!({"version": env!("CARGO_PKG_VERSION"), "devices": devices, "results": results})
}

fn human(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}
