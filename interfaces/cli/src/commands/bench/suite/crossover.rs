//! The fastest device at each size, and how much slower the planner's choice (`auto`) is than that device.

use super::Outcome;
use crate::commands::bench::measure::Measured;
use crate::commands::bench::report;
use crate::commands::bench::session::AUTO;

/// A size is reported if the rate of `auto`, divided by the rate of the best single device, is below this value.
const TOLERANCE: f64 = 0.97;

fn devices(outcome: &Outcome) -> impl Iterator<Item = &Measured> {
    outcome.measured.iter().filter(|one| &*one.name != AUTO)
}

/// The fastest device.
fn best(outcome: &Outcome) -> Option<&Measured> {
    devices(outcome).max_by(|a, b| a.rate.median.total_cmp(&b.rate.median))
}

/// The sizes at which the fastest device changes. At these sizes the lines of the previous and of the new fastest
/// device cross in the plot.
pub(super) fn crossings(outcomes: &[Outcome]) -> Vec<(f64, String)> {
    let mut found = Vec::new();
    for pair in outcomes.windows(2) {
        let (Some(before), Some(after)) = (best(&pair[0]), best(&pair[1])) else { continue };
        if before.name == after.name {
            continue;
        }
        // The rate of the new fastest device minus the rate of the previous one, on the logarithmic scale of the plot.
        let lead = |outcome: &Outcome| {
            let rate = |name: &str| outcome.of(name).map(|one| one.rate.median.ln());
            Some(rate(&after.name)? - rate(&before.name)?)
        };
        let [from, to] = [&pair[0], &pair[1]].map(|outcome| (outcome.shape.size as f64).ln());
        let at = match (lead(&pair[0]), lead(&pair[1])) {
            (Some(low), Some(high)) if high > low => from + (to - from) * (-low / (high - low)),
            // One of the two devices was not measured at one of the sizes.
            _ => (from + to) / 2.0,
        };
        found.push((at.exp(), after.name.to_string()));
    }
    found
}

/// A sentence with the fastest device of each range of sizes.
pub(super) fn winners(outcomes: &[Outcome]) -> String {
    let mut parts: Vec<(String, usize, usize)> = Vec::new();
    for outcome in outcomes {
        let Some(best) = best(outcome) else { continue };
        let size = outcome.shape.size;
        match parts.last_mut() {
            Some((name, _, to)) if *name == *best.name => *to = size,
            _ => parts.push((best.name.to_string(), size, size)),
        }
    }
    let sentences = parts.iter().map(|(name, from, to)| {
        format!("{name} is the fastest device from {} to {}", report::size(*from), report::size(*to))
    });
    let text = sentences.collect::<Vec<_>>().join("; ");
    let alone = outcomes.iter().all(|outcome| devices(outcome).count() < 2);
    if alone { format!("{text}, and the only one measured") } else { text }
}

/// A sentence with the sizes at which `auto` is slower than the best single device.
pub(super) fn slower_than_best(work: &str, outcomes: &[Outcome]) -> Option<String> {
    let compared =
        || outcomes.iter().filter_map(|outcome| Some((outcome, outcome.of(AUTO)?, best(outcome)?)));
    compared().next()?;
    let slower = compared().filter_map(|(outcome, auto, best)| {
        let ratio = auto.rate.median / best.rate.median;
        let doubt = if auto.rate.most >= best.rate.least { ", within the spread" } else { "" };
        let less = (1.0 - ratio) * 100.0;
        (ratio < TOLERANCE).then(|| format!("{} by {less:.0} % ({}{doubt})", outcome.shape_text(), best.name))
    });
    let slower: Vec<_> = slower.collect();
    Some(if slower.is_empty() {
        format!("{work}: auto is nowhere more than 3 % behind the best single device")
    } else {
        format!("{work}: auto is more than 3 % behind the best single device at {}", slower.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::bench::measure::Rate;
    use crate::commands::bench::workload::Shape;

    fn outcome(size: usize, rates: &[(&str, f64)]) -> Outcome {
        let one = |&(name, median): &(&str, f64)| Measured {
            name: name.into(),
            rate: Rate { median, least: median * 0.99, most: median * 1.01 },
            cpu: None,
            joules: Default::default(),
            first: None,
        };
        let measured = rates.iter().map(one).collect();
        Outcome { work: "w".into(), shape: Shape::one(size), measured }
    }

    #[test]
    fn crossovers_are_interpolated() {
        let outcomes = [
            outcome(16, &[("cpu", 4.0), ("gpu", 1.0)]),
            outcome(256, &[("cpu", 4.0), ("gpu", 16.0)]),
            outcome(4096, &[("cpu", 4.0), ("gpu", 64.0)]),
        ];
        let found = crossings(&outcomes);
        assert_eq!(found.len(), 1);
        assert!((found[0].0 - 64.0).abs() < 1e-6 && found[0].1 == "gpu", "{found:?}");
        assert_eq!(
            winners(&outcomes),
            "cpu is the fastest device from 16 B to 16 B; gpu is the fastest device from 256 B to 4 KiB"
        );
    }

    #[test]
    fn auto_is_compared_with_the_best_device() {
        let outcomes = [
            outcome(16, &[("auto", 4.0), ("cpu", 4.0), ("gpu", 1.0)]),
            outcome(256, &[("auto", 4.0), ("cpu", 4.0), ("gpu", 5.0)]),
            outcome(4096, &[("auto", 9.6), ("cpu", 4.0), ("gpu", 10.0)]),
        ];
        assert!(slower_than_best("w", &outcomes[..1]).unwrap().contains("nowhere"));
        assert_eq!(
            slower_than_best("w", &outcomes).unwrap(),
            "w: auto is more than 3 % behind the best single device at 256 B by 20 % (gpu), 4 KiB by 4 % (gpu)"
        );
        assert_eq!(slower_than_best("w", &[outcome(16, &[("cpu", 1.0)])]), None);
    }
}
