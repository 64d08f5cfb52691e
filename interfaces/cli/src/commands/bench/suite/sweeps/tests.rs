
use super::*;
use crate::commands::bench::measure::Rate;

fn outcome(size: usize, rates: &[(&str, f64)]) -> Outcome {
    let one = |&(name, median): &(&str, f64)| Measured {
        name: name.into(),
        rate: Rate { median, least: median * 0.99, most: median * 1.01 },
        ..Measured::default()
    };
    let measured = rates.iter().map(one).collect();
    Outcome { work: "w".into(), shape: Shape::one(size), measured, kernel: "" }
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
