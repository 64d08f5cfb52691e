//! Reproduced papers, one module each: their tables compared with new measurements, on a device or in a simulator.
#![forbid(unsafe_code)]

pub mod cell;
pub mod cuda;
