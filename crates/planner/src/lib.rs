//! The planner: chooses the device and the kernel for each piece of work, and is the [`lockstep_modes::Executor`] for all work
//! that is not inline.
//!
//! - [`Planner`]: the choice. [`timing`]: the model of how long work takes. [`calibrate`]: its measurement on this machine.
//! - [`selftest`]: the known-answer tests that a kernel passes before it is used.
//! - [`group`]: several devices that share work out.
//! - [`verify`]: results of devices compared with the CPU's.
#![deny(unsafe_code)]

pub mod calibrate;
mod executor;
pub mod group;
mod planner;
pub mod selftest;
pub mod timing;
pub mod verify;

pub use planner::{Considered, Decision, Look, Plan, Planner, Selection};
