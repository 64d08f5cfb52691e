//! The one engine of the incremental modes: what a message's state is between two calls, and how input of any length is cut into
//! the whole blocks that passes take.
//!
//! The engine runs under one key, on a [`KeyedExecutor`]. The streams of this crate stand on it with the planner behind them; the
//! ciphers of the OpenSSL provider stand on it with kernels that run inline on the caller's thread.
//!
//! | type | modes |
//! |---|---|
//! | [`Keystream`] | CTR, OFB: keystream of which part of a block may be left over |
//! | [`Feedback`] | CFB128: a block under way |
//! | [`BlockBuffer`] | ECB, CBC, PCBC, XTS: bytes kept back until a block is full |
//! | [`Mac`] | CBC-MAC, GHASH: the same for passes without output |
//!
//! If a call fails, the state is that of no message: begin another one.

mod blocks;
mod feedback;
mod keystream;
mod mac;

pub use blocks::{BlockBuffer, BlockIo, Hold, SliceIo};
pub use feedback::Feedback;
pub use keystream::Keystream;
pub use mac::Mac;

use lockstep_core::data::{Data, Span};
use lockstep_core::work::{Pass, Segment, Tweak};
use lockstep_core::{Block, Error, Key};

use crate::executor::Executor;

/// Runs passes under one key.
pub trait KeyedExecutor {
    /// What can go wrong.
    type Error: From<Error>;

    /// Runs a pass over whole blocks, or for the passes whose unit is a byte over any length. `state` is left as the next
    /// call of the same pass needs it.
    ///
    /// # Errors
    /// Those of the executor; the output and the state are then lost.
    fn run(&mut self, pass: Pass, state: &mut Block, data: Span<'_>) -> Result<(), Self::Error>;

    /// Folds whole blocks into a MAC, by `CbcMac` or `Ghash`.
    ///
    /// # Errors
    /// Those of the executor; the state is then lost.
    fn absorb(&mut self, pass: Pass, state: &mut Block, blocks: &[u8]) -> Result<(), Self::Error>;
}

/// A key whose passes an [`Executor`] runs, such as the planner.
pub struct Planned<'k> {
    /// What runs the passes.
    pub executor: &'k dyn Executor,
    /// The key; for XTS the key of the data.
    pub key: &'k Key,
    /// For XTS the key of the tweak and the place in the data unit, in blocks, which moves on with each run.
    pub tweak: Option<(&'k Key, &'k mut u64)>,
}

impl<'k> Planned<'k> {
    /// For all modes but XTS.
    pub fn new(executor: &'k dyn Executor, key: &'k Key) -> Planned<'k> {
        Planned { executor, key, tweak: None }
    }
}

impl KeyedExecutor for Planned<'_> {
    type Error = Error;

    fn run(&mut self, pass: Pass, state: &mut Block, data: Span<'_>) -> Result<(), Error> {
        let blocks = data.len() as u64 / 16;
        if data.is_empty() {
            return Ok(());
        }
        let tweak = self.tweak.as_ref().map(|(key, position)| Tweak { key, position: **position });
        let data = Data::Host(data.into_host());
        self.executor.run_pass(pass, &mut [Segment { key: self.key, tweak, state, data }])?;
        if let Some((_, position)) = &mut self.tweak {
            **position += blocks;
        }
        Ok(())
    }

    fn absorb(&mut self, pass: Pass, state: &mut Block, blocks: &[u8]) -> Result<(), Error> {
        let data = Data::read_only(blocks);
        self.executor.run_pass(pass, &mut [Segment { key: self.key, tweak: None, state, data }])
    }
}
