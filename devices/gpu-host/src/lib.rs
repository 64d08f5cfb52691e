//! The host side of a device with its own memory, such as a GPU. This crate contains everything that does not depend on the
//! programming interface of the device.
//!
//! A call is cut into chunks ([`Limits`]). Each chunk gets a staging buffer from a [`StagingPool`]; the backend's
//! [`Pipeline`] stages it (writes its input and description there), launches it, and reads its results back. A window of
//! chunks is in flight at once. Chaining states, statuses and tags are valid only after the whole call has succeeded. If
//! anything fails, outputs that may hold partial results are zeroed.
//!
//! | module | what |
//! |---|---|
//! | `pipeline` | the trait that a backend implements for a call |
//! | `call` | a call in flight: its window, its results, its failure |
//! | `cut` | segments and messages cut into chunks |
//! | `staging` | staging buffers, and the work in flight that uses them |
//! | `kind` | how an operation is divided among threads |
//! | `messages`, `keys` | the data and the results of a call, and its distinct keys |
//! | [`compose`] | the order of the steps of GCM |
//! | `context_thread` | a thread that owns the state of a driver that only one thread may use |
//! | `nodes` | whether this machine has a GPU at all |
//! | [`table`] | messages that arrays in device memory describe |
#![deny(unsafe_code)]

mod call;
pub mod compose;
mod context_thread;
mod cut;
mod keys;
mod kind;
mod messages;
mod nodes;
mod pipeline;
mod staging;
pub mod table;
#[cfg(test)]
mod tests;

pub use call::{check, submit};
pub use context_thread::{ContextThread, Exclusive, Promise};
pub use cut::Limits;
pub use keys::PieceKeys;
pub use kind::{Chain, Kind, Tiles};
pub use messages::{Messages, Piece, Results, with_input, with_output};
pub use nodes::may_have_gpu;
pub use pipeline::{Overhead, Pipeline};
pub use staging::{HostDevice, InFlight, StagingPool};
