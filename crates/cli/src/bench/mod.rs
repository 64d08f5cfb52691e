//! `lockstep bench`: this library and its peers on one thread (or as many as asked for), in one run.
//!
//! Honest by construction: each round runs every contender once, in turn, so that a machine that changes its speed
//! changes it for all; the median of the rounds is reported, with the spread. Data are random. Output of every
//! contender in the process is compared with ours before anything is timed. Memory traffic is included: data are in
//! host memory, read and written by each call. The first round is a warm-up and not counted.

mod measure;
mod openssl;
mod peers;
mod report;
mod work;

pub(crate) use measure::{Outcome, run};
pub(crate) use report::{json, table};
pub(crate) use work::WORKS;
