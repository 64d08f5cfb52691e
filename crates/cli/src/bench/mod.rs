//! `lockstep bench`: this library's devices and kernels, and its peers, measured in one run.
//!
//! Honest by construction. Each round runs every contender once, in turn, so that a machine that changes its speed
//! changes it for all; the median of the rounds is told, with the spread. The first round is a warm-up and not counted;
//! the first call of all, with self-tests and compilation, is timed by itself. Data are random but where patterns are
//! the question. Memory traffic is included: data are in host memory, read and written by each call. Whatever is timed
//! is verified: another kernel of the processor makes the same calls on the same data, and must come to the same.
//!
//! | | |
//! |---|---|
//! | [`work`] | what is measured |
//! | [`peers`], [`openssl`] | the other implementations |
//! | [`session`] | who is measured: engines for devices and kernels, and who verifies them |
//! | [`measure`] | how: rounds, stretches of time, verification |
//! | [`cpu_time`], [`energy`] | what it costs beside time |
//! | [`suite`] | the suites, one module each |
//! | [`machine`], [`report`], [`page`] | how it is told |

mod cpu_time;
mod energy;
mod machine;
mod measure;
mod openssl;
mod page;
mod peers;
mod report;
mod session;
pub(crate) mod suite;
mod work;

pub(crate) use machine::Machine;
pub(crate) use openssl::{ENV_NEWEST, OpenSsl};
pub(crate) use report::Report;
pub(crate) use session::{Options, Session};
pub(crate) use suite::Suite;
pub(crate) use work::MOST_BYTES;
