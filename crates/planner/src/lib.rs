//! The planner: chooses the device and the kernel for each piece of work, and is the [`lockstep_modes::Executor`] for all work
//! that is not inline.
//!
//! - [`Planner`]: the choice. [`timing`]: the model of how long work takes. [`calibrate`]: its measurement on this machine.
//! - [`selftest`]: the known-answer tests that a kernel passes before it is used.
//! - [`group`]: several devices of one backend that share work.
//! - [`verify`]: results of devices compared with those of the CPU.
#![deny(unsafe_code)]

pub mod calibrate;
mod candidates;
mod executor;
pub mod group;
mod planner;
mod selection;
pub mod selftest;
mod target;
pub mod timing;
pub mod verify;

pub use planner::{Considered, Decision, Discover, MIN_SPEEDUP, Plan, Planner};
pub use selection::Selection;
