//! What is told of choices.

use std::sync::Arc;

use lockstep_planner::{Planner, Selection};

use crate::machine::*;

#[test]
fn decisions_follow_what_is_found_out() {
    let machine = Machine::new(NEAR, DEVICE);
    let planner = machine.planner.with_decisions();
    for _ in 0..1000 {
        let _ = planner.plan(CTR, KEY, 1 << 18, None).unwrap();
    }
    // First by what the devices state, and then by what was measured.
    let told: Vec<_> = planner
        .decisions()
        .into_iter()
        .map(|decision| {
            let chosen = decision.considered.iter().find(|choice| choice.is_chosen).unwrap();
            (chosen.kernel, chosen.is_measured, decision.calls > 1)
        })
        .collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.contains(&("mock/kernel", false, true)) && told.contains(&("mock-cpu/kernel", true, true)),
        "{told:?}"
    );
}

#[test]
fn decisions_are_remembered_if_somebody_asks() {
    let clock = Arc::new(Virtual::default());
    let near = Timed::new("mock-cpu", "mock-cpu/kernel", NEAR, &clock);
    let far = Timed::new("mock", "mock/kernel", DEVICE, &clock);
    let planner = Planner::new(vec![Arc::new(near), Arc::new(far)], &Selection::default()).unwrap();
    assert!(planner.decisions().is_empty());
    let planner = planner.with_decisions();
    for bytes in [1000, 1020, 50, 1000] {
        let _ = planner.plan(CTR, KEY, bytes, None).unwrap();
    }
    let decisions = planner.decisions();
    let told: Vec<_> = decisions.iter().map(|d| (d.shape.bytes, d.calls, d.bytes)).collect();
    assert_eq!(told, [(50, 1, 50), (1000, 3, 3020)]);
    let [cheapest, other] = &decisions[0].considered[..] else { panic!("{decisions:?}") };
    assert!(cheapest.is_chosen && cheapest.kernel == "mock/kernel" && !cheapest.is_measured);
    assert!(!other.is_chosen && other.ns > cheapest.ns);
}
