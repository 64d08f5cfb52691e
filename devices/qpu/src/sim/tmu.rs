//! Texture units, used to read memory. A program requests a vector of addresses, and the words arrive in the order of the
//! requests.

use std::collections::VecDeque;

use super::cache::Cache;
use super::qpu::Vector;
use super::timing::TMU_CLOCKS_PER_REQUEST;

/// Maximum number of requests of a QPU that a unit can queue. Broadcom's guide states eight, but in experiments results were
/// lost if there were more than four requests (vc4asm's addendum).
pub(super) const FIFO: usize = 4;

/// Bytes of the cache of a unit, which is direct-mapped (vc4asm's addendum).
const CACHE: u32 = 4096;

/// A texture unit, which two or four QPUs share.
pub(super) struct TextureUnit {
    /// The clock until which requests occupy the unit.
    free_at: u64,
    /// Clocks from the end of the time in which a request occupies the unit until its result is ready.
    latency: u64,
    pub(super) cache: Cache,
}

impl TextureUnit {
    pub(super) fn new(latency: u64) -> TextureUnit {
        TextureUnit { free_at: 0, latency, cache: Cache::new(CACHE, 1) }
    }

    /// Accepts a request. Returns the clock at which its result is ready.
    pub(super) fn request(&mut self, now: u64) -> u64 {
        self.free_at = self.free_at.max(now) + TMU_CLOCKS_PER_REQUEST;
        self.free_at + self.latency
    }
}

/// The results that a QPU has requested from one of its two units, with the clocks at which they are ready.
pub(super) type Results = VecDeque<(Vector, u64)>;
