//! The planner's record of its choices.

use std::sync::Arc;

use lockstep_planner::{Planner, Selection};

use super::machine::*;

#[test]
fn decisions_follow_measurements() {
    let machine = Machine::new(CPU, GPU);
    let planner = machine.planner.with_decisions();
    for _ in 0..1000 {
        let _ = planner.plan(CTR, KEY, 1 << 18, None).unwrap();
    }
    // The planner first chooses by the stated costs, and after calibration by the measurements.
    let recorded: Vec<_> = planner
        .decisions()
        .into_iter()
        .map(|decision| {
            let chosen = decision.considered.iter().find(|choice| choice.is_chosen).unwrap();
            (chosen.kernel, chosen.is_measured, decision.calls > 1)
        })
        .collect();
    assert_eq!(recorded.len(), 2, "{recorded:?}");
    assert!(
        recorded.contains(&("mock/kernel", false, true))
            && recorded.contains(&("mock-cpu/kernel", true, true)),
        "{recorded:?}"
    );
}

#[test]
fn decisions_are_recorded_on_request() {
    let clock = Arc::new(Virtual::default());
    let cpu = Timed::new("mock-cpu", "mock-cpu/kernel", CPU, &clock);
    let gpu = Timed::new("mock", "mock/kernel", GPU, &clock);
    let planner = Planner::new(vec![Arc::new(cpu), Arc::new(gpu)], &Selection::default()).unwrap();
    assert!(planner.decisions().is_empty());
    let planner = planner.with_decisions();
    for bytes in [1000, 1020, 50, 1000] {
        let _ = planner.plan(CTR, KEY, bytes, None).unwrap();
    }
    let decisions = planner.decisions();
    let recorded: Vec<_> = decisions.iter().map(|d| (d.shape.bytes, d.calls, d.bytes)).collect();
    assert_eq!(recorded, [(50, 1, 50), (1000, 3, 3020)]);
    let [cheapest, other] = &decisions[0].considered[..] else { panic!("{decisions:?}") };
    assert!(cheapest.is_chosen && cheapest.kernel == "mock/kernel" && !cheapest.is_measured);
    assert!(!other.is_chosen && other.ns > cheapest.ns);
}
