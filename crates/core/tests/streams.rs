//! Random splits, batches and positions on `far`, whose work completes later and in memory of its own.

mod properties;

use std::sync::Arc;

use lockstep_core::far::{Behaviour, Far};
use lockstep_core::planner::{Planner, Selection};

/// A planner of `far`, with GCM fused or composed of passes.
fn far(fused: bool) -> Option<Arc<Planner>> {
    let device = Arc::new(Far::new(Behaviour { fused, ..Behaviour::default() }));
    let selection = Selection { device: Some("far:0".into()), kernel: None };
    Some(Arc::new(Planner::new(vec![device], &selection).unwrap()))
}

properties!(fused, far(true), 60);
properties!(composed, far(false), 60);
