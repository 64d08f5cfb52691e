//! Random splits, batches and positions on the mock device. Its work completes after the call that submits it, and it has its own memory.

use std::sync::Arc;

use lockstep_planner::{Planner, Selection};
use lockstep_testkit::mock::{Behaviour, MockAsyncDevice};

/// A planner of the mock device, with GCM fused or composed of passes.
fn mock(fused: bool) -> Option<Arc<Planner>> {
    let device = Arc::new(MockAsyncDevice::new(Behaviour { fused, ..Behaviour::default() }));
    let selection = Selection { device: Some("mock:0".into()), kernel: None };
    Some(Arc::new(Planner::new(vec![device], &selection).unwrap()))
}

lockstep_testkit::properties!(fused, mock(true), 60);
lockstep_testkit::properties!(composed, mock(false), 60);
