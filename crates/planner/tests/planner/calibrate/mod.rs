//! Calibration with a virtual clock: the planner chooses what brute force finds, whatever costs the devices state.

mod choices;
mod decisions;
mod discovery;
mod kept;
mod kernels;
mod machine;
