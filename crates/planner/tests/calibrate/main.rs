//! Calibration in a time that tests make: what is chosen is what brute force finds, whatever devices state.

mod choices;
mod decisions;
mod discovery;
mod kept;
mod kernels;
mod machine;
