//! The engine of the incremental modes. It stores the state of a message between two calls, and divides input of any length
//! into the whole blocks that passes require.
//!
//! The engine processes a message under one key, and runs passes on a [`KeyedExecutor`]. The streams of this crate use the
//! engine with the planner. The ciphers of the OpenSSL provider use the engine with kernels that run inline on the caller's
//! thread.
//!
//! | type | modes |
//! |---|---|
//! | [`StreamState`] | CTR, OFB, CFB128, CFB8, CFB1: the chaining state and the unused bytes of the current block |
//! | [`BlockBuffer`] | ECB, CBC, PCBC, XTS: bytes held back until a block is complete |
//! | [`Mac`] | CBC-MAC, GHASH: the MAC of the processed blocks and of the current block |
//! | [`CtrMac`] | GCM and CCM: CTR and a MAC |
//!
//! After a failed call the state is invalid, and the caller must start another message.

mod blocks;
mod ctr_mac;
mod mac;
mod stream_state;

pub use blocks::{BlockBuffer, BlockIo, Hold, SliceIo};
pub use ctr_mac::CtrMac;
pub use mac::Mac;
pub use stream_state::StreamState;

use lockstep_core::data::{Data, Span};
use lockstep_core::work::{Pass, Segment, Tweak};
use lockstep_core::{Block, Error, Key};

use crate::absorb;
use crate::executor::Executor;

/// Runs passes with one key.
pub trait KeyedExecutor {
    /// The error type.
    type Error: From<Error>;

    /// Runs a pass. The data are whole blocks, or have any length for passes whose unit is a byte. `state` is updated for the
    /// next call of the same pass.
    ///
    /// # Errors
    /// Errors of the executor; output and state are then invalid.
    fn run(&mut self, pass: Pass, state: &mut Block, data: Span<'_>) -> Result<(), Self::Error>;
}

/// Runs passes and computes MACs with one key.
pub trait MacExecutor: KeyedExecutor {
    /// Adds whole blocks to a MAC with the pass `CbcMac` or `Ghash`.
    ///
    /// # Errors
    /// Errors of the executor; the state is then invalid.
    fn absorb(&mut self, pass: Pass, state: &mut Block, blocks: &[u8]) -> Result<(), Self::Error>;

    /// Processes all data of a message of CCM, and replaces `mac` by the tag of 16 bytes. The trait `Kernel` of the crate
    /// `lockstep-cpu` defines `mac` and `first` (function `ccm`). Returns false and changes nothing if the executor cannot do this in one
    /// call.
    #[inline(always)]
    fn ccm(&mut self, _encrypts: bool, _mac: &mut Block, _first: &Block, _data: Span<'_>) -> bool {
        false
    }
}

/// A key, and an [`Executor`], such as the planner, that runs passes with this key.
pub struct Planned<'k> {
    /// The executor that runs the passes.
    pub executor: &'k dyn Executor,
    /// The key. For XTS, the key of the data.
    pub key: &'k Key,
    /// Only for XTS: the key of the tweak, and the position in the data unit, in blocks. Each run updates the position.
    pub tweak: Option<(&'k Key, &'k mut u64)>,
}

impl<'k> Planned<'k> {
    /// Creates the value for a key of any mode except XTS.
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
}

impl MacExecutor for Planned<'_> {
    fn absorb(&mut self, pass: Pass, state: &mut Block, blocks: &[u8]) -> Result<(), Error> {
        absorb::bytes(self.executor, pass, self.key, state, blocks)
    }
}
