//! Comparison of this library with OpenSSL, AWS-LC and RustCrypto.

use std::sync::Arc;
use std::time::Duration;

use lockstep_report::Table;
use lockstep_report::bars::Bars;
use serde_json::{Value, json};

use super::bar;
use crate::error::{Result, failed};
use crate::measure::{self, Measured, Rate};
use crate::report::{self, Picture, Section};
use crate::session::{AUTO, Subject, no_such_work};
use crate::workload::{self, Shape, Workload};
use crate::{Session, openssl, peers};

/// A workload with one message per call, or with a batch of messages. A batch has a different name from the workload.
struct Entry {
    name: String,
    work: Workload,
    messages: fn(usize) -> usize,
    /// True if `openssl speed` can measure this workload, one message at a time.
    in_openssl: bool,
}

const NAMES: [&str; 14] = [
    "ctr-128",
    "ctr-256",
    "gcm-128",
    "gcm-256",
    "gcm-256-open",
    "ecb-128",
    "ecb-256",
    "ecb-128-decrypt",
    "xts-128",
    "xts-256",
    "cbc-128-decrypt",
    "cbc-256-decrypt",
    "cfb-128-decrypt",
    "cbc-128",
];
const BATCH: &str = "cbc-128-x64";
const KEYS: &str = "gcm-128-keys";

/// A size that fits into the first-level cache, and one that does not.
const SIZES: [usize; 2] = [16 << 10, 1 << 20];
const QUICK_SIZES: [usize; 1] = [1 << 10];

/// All workloads. The workloads that are measured by default come first.
fn entries() -> Vec<Entry> {
    let one = |work: Workload| Entry { name: work.name.clone(), work, messages: |_| 1, in_openssl: true };
    let named = |name: &&str| workload::named(name).expect("a work of ours");
    let mut entries: Vec<_> = NAMES.iter().map(|name| one(named(name))).collect();
    let work = named(&"cbc-128");
    entries.push(Entry { name: BATCH.into(), work, messages: |_| 64, in_openssl: true });
    // 10,000 messages, one for each connection of a busy server, but at most 64 MiB in a call.
    let messages = |size: usize| 10_000.min((64 << 20) / size.max(1)).max(1);
    entries.push(Entry { name: KEYS.into(), work: named(&"gcm-128"), messages, in_openssl: false });
    let more = workload::all().into_iter().filter(|work| !NAMES.contains(&work.name.as_str()));
    entries.extend(more.map(one));
    entries
}

/// The entries that are selected by the options.
fn chosen(session: &Session) -> Result<Vec<Entry>> {
    let modes = &session.options.modes;
    let mut entries = entries();
    if modes.is_empty() {
        entries.truncate(NAMES.len() + 2);
        if session.options.quick {
            entries.retain(|entry| ["ctr-128", "gcm-256", BATCH].contains(&entry.name.as_str()));
        }
        return Ok(entries);
    }
    entries.retain(|entry| modes.iter().any(|mode| entry.name.starts_with(mode.as_str())));
    if entries.is_empty() {
        return Err(no_such_work(self::entries().into_iter().map(|entry| entry.name)));
    }
    Ok(entries)
}

struct Compared {
    name: String,
    shape: Shape,
    kernel: &'static str,
    /// The results. The first entry is this library.
    measured: Vec<Measured>,
}

impl Compared {
    /// The rate of this library relative to the first peer whose name begins with `peer`.
    fn ratio(&self, peer: &str) -> Option<f64> {
        let ours = self.measured.first()?.rate.median;
        let theirs = self.measured.iter().skip(1).find(|one| one.name.starts_with(peer))?;
        Some(ours / theirs.rate.median)
    }

    fn json(&self) -> Value {
        let rates: serde_json::Map<_, _> =
            self.measured.iter().map(|one| (one.name.to_string(), one.json())).collect();
        json!({
            "work": self.name,
            "size": self.shape.size,
            "messages": self.shape.messages,
            "kernel": self.kernel,
            "bytes_per_second": rates,
            "ratio_to_openssl": self.ratio("OpenSSL"),
            "ratio_to_aws_lc": self.ratio("aws-lc"),
            "ratio_to_rustcrypto": self.ratio("rustcrypto"),
        })
    }
}

pub(super) fn run(session: &Session, section: &mut Section) -> Result<()> {
    let entries = chosen(session)?;
    let sizes = session.sizes(&SIZES, &QUICK_SIZES);
    let device = session.options.devices.first().map_or(AUTO, String::as_str);
    let kernel = session.options.kernels.first().map(String::as_str);
    let engine = session.engine_on(device, kernel, session.options.threads.or(Some(1)))?;
    let ours = Subject { name: "lockstep".into(), engine };
    let (mut all, mut left_out) = (Vec::new(), Vec::new());
    for entry in &entries {
        for &size in sizes.iter().filter(|size| entry.work.accepts(**size)) {
            let shape = Shape { size, messages: (entry.messages)(size) };
            if !shape.fits_in_memory() {
                let (messages, size) = (shape.messages, report::size(size));
                left_out.push(format!(
                    "{} at {size} was left out: {messages} messages are more than 1 GiB in a call.",
                    entry.name
                ));
                continue;
            }
            session.note(&format!("{}: {}", entry.name, report::size(size)));
            all.extend(compare(session, &ours, entry, shape)?);
        }
    }
    if all.is_empty() && !left_out.is_empty() {
        return Err(failed(format!("{} Take smaller messages", left_out.join(" "))));
    }
    if all.is_empty() {
        return Err(failed("that device and kernel support none of these workloads at these sizes"));
    }
    let findings = &mut section.findings;
    findings.extend(faster_peers(&all));
    findings.extend(left_out);
    findings.extend(session.left_out(&session.options.devices));
    findings.extend(session.left_out(&session.options.kernels));
    let with_openssl = |one: &Compared| one.name.starts_with("gcm-") && one.ratio("OpenSSL").is_some();
    if all.iter().any(with_openssl) {
        findings.push(
            "GCM: `openssl speed` sets key and IV anew for each call, all others use a prepared key: compare large messages."
                .into(),
        );
    }
    findings.extend(report::first_calls(all.iter().flat_map(|one| &one.measured[..1])));
    if session.options.openssl.is_empty() {
        findings.push("OpenSSL was not measured: it is not installed, or was excluded.".into());
    }
    section.results = all.iter().map(Compared::json).collect();
    for &size in &sizes {
        let mut bars = Bars { title: format!("GB/s at {}", report::size(size)), ..Bars::default() };
        for one in all.iter().filter(|one| one.shape.size == size) {
            bars.push(&one.name, one.measured.iter().map(|measured| bar(&measured.name, measured.rate)));
        }
        if !bars.groups.is_empty() {
            section.pictures.push(Picture::Bars(bars));
        }
    }
    section.tables.push(table(session, &all));
    Ok(())
}

fn compare(session: &Session, ours: &Subject, entry: &Entry, shape: Shape) -> Result<Option<Compared>> {
    let setting = session.setting(5, Duration::from_millis(200));
    let work = &entry.work;
    let inputs = session.inputs(work, shape)?;
    let Some(first) = session.contender(ours, work, &inputs, shape)? else { return Ok(None) };
    let mut contenders = vec![first];
    for (name, run) in peers::contenders(work, &inputs, shape) {
        contenders.push(session.verified(name, run, name, work, &inputs, shape)?);
    }
    let named = openssl::name(work).filter(|_| entry.in_openssl);
    let programs = if named.is_some() { &session.options.openssl[..] } else { &[] };
    let (cipher, decrypts) = named.unwrap_or_default();
    // Programs run in turn with the other contenders: each round of this process is followed by one run of each program.
    let mut rates: Vec<Vec<f64>> = programs.iter().map(|_| Vec::new()).collect();
    let measured = measure::rounds(&setting, &mut contenders, shape.bytes(), |round| {
        for (program, rates) in programs.iter().zip(&mut rates) {
            session.host.check_stopped()?;
            let rate = program.speed(&cipher, decrypts, shape.size);
            let rate =
                rate.ok_or_else(|| failed("`openssl speed` gave no result: leave it out by --no-openssl"))?;
            rates.extend((round > 0).then_some(rate));
        }
        Ok(())
    })?;
    let theirs = programs.iter().zip(rates).map(|(program, rates)| Measured {
        name: Arc::from(program.version.as_str()),
        rate: Rate::of(rates),
        cpu: None,
        joules: Default::default(),
        first: None,
    });
    let (kernel, _) = work.kernel(&ours.engine, shape);
    let measured = measured.into_iter().chain(theirs).collect();
    Ok(Some(Compared { name: entry.name.clone(), shape, kernel, measured }))
}

fn table(session: &Session, all: &[Compared]) -> Table {
    let mut head = vec!["work", "size", "who", "kernel", "GB/s", "least", "most", "lockstep is", "CPU s/GB"];
    let meter = session.meter.as_ref().ok();
    let (of_cpu, of_gpu) = meter.map_or((false, false), |meter| (meter.has_packages(), meter.has_gpus()));
    head.extend(of_cpu.then_some("CPU J/GB"));
    head.extend(of_gpu.then_some("GPU J/GB"));
    let mut table = Table::new("Comparison with the peers", &head, 4);
    for one in all {
        let many = if one.shape.messages > 1 { format!("{} x ", one.shape.messages) } else { String::new() };
        for (number, measured) in one.measured.iter().enumerate() {
            let first = number == 0;
            let text = |text: String| if first { text } else { String::new() };
            let Rate { median, least, most } = measured.rate;
            let ratio = one.measured[0].rate.median / median;
            let mut row = vec![
                text(one.name.clone()),
                text(format!("{many}{}", report::size(one.shape.size))),
                measured.name.to_string(),
                text(one.kernel.into()),
                report::digits(median / 1e9),
                report::digits(least / 1e9),
                report::digits(most / 1e9),
                if first { String::new() } else { format!("{ratio:.2} x") },
                report::cpu(measured),
            ];
            row.extend(of_cpu.then(|| report::cpu_joules(measured)));
            row.extend(of_gpu.then(|| report::gpu_joules(measured)));
            table.rows.push(row);
        }
    }
    table
}

/// Sentences on the workloads in which a peer is faster.
fn faster_peers(all: &[Compared]) -> Vec<String> {
    let mut findings = Vec::new();
    for one in all {
        let (ours, size) = (one.measured[0].rate.median, report::size(one.shape.size));
        for peer in one.measured[1..].iter().filter(|peer| peer.rate.median > ours * 1.03) {
            let more = (peer.rate.median / ours - 1.0) * 100.0;
            findings.push(format!("{} at {size}: {} is faster, by {more:.0} %", one.name, peer.name));
        }
    }
    let compared = all.iter().filter(|one| one.measured.len() > 1).count();
    if findings.is_empty() && compared > 0 {
        findings.push(format!(
            "No peer is more than 3 % faster in any of the {compared} measurements with a peer."
        ));
    }
    let (all, alone) = (all.len(), all.len() - compared);
    if alone > 0 {
        findings.push(format!("{alone} of {all} measurements had no peer for comparison."));
    }
    findings
}
