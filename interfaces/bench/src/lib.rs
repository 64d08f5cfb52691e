//! The calls that `lockstep bench` measures: calls of Lockstep, calls of its peers, and the loops that measure the limit of the
//! processor. They are a crate of their own because this code is optimised for speed, and the other code of the command is not.
#![deny(unsafe_code)]

pub mod limit;
pub mod peers;
pub mod workload;
