//! Rounds in which every contender runs once, in turn.

use std::hint::black_box;
use std::time::{Duration, Instant};

use lockstep::Engine;

use super::openssl;
use super::work::{Contender, Work, random};

/// What a contender reached, in bytes per second: the median of the rounds, and the spread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// One work at one size.
pub(crate) struct Outcome {
    pub(crate) work: &'static str,
    /// Bytes of a message.
    pub(crate) size: usize,
    /// Messages in a call.
    pub(crate) messages: usize,
    /// The kernel that did ours.
    pub(crate) kernel: &'static str,
    /// Ours first.
    pub(crate) rates: Vec<(String, Rate)>,
}

impl Outcome {
    /// Ours against another, as the median of the ratios would be.
    pub(crate) fn ratio(&self, peer: &str) -> Option<f64> {
        let ours = self.rates.first()?.1.median;
        let (_, theirs) = self.rates.iter().find(|(name, _)| name.starts_with(peer))?;
        Some(ours / theirs.median)
    }
}

/// Measures one work at one size. `with_openssl` adds the installed program, which takes a second a round.
pub(crate) fn run(
    engine: &Engine,
    work: Work,
    size: usize,
    rounds: usize,
    time: Duration,
    with_openssl: bool,
) -> Result<Outcome, String> {
    let mut contenders = work.contenders(engine, size);
    let bytes = work.bytes(size);
    let mut data = random(bytes);
    compare(work, &mut contenders, &data)?;
    let version = openssl::version().filter(|_| with_openssl);
    let mut rates: Vec<(String, Vec<f64>)> =
        contenders.iter().map(|contender| (contender.name.to_owned(), Vec::new())).collect();
    if let (Some(version), Some(_)) = (&version, work.openssl) {
        rates.push((version.clone(), Vec::new()));
    }
    for round in 0..=rounds {
        let mut results = Vec::new();
        for contender in &mut contenders {
            results.push(time_one(contender, &mut data, time));
        }
        if let (Some(_), Some((cipher, decrypts))) = (&version, work.openssl) {
            results.push(openssl::speed(cipher, decrypts, size).ok_or("`openssl speed` gave no result")?);
        }
        // The first round warms up caches and clocks.
        if round > 0 {
            rates.iter_mut().zip(results).for_each(|((_, rates), rate)| rates.push(rate));
        }
    }
    let rates = rates.into_iter().map(|(name, rates)| (name, Rate::of(rates))).collect();
    Ok(Outcome { work: work.name, size, messages: bytes / size, kernel: work.kernel(engine, size), rates })
}

/// Every contender must do the same to the same data.
fn compare(work: Work, contenders: &mut [Contender], data: &[u8]) -> Result<(), String> {
    let mut expected = data.to_vec();
    let (ours, peers) = contenders.split_first_mut().expect("ours is there");
    (ours.run)(&mut expected);
    for peer in peers.iter_mut().filter(|peer| peer.comparable) {
        let mut output = data.to_vec();
        (peer.run)(&mut output);
        if output != expected {
            return Err(format!("{}: the output of {} differs from ours", work.name, peer.name));
        }
    }
    Ok(())
}

fn time_one(contender: &mut Contender, data: &mut [u8], time: Duration) -> f64 {
    let mut runs = 0u64;
    let mut batch = 1u64;
    let start = Instant::now();
    loop {
        for _ in 0..batch {
            (contender.run)(black_box(data));
        }
        runs += batch;
        let elapsed = start.elapsed();
        if elapsed >= time {
            return runs as f64 * data.len() as f64 / elapsed.as_secs_f64();
        }
        // Look at the clock about a hundred times in all.
        batch = (runs / 64).max(1);
    }
}

impl Rate {
    fn of(mut rates: Vec<f64>) -> Rate {
        rates.sort_by(f64::total_cmp);
        let middle = rates.len() / 2;
        let median =
            if rates.len() % 2 == 1 { rates[middle] } else { (rates[middle - 1] + rates[middle]) / 2.0 };
        Rate { median, least: rates[0], most: rates[rates.len() - 1] }
    }
}
