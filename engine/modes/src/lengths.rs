//! The lengths that a mode allows for its nonces and tags.

use std::ops::RangeInclusive;

use lockstep_core::error::{Error, Result};

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
    pub fn check_nonce(&self, mode: &'static str, got: usize) -> Result<()> {
        if self.contains(got) { Ok(()) } else { Err(Error::IvLength { mode, expected: self.words, got }) }
    }

    /// Checks the length of a tag.
    ///
    /// # Errors
    /// [`Error::TagLength`].
    pub fn check_tag(&self, mode: &'static str, got: usize) -> Result<()> {
        if self.contains(got) { Ok(()) } else { Err(Error::TagLength { mode, expected: self.words, got }) }
    }
}

/// The only allowed tag is a whole block.
pub(crate) const FULL_TAGS: Lengths = Lengths { ranges: &[16..=16], words: "16" };
