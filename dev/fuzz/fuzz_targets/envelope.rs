//! Writes and parses envelopes: the parser must return the written content, and must not lose any byte of the message after the envelope.
#![no_main]

use std::io::Read;

use libfuzzer_sys::fuzz_target;
use lockstep::Envelope;
use lockstep::envelope::{MAGIC, MAX_PAYLOAD, Start};

/// A reader that returns a few bytes at a time, as pipes do.
struct ShortReads<'b>(&'b [u8], usize);

impl Read for ShortReads<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = buffer.len().min(self.0.len()).min(self.1);
        let (now, later) = self.0.split_at(len);
        buffer[..len].copy_from_slice(now);
        self.0 = later;
        self.1 = self.1 % 7 + 1;
        Ok(len)
    }
}

fuzz_target!(|bytes: &[u8]| {
    let parsed = Envelope::read(&mut &*bytes).map(|start| match start {
        Start::Envelope(envelope) => Some(envelope),
        Start::Bare(_) => None,
    });
    let mut reader = ShortReads(bytes, 1);
    let read = Envelope::read(&mut reader);
    match parsed {
        Err(_) => {
            assert!(read.is_err());
            assert!(bytes.starts_with(MAGIC));
        }
        Ok(envelope) => {
            if let Some(envelope) = &envelope {
                assert!(envelope.payload().len() <= MAX_PAYLOAD);
                assert!(bytes.starts_with(envelope.as_bytes()));
                assert_eq!(Envelope::new(envelope.payload()).expect("not too long"), *envelope);
            } else {
                assert!(!bytes.starts_with(MAGIC));
            }
            let (found, mut rest) = match read.expect("as parsed") {
                Start::Envelope(found) => (Some(found), Vec::new()),
                Start::Bare(first) => (None, first),
            };
            assert_eq!(found, envelope);
            reader.read_to_end(&mut rest).expect("memory can be read");
            let start = envelope.map_or(0, |envelope| envelope.as_bytes().len());
            assert_eq!(rest, bytes[start..]);
        }
    }
});
