//! The papers reproduced, one module each: their tables beside what we measure, on the device or on a simulator.
#![forbid(unsafe_code)]

pub mod cell;
pub mod geforce;
