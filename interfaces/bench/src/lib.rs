//! The benchmarks of `lockstep bench`. One run measures the library's devices and kernels together with its peers,
//! which are other implementations of AES.
//!
//! Method: each round runs every contender once, in turn, so that a change of the clock rate affects all of them. The
//! result is the median of the rounds, with the spread. The first round is a warm-up and is not counted. The first
//! call, which includes self-tests and compilation, is timed separately. Data are random, except in the suite
//! `patterns`. Times include memory traffic: the data are in host memory, and each call reads and writes them. Every
//! timed call is verified: another kernel of the CPU makes the same calls on the same data, and both results must be
//! equal.
//!
//! | | |
//! |---|---|
//! | `workload` | what is measured |
//! | `peers`, `openssl` | the other implementations |
//! | `session` | the engines that are measured, and those that verify them |
//! | `measure` | rounds, timed stretches, verification |
//! | `cpu_time`, `energy` | CPU time and energy |
//! | `suite` | the suites, one module each |
//! | `machine`, `report` | the results as text, JSON and HTML |
//! | `host` | what the calling program provides |
#![forbid(unsafe_code)]

mod cpu_time;
mod energy;
mod error;
mod host;
mod machine;
mod measure;
mod openssl;
mod peers;
mod report;
mod session;
mod suite;
mod workload;

pub use error::{Error, Result};
pub use host::{FolderGuard, Host};
pub use openssl::{ENV_NEWEST, OpenSsl};
pub use report::{Report, Section};
pub use session::{Options, Session};
pub use suite::Suite;
pub use workload::MAX_CALL_BYTES;
