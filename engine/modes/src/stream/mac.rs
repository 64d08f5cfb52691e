//! Incremental CMAC. For GMAC, use [`super::Sealer`] without data: the CPU may then compute GHASH for a device that lacks it.

use std::sync::Arc;

use crate::cmac::{self, CmacMessage};
use crate::executor::Executor;
use crate::incremental::{Mac, Planned};
use lockstep_core::gcm::tags_match;
use lockstep_core::work::Pass;
use lockstep_core::{Block, Error, Key, Result};

/// CMAC (SP 800-38B) of data in pieces.
pub struct CmacStream {
    executor: Arc<dyn Executor>,
    key: Key,
    mac: Mac,
}

impl CmacStream {
    /// Starts a message.
    pub fn new(executor: impl Into<Arc<dyn Executor>>, key: Key) -> Self {
        CmacStream { executor: executor.into(), key, mac: Mac::new(Pass::CbcMac, [0; 16]) }
    }

    /// Adds the next bytes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the user has named a device that does not support CBC-MAC; errors of devices.
    pub fn update(&mut self, data: &[u8]) -> Result<()> {
        self.executor.check_mac(Pass::CbcMac, self.key.size())?;
        self.mac.update(&mut Planned::new(&*self.executor, &self.key), data)
    }

    /// Returns the MAC.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the user has named a device that does not support CBC-MAC; errors of devices.
    pub fn finish(self) -> Result<Block> {
        self.executor.check_mac(Pass::CbcMac, self.key.size())?;
        let mut mac = self.mac.state;
        // The last block has been added to the state, so zeros take its place.
        let end = CmacMessage { key: &self.key, mac: &mut mac, data: &[0; 16][..self.mac.len] };
        cmac::finish(&*self.executor, &mut [end])?;
        Ok(mac)
    }

    /// Compares the MAC, or its first bytes (at least 4), in constant time.
    ///
    /// # Errors
    /// [`Error::AuthenticationFailed`] if the MAC differs; [`Error::TagLength`].
    pub fn verify(self, expected: &[u8]) -> Result<()> {
        if !(4..=16).contains(&expected.len()) {
            return Err(Error::TagLength { mode: "CMAC", expected: "4 to 16", got: expected.len() });
        }
        let mac = self.finish()?;
        if tags_match(&mac, expected) { Ok(()) } else { Err(Error::AuthenticationFailed) }
    }
}
