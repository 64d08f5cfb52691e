//! Calibration with a virtual clock: the planner makes the same choices as brute force, whatever costs the devices state.

mod choices;
mod decisions;
mod discovery;
mod kept;
mod kernels;
mod machine;
