//! The model of an operation's time.

use lockstep_core::backend::Cost;
use lockstep_planner::timing::{Point, Shape, Timing};

fn points(pairs: &[(f64, f64)]) -> Vec<Point> {
    pairs.iter().map(|&(bytes, ns)| Point { bytes, ns }).collect()
}

fn timing(pairs: &[(f64, f64)], per_message: f64, wide: Option<f64>) -> Timing {
    Timing::new(points(pairs), per_message, wide).unwrap()
}

#[test]
fn stated_costs_are_lines() {
    let timing = Timing::from(Cost { fixed_ns: 100.0, ns_per_byte: 0.5 });
    for bytes in [0, 1, 1000, 1 << 30] {
        assert!((timing.ns(bytes.into()) - (100.0 + bytes as f64 / 2.0)).abs() < 1e-3);
    }
    assert!((timing.bytes_per_second() - 2e9).abs() < 1.0);
}

#[test]
fn times_are_interpolated_and_extrapolated() {
    let timing = timing(&[(100.0, 10.0), (200.0, 20.0), (1000.0, 820.0)], 0.0, None);
    let at = |bytes: usize| timing.ns(bytes.into());
    assert_eq!([at(0), at(100), at(150), at(200), at(600)], [10.0, 10.0, 15.0, 20.0, 420.0]);
    assert_eq!(at(2000), 1820.0);
    // If the last measured times are equal, the estimate for longer messages still grows.
    let timing = self::timing(&[(1.0, 50.0), (1000.0, 100.0), (2000.0, 100.0)], 0.0, None);
    assert_eq!(timing.ns(12_000.into()), 150.0);
}

#[test]
fn each_message_has_a_cost() {
    let timing = timing(&[(0.0, 100.0), (1000.0, 1100.0)], 7.0, None);
    assert_eq!(timing.ns(Shape { messages: 11, bytes: 1000, longest: 500 }), 1170.0);
    assert_eq!(timing.ns(Shape { messages: 0, bytes: 0, longest: 0 }), 100.0);
}

#[test]
fn serial_messages_run_in_parallel() {
    let timing = timing(&[(0.0, 100.0), (1000.0, 10_100.0)], 0.0, Some(0.1));
    assert_eq!(timing.ns(1000.into()), 10_100.0);
    // Messages of one length run in parallel. 50 messages take as long as one message. The time of 500 messages follows from the
    // throughput.
    assert_eq!(timing.ns(Shape { messages: 50, bytes: 50_000, longest: 1000 }), 10_100.0);
    assert_eq!(timing.ns(Shape { messages: 500, bytes: 500_000, longest: 1000 }), 50_100.0);
    assert_eq!(timing.ns(Shape { messages: 2, bytes: 1016, longest: 1000 }), 10_100.0);
}

#[test]
fn numbers_out_of_range_are_refused() {
    assert!(Timing::new(points(&[(1.0, 1.0)]), 0.0, None).is_none());
    assert!(Timing::new(points(&[(1.0, 1.0), (1.0, 2.0)]), 0.0, None).is_none());
    assert!(Timing::new(points(&[(1.0, 2.0), (2.0, 1.0)]), 0.0, None).is_none());
    assert!(Timing::new(points(&[(1.0, f64::NAN), (2.0, 1.0)]), 0.0, None).is_none());
    assert!(Timing::new(points(&[(-1.0, 1.0), (2.0, 1.0)]), 0.0, None).is_none());
    assert!(Timing::new(points(&[(1.0, 1.0), (2.0, f64::INFINITY)]), 0.0, None).is_none());
    assert!(Timing::new(points(&[(1.0, 1.0), (2.0, 1e308)]), 0.0, None).is_none());
    assert!(Timing::new(points(&[(1.0, 1.0), (2.0, 2.0)]), -1.0, None).is_none());
    assert!(Timing::new(points(&[(1.0, 1.0), (2.0, 2.0)]), 0.0, Some(f64::NAN)).is_none());
}
