//! Measures the speed of TLS and QUIC with Lockstep, and compares it with other providers of rustls.
//!
//!     make bench-rustls [ROUNDS=61] [WORK=TEXT]
//!
//! With `WORK`, only the rows whose names contain the text are measured, such as `QUIC` or `send 16384`. If there is no
//! such row, the program fails.
//!
//! All providers do the same work in one thread of one process, in turn, in each of many rounds. Times are processor times of this thread,
//! so other programs lengthen them little. Each round makes new connections at other places in memory, because the time to copy data
//! depends on their places; the first work of a connection is not measured. The table shows the median time of Lockstep. For each other
//! provider, the table shows the median ratio of the provider's time to Lockstep's time in the same round, with a 95 % interval. If the
//! ratio is above 1, Lockstep is faster.

mod work;

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The processor time that this thread has used.
fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// A pseudo-random number below a limit.
fn random(limit: u64) -> usize {
    static STATE: AtomicU64 = AtomicU64::new(1);
    let state = STATE.load(Relaxed).wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    STATE.store(state, Relaxed);
    ((state >> 33) % limit) as usize
}

/// The processor time that this thread takes for `work`.
fn timed(work: impl FnOnce()) -> Duration {
    let start = thread_time();
    work();
    thread_time() - start
}

/// Returns the median of the values, and the two order statistics that are the limits of its 95 % confidence interval.
fn median(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let half = 0.98 * count.sqrt();
    let at = |index: f64| values[index.clamp(0.0, count - 1.0) as usize];
    [at((count - 1.0) / 2.0), at((count / 2.0 - half).floor()), at((count / 2.0 + half).ceil() - 1.0)]
}

/// Prints a row of the table.
fn row(name: &str, times: &[Vec<Duration>]) {
    let seconds = |time: &Duration| time.as_secs_f64();
    let [ours, _, _] = median(times[0].iter().map(seconds).collect());
    let mut line = format!("| {name} | {:.2} |", ours * 1e6);
    for others in &times[1..] {
        if others.is_empty() {
            line += " none |";
            continue;
        }
        let ratios = others.iter().zip(&times[0]).map(|(other, ours)| seconds(other) / seconds(ours));
        let [middle, low, high] = median(ratios.collect());
        line += &format!(" {middle:.3} ({low:.3} to {high:.3}) |");
    }
    println!("{line}");
}

fn main() {
    let rounds: usize = std::env::var("ROUNDS").map_or(61, |text| text.parse().expect("ROUNDS is a number"));
    let wanted = std::env::var("WORK").unwrap_or_default();
    let works: Vec<_> = work::all().into_iter().filter(|work| work.name().contains(&wanted)).collect();
    assert!(!works.is_empty(), "no row has a name that contains {wanted:?} (WORK)");
    let providers = lockstep_rustls_peers::providers();
    println!(
        "{rounds} rounds; thread time in microseconds; ratios: time of the other provider / time of Lockstep\n"
    );
    let names: Vec<_> = providers.iter().map(|(name, _)| *name).collect();
    println!("| work | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(names.len()));
    for work in works {
        let mut times = vec![Vec::with_capacity(rounds); providers.len()];
        for round in 0..rounds {
            for turn in 0..providers.len() {
                let which = (round + turn) % providers.len();
                let elsewhere = black_box(Vec::<u8>::with_capacity(random(8 << 10)));
                let Some(mut contender) = work.contender(providers[which].1.clone()) else { continue };
                contender();
                times[which].push(contender());
                drop(elsewhere);
            }
        }
        row(&work.name(), &times);
    }
}
