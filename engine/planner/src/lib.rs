//! The planner chooses the device and the kernel for each piece of work. It is the [`lockstep_modes::Executor`] for all work
//! that is not inline.
//!
//! - [`Planner`]: the choice of device and kernel.
//! - [`timing`]: the model of the time of an operation.
//! - [`calibrate`]: the measurement of operations on this machine.
//! - [`selftest`]: the known-answer tests that a kernel passes before it is used.
//! - [`group`]: several devices of one backend that share work.
//! - [`OnStream`]: the executor for work on a stream of the caller.
//! - [`verify`]: the comparison of results of devices with results of the CPU.
#![deny(unsafe_code)]

pub mod calibrate;
mod candidates;
mod executor;
pub mod group;
mod planner;
mod selection;
pub mod selftest;
pub mod timing;
pub mod verify;

pub use candidates::MIN_SPEEDUP;
pub use executor::OnStream;
pub use planner::{Considered, Decision, Discover, Plan, Planner};
pub use selection::Selection;
