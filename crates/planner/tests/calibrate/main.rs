//! Calibration in a time that tests make: what is chosen is what brute force finds, whatever devices state.

mod choices;
mod decisions;
mod kept;
mod kernels;
mod discovery;
mod machine;
