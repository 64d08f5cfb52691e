//! Runs the shared suite on the simulated QPUs.

use std::sync::Arc;

use lockstep_core::backend::Device;
use lockstep_qpu::device::Qpu;

fn qpu() -> Arc<dyn Device> {
    Arc::new(Qpu::default())
}

lockstep_testkit::backend_suite!(bitslice, qpu(), "qpu/bitslice");
lockstep_testkit::backend_suite!(packed, qpu(), "qpu/packed");
lockstep_testkit::backend_suite!(packed_tuned, qpu(), "qpu/packed-tuned");
lockstep_testkit::backend_suite!(naive, qpu(), "qpu/naive");
