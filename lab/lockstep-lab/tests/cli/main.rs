//! Tests that run the program as a process: reproductions of papers, and simulated devices.

#[allow(dead_code, reason = "the tests of `lockstep` use the rest")]
#[path = "../../../../interfaces/cli/tests/cli/common.rs"]
mod common;
mod devices;
mod lab;
mod messages;
mod reports;
mod width;

/// The program that is tested.
const LOCKSTEP: &str = env!("CARGO_BIN_EXE_lockstep-lab");
