//! The calls that `lockstep bench` measures, by Lockstep and by its peers, and the limit of the processor. They are a crate of their own
//! because they are optimised, and the rest of the command is not.
#![deny(unsafe_code)]

pub mod limit;
pub mod peers;
pub mod workload;
