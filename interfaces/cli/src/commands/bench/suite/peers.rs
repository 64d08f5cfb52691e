//! The suite `peers`, which compares this library with OpenSSL, AWS-LC and RustCrypto.

use std::time::Duration;

use lockstep::hazmat::mode::Direction;
use lockstep_bench::limit;
use lockstep_bench::peers::{PEERS, openssl_name};
use lockstep_bench::workload::{self, MAX_CALL_BYTES, Shape, Workload};
use lockstep_report::Table;
use lockstep_report::bars::Bars;

use super::{AUTO, Measured, Outcome, Rate, Section, Session, Subject, report, rounds};
use crate::error::{Result, check_stopped, failed};

/// The workloads that are measured by default.
const NAMES: &str = "ctr-128 ctr-256 gcm-128 gcm-256 gcm-256-open ecb-128 ecb-256 ecb-128-decrypt xts-128 xts-256 \
                     cbc-128-decrypt cbc-256-decrypt cfb-128-decrypt cbc-128";
/// Workloads of this suite with many messages in a call, which are also measured by default.
const BATCH: &str = "cbc-128-x64";
const KEYS: &str = "gcm-128-keys";

/// The names of all contenders that are `openssl` programs start with this text.
const OPENSSL: &str = "OpenSSL";

const GCM_BY_OPENSSL: &str = "GCM: `openssl speed` sets key and IV anew for each call, all others use a prepared key: \
                              compare large messages.";

/// The workloads that the options select.
fn works(session: &Session<'_>) -> Result<Vec<Workload>> {
    let batch = |name: &str, of| Workload { name: name.into(), ..workload::named(of) };
    let usual = NAMES.split_whitespace().map(workload::named);
    let mut works: Vec<_> = usual.chain([batch(BATCH, "cbc-128"), batch(KEYS, "gcm-128")]).collect();
    if !session.args.mode.is_empty() {
        let mut others = workload::all();
        others.retain(|work| !works.contains(work));
        return session.matching([works, others].concat());
    }
    if session.args.quick {
        works.retain(|work| ["ctr-128", "gcm-256", BATCH].contains(&work.name.as_str()));
    }
    Ok(works)
}

/// The number of messages in a call.
fn messages(work: &Workload, size: usize) -> usize {
    match work.name.as_str() {
        BATCH => 64,
        // 10,000 messages, one for each connection of a busy server, but at most 64 MiB in a call.
        KEYS => 10_000.min((64 << 20) / size.max(1)).max(1),
        _ => 1,
    }
}

/// In this suite, the first element of `measured` is the result of this library. The other elements are the results of its peers
/// and of the limit.
impl Outcome {
    fn ours(&self) -> f64 {
        self.measured[0].rate.median
    }

    fn peers(&self) -> impl Iterator<Item = &Measured> {
        self.measured[1..].iter().filter(|one| &*one.name != limit::NAME)
    }

    /// The rate of this library relative to the first peer whose name begins with `peer`.
    fn ratio(&self, peer: &str) -> Option<f64> {
        let theirs = self.peers().find(|one| one.name.starts_with(peer))?;
        Some(self.ours() / theirs.rate.median)
    }
}

pub(super) fn run(session: &Session<'_>, section: &mut Section) -> Result<()> {
    // The first size fits into the first-level cache, the second size does not.
    let sizes = session.sizes(&[16 << 10, 1 << 20], &[1 << 10]);
    let device = session.devices.first().map_or(AUTO, String::as_str);
    let kernel = session.kernels.first().map(String::as_str);
    let engine = session.engine(device, kernel, session.args.threads.or(Some(1)))?;
    let ours = Subject { name: "lockstep".into(), engine };
    let (mut all, mut left_out) = (Vec::new(), Vec::new());
    for work in &works(session)? {
        for &size in sizes.iter().filter(|size| work.accepts(**size)) {
            let shape = Shape { size, messages: messages(work, size) };
            let (name, size_text) = (&work.name, report::size(size));
            if shape.bytes() > MAX_CALL_BYTES {
                let why = format!("{} messages are more than 1 GiB in a call", shape.messages);
                left_out.push(format!("{name} at {size_text} was left out: {why}."));
                continue;
            }
            session.note(&format!("{name}: {size_text}"));
            all.extend(compare(session, &ours, work, shape)?);
        }
    }
    if all.is_empty() && !left_out.is_empty() {
        return Err(failed(format!("{} Take smaller messages", left_out.join(" "))));
    }
    section.findings = faster_peers(&all);
    section.findings.extend(left_out);
    section.findings.extend(session.left_out(&session.devices));
    section.findings.extend(session.left_out(&session.kernels));
    let is_gcm_with_openssl = |one: &Outcome| one.work.starts_with("gcm-") && one.ratio(OPENSSL).is_some();
    if all.iter().any(is_gcm_with_openssl) {
        section.findings.push(GCM_BY_OPENSSL.into());
    }
    if session.openssl.is_empty() {
        let why = match session.args.quick {
            true => "--quick leaves it out, unless --openssl names a program",
            false => "there is no `openssl` program, or --no-openssl was given",
        };
        section.findings.push(format!("OpenSSL was not measured: {why}."));
    }
    for one in &all {
        section.add_first_call(&one.measured[0]);
        let mut json = one.json();
        json["kernel"] = one.kernel.into();
        for peer in PEERS.iter().map(|peer| peer.name).chain([OPENSSL]) {
            json[format!("ratio_to_{}", peer.to_lowercase().replace('-', "_"))] = one.ratio(peer).into();
        }
        json["ratio_to_limit"] = one.ratio_to_limit(&one.measured[0]).into();
        section.results.push(json);
    }
    for &size in &sizes {
        let mut bars = Bars { title: format!("GB/s at {}", report::size(size)), ..Bars::default() };
        for Outcome { work, measured, .. } in all.iter().filter(|outcome| outcome.shape.size == size) {
            bars.push(
                work,
                measured.iter().map(|Measured { name, rate, .. }| {
                    (&**name, rate.median / 1e9, (rate.least / 1e9, rate.most / 1e9))
                }),
            );
        }
        if !bars.groups.is_empty() {
            section.pictures.push(bars.svg());
        }
    }
    section.tables.push(table(&all));
    Ok(())
}

fn compare(session: &Session<'_>, ours: &Subject, work: &Workload, shape: Shape) -> Result<Option<Outcome>> {
    let setting = session.setting(5, Duration::from_millis(200));
    let mut contenders = session.contenders([ours], work, shape, true)?;
    if contenders.is_empty() {
        return Ok(None);
    }
    contenders.extend(session.limit(std::slice::from_ref(ours), work, shape));
    // `openssl speed` measures one message at a time, with one key.
    let cipher = openssl_name(work).filter(|_| work.name != KEYS);
    // Programs run in turn with the other contenders: each round of this process is followed by one run of each program.
    let programs = |cipher| session.openssl.iter().map(move |program| (cipher, program, Vec::new()));
    let mut programs: Vec<_> = cipher.iter().flat_map(programs).collect();
    let decrypts = work.direction == Direction::Decrypt;
    let mut measured = rounds(&setting, &mut contenders, shape.bytes(), |round| {
        for (cipher, program, rates) in &mut programs {
            check_stopped()?;
            let missing = || failed("`openssl speed` gave no result: leave it out by --no-openssl");
            let rate = program.speed(cipher, decrypts, shape.size).ok_or_else(missing)?;
            rates.extend((round > 0).then_some(rate));
        }
        Ok(())
    })?;
    measured.extend(programs.into_iter().map(|(_, program, rates)| Measured {
        name: program.version.as_str().into(),
        rate: Rate::of(rates),
        ..Measured::default()
    }));
    let kernel = work.kernel(&ours.engine, shape);
    let outcome = Outcome { work: work.name.clone(), shape, measured, kernel };
    if !session.args.quick {
        outcome.check_limit(&outcome.measured)?;
    }
    Ok(Some(outcome))
}

fn table(all: &[Outcome]) -> Table {
    let head = ["work", "size", "who", "kernel", "GB/s", "least", "most", "lockstep is", "CPU s/GB"];
    let mut table = Table::new("Comparison with the peers", &head, 4);
    for one in all {
        for (number, measured) in one.measured.iter().enumerate() {
            let first = number == 0;
            let text = |text: &str| if first { text.to_owned() } else { String::new() };
            let Rate { median, least, most } = measured.rate;
            let name = measured.name.to_string();
            let mut row = vec![text(&one.work), text(&one.shape_text()), name, text(one.kernel)];
            row.extend([median, least, most].map(|rate| report::digits(rate / 1e9)));
            row.push(if first { String::new() } else { format!("{:.2} x", one.ours() / median) });
            row.push(report::per_gb(measured.cpu));
            table.rows.push(row);
        }
    }
    table
}

/// A sentence for each workload in which a peer is faster than this library.
fn faster_peers(all: &[Outcome]) -> Vec<String> {
    let mut findings = Vec::new();
    for one in all {
        let size = report::size(one.shape.size);
        for peer in one.peers().filter(|peer| peer.rate.median > one.ours() * 1.03) {
            let more = (peer.rate.median / one.ours() - 1.0) * 100.0;
            findings.push(format!("{} at {size}: {} is faster, by {more:.0} %", one.work, peer.name));
        }
    }
    let compared = all.iter().filter(|one| one.peers().next().is_some()).count();
    if findings.is_empty() && compared > 0 {
        let number = format!("any of the {compared} measurements with a peer");
        findings.push(format!("No peer is more than 3 % faster in {number}."));
    }
    let (all, alone) = (all.len(), all.len() - compared);
    if alone > 0 {
        findings.push(format!("{alone} of {all} measurements had no peer for comparison."));
    }
    findings
}
