//! Throughput by mode, key length, size, device and kernel.

use std::time::Duration;

use super::{Outcome, by_size, costs};
use crate::commands::bench::report::Section;
use crate::commands::bench::session::Session;
use crate::error::Result;

const WORKS: [&str; 13] = [
    "ecb-128",
    "ecb-256",
    "ctr-128",
    "ctr-256",
    "xts-128",
    "xts-256",
    "gcm-128",
    "gcm-256",
    "gcm-256-open",
    "cbc-128-decrypt",
    "cbc-256-decrypt",
    "cfb-256-decrypt",
    "cbc-256",
];
const SIZES: [usize; 5] = [256, 4 << 10, 64 << 10, 1 << 20, 16 << 20];
const QUICK_SIZES: [usize; 2] = [1 << 10, 64 << 10];

pub(super) fn run(session: &Session<'_>, section: &mut Section) -> Result<()> {
    let works = session.works(if session.args.quick { &WORKS[2..4] } else { &WORKS })?;
    let sizes = session.sizes(&SIZES, &QUICK_SIZES);
    let setting = session.setting(3, Duration::from_millis(20));
    let plots = ("throughput", (|_| Vec::new()) as fn(&[Outcome]) -> _);
    let all = by_size(session, section, &setting, &session.kernels()?, (&works, &sizes), plots)?;
    section.results.extend(all.iter().flatten().map(Outcome::json));
    let title = |whose: &str| format!("Energy of {whose} at the largest size, joules for a gigabyte");
    if session.meter.packages.is_ok() {
        section.tables.push(costs(&title("processors"), &all, |one| one.joules.cpu));
    }
    if session.meter.gpus.is_some() {
        section.tables.push(costs(&title("GPUs"), &all, |one| one.joules.gpu));
    }
    Ok(())
}
