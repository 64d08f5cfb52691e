//! The tag of a message of an AEAD, and the outcome of the message.

/// A tag to write or to compare with.
pub enum Tag<'d> {
    /// Sealing: the device writes the tag.
    Write(&'d mut [u8]),
    /// Opening: the device compares the computed tag with this tag.
    Expect(&'d [u8]),
}

impl std::fmt::Debug for Tag<'_> {
    /// Prints the kind and the length, not the content.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if matches!(self, Tag::Write(_)) { "Write" } else { "Expect" };
        write!(f, "{kind}({} bytes)", self.len())
    }
}

impl Tag<'_> {
    /// A shorter-lived handle on the same tag.
    #[inline]
    pub fn reborrow(&mut self) -> Tag<'_> {
        match self {
            Tag::Write(tag) => Tag::Write(tag),
            Tag::Expect(tag) => Tag::Expect(tag),
        }
    }

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Tag::Write(tag) => tag.len(),
            Tag::Expect(tag) => tag.len(),
        }
    }

    /// True if the length is 0, which no mode allows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The outcome of a message. In a [`Table`](crate::work::Table), one byte for each message has one of these values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Not processed.
    Pending = 0,
    /// Done; when opening, the tag was right.
    Done = 1,
    /// The tag was wrong; the output is zeroed.
    AuthenticationFailed = 2,
}
