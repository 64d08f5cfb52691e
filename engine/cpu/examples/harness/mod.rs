//! Measures functions in alternating rounds and computes statistics, for the example programs that measure speed.

#![allow(dead_code, reason = "each example uses some of the functions")]

use std::time::{Duration, Instant};

/// For each function in `calls`, returns the nanoseconds of one call, measured in each round. The functions alternate in the
/// rounds, because other programs may run on the machine. In a round, each function is called repeatedly, for about the time
/// `round`. The number of calls is determined by calls before the first round, which also warm up the caches.
pub(crate) fn alternate(rounds: usize, round: Duration, calls: &mut [&mut dyn FnMut()]) -> Vec<Vec<f64>> {
    let timed = |call: &mut dyn FnMut(), count: u32| {
        let start = Instant::now();
        (0..count).for_each(|_| call());
        start.elapsed()
    };
    let count_of = |call: &mut &mut dyn FnMut()| {
        // The first call may include self-tests, which take longer than a round.
        call();
        let mut count = 1;
        while timed(*call, count) <= round / 2 {
            count *= 2;
        }
        count
    };
    let counts: Vec<u32> = calls.iter_mut().map(count_of).collect();
    let mut found = vec![Vec::new(); calls.len()];
    for _ in 0..rounds {
        for ((call, &count), found) in calls.iter_mut().zip(&counts).zip(&mut found) {
            found.push(timed(*call, count).as_nanos() as f64 / f64::from(count));
        }
    }
    found
}

/// A quantile of the values. `part` is 0 for the least value and 0.5 for the median.
pub(crate) fn quantile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part) as usize]
}

/// True if a name contains all of these texts.
pub(crate) fn matches(name: &str, filters: &[String]) -> bool {
    filters.iter().all(|filter| name.contains(filter.as_str()))
}
