//! The lengths that a mode allows for its nonces, tags and data.

use std::ops::RangeInclusive;

use crate::error::{Error, Result};

/// Permitted lengths in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Lengths {
    /// The allowed lengths: at least one range, in ascending order.
    pub ranges: &'static [RangeInclusive<usize>],
    /// The allowed lengths in words, for error messages.
    pub words: &'static str,
}

impl Lengths {
    /// True if the length is allowed.
    #[inline]
    pub const fn contains(&self, len: usize) -> bool {
        // Iterators are not available in constant functions.
        let mut ranges = self.ranges;
        while let [range, rest @ ..] = ranges {
            if *range.start() <= len && len <= *range.end() {
                return true;
            }
            ranges = rest;
        }
        false
    }

    /// Checks the length of a nonce.
    ///
    /// # Errors
    /// [`Error::IvLength`].
    #[inline]
    pub fn check_nonce(&self, mode: &'static str, got: usize) -> Result<()> {
        if self.contains(got) { Ok(()) } else { Err(Error::IvLength { mode, expected: self.words, got }) }
    }

    /// Checks the length of a tag.
    ///
    /// # Errors
    /// [`Error::TagLength`].
    #[inline]
    pub fn check_tag(&self, mode: &'static str, got: usize) -> Result<()> {
        if self.contains(got) { Ok(()) } else { Err(Error::TagLength { mode, expected: self.words, got }) }
    }
}

/// Nonces of 96 bits.
pub const NONCES_OF_12: Lengths = Lengths { ranges: &[12..=12], words: "12" };
/// Tags of a whole block.
pub const FULL_TAGS: Lengths = Lengths { ranges: &[16..=16], words: "16" };
/// Tags of any number of bytes of a block.
pub const ALL_TAGS: Lengths = Lengths { ranges: &[1..=16], words: "1 to 16" };

/// Checks that a message has at most `limit` bytes of `what`.
///
/// # Errors
/// [`Error::TooLong`].
#[inline]
pub fn check_limit(mode: &'static str, what: &'static str, got: u64, limit: u64) -> Result<()> {
    if got <= limit { Ok(()) } else { Err(Error::TooLong { mode, what, limit }) }
}
