//! The calls that `lockstep bench` measures, by Lockstep and by its peers. They are a crate of their own because they are optimised, and the
//! rest of the command is not.
#![forbid(unsafe_code)]

pub mod peers;
pub mod workload;
