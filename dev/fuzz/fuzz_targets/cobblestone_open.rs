//! Decrypts tampered messages and arbitrary bytes: as a buffer, as a stream, and by random access. Only plaintext of
//! the original message may be released.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use lockstep::cobblestone::{CHUNK, ENCRYPTED_CHUNK, HEADER};
use lockstep::{Engine, FileKey, Options, Reader};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::builder().threads(2).build().expect("a CPU"));

/// The ways in which a message is modified before it is decrypted.
enum Tamper {
    Flip { at: u32, bits: u8 },
    Cut { len: u32 },
    Append { bytes: [u8; 3], count: u8 },
    SwapChunks { one: u8, other: u8 },
    RepeatChunk { chunk: u8 },
    DropChunk { chunk: u8 },
}

impl Tamper {
    fn take(u: &mut Unstructured<'_>) -> Result<Tamper> {
        Ok(match u.int_in_range(0..=5u8)? {
            0 => Tamper::Flip { at: u.arbitrary()?, bits: u.arbitrary()? },
            1 => Tamper::Cut { len: u.arbitrary()? },
            2 => Tamper::Append { bytes: u.arbitrary()?, count: u.arbitrary()? },
            3 => Tamper::SwapChunks { one: u.arbitrary()?, other: u.arbitrary()? },
            4 => Tamper::RepeatChunk { chunk: u.arbitrary()? },
            _ => Tamper::DropChunk { chunk: u.arbitrary()? },
        })
    }

    fn apply(&self, message: &mut Vec<u8>) {
        let chunk = |number: u8, len: usize| {
            let start = HEADER + usize::from(number % 4) * ENCRYPTED_CHUNK;
            start.min(len)..(start + ENCRYPTED_CHUNK).min(len)
        };
        let len = message.len();
        match *self {
            Tamper::Flip { at, bits } if len > 0 => message[at as usize % len] ^= bits,
            Tamper::Flip { .. } => {}
            Tamper::Cut { len: to } => message.truncate(to as usize % (len + 1)),
            Tamper::Append { bytes, count } => (0..count % 32).for_each(|_| message.extend(bytes)),
            Tamper::SwapChunks { one, other } => {
                let (one, other) = (chunk(one % 4, len), chunk(other % 4, len));
                let (first, second) = (message[one.clone()].to_vec(), message[other.clone()].to_vec());
                if one.end <= other.start {
                    message.splice(other, first);
                    message.splice(one, second);
                }
            }
            Tamper::RepeatChunk { chunk: number } => {
                let range = chunk(number, len);
                let copy = message[range.clone()].to_vec();
                message.splice(range.start..range.start, copy);
            }
            Tamper::DropChunk { chunk: number } => drop(message.drain(chunk(number, len))),
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let _ = run(Unstructured::new(input));
});

fn run(mut u: Unstructured<'_>) -> Result<()> {
    let key = if u.arbitrary()? { &[7u8; 32][..] } else { &[9; 16] };
    let key = FileKey::from_bytes(key).expect("a length of a suite");
    let context: [u8; 2] = u.arbitrary()?;
    if u.ratio(1, 4)? {
        // The message consists of arbitrary bytes, so it cannot be valid.
        let message = u.take_rest();
        assert!(lockstep::open(&ENGINE, &key, &context, message).is_err());
        assert!(Reader::open(&ENGINE, &key, &context, message).is_err());
        return Ok(());
    }
    // The lengths are near multiples of the length of a chunk.
    let len = usize::from(u.int_in_range(0..=3u8)?) * CHUNK + usize::from(u.int_in_range(0..=40u8)?);
    let plain: Vec<u8> = (0..len.saturating_sub(20)).map(|i| (i ^ i >> 7) as u8).collect();
    let sealed = lockstep::seal(&ENGINE, &key, &context, &plain).expect("not too long");
    let mut message = sealed.clone();
    for _ in 0..u.int_in_range(0..=3u8)? {
        Tamper::take(&mut u)?.apply(&mut message);
    }
    let good = message == sealed;

    let opened = lockstep::open(&ENGINE, &key, &context, &message);
    assert_eq!(opened.is_ok(), good);
    assert!(opened.is_err() || opened.is_ok_and(|opened| opened == plain));

    let mut released = Vec::new();
    let decrypted =
        lockstep::decrypt(&ENGINE, &key, &context, &message[..], &mut released, Options::default());
    assert_eq!(decrypted.is_ok(), good);
    assert!(plain.starts_with(&released), "the released data are a prefix of the plaintext");

    if let Ok(reader) = Reader::open(&ENGINE, &key, &context, &message[..]) {
        // Chunks that are not read are not verified. The chunks that are read must have the right plaintext.
        let len = plain.len().max(1) as u64;
        for (start, count) in [(0, len), (len / 2, 100), (len - 1, 5), (CHUNK as u64 - 1, 2)] {
            match reader.read_range(start, count) {
                Ok(part) => {
                    let start = (start as usize).min(plain.len());
                    let end = (start + count as usize).min(plain.len());
                    assert_eq!(part, plain[start..end]);
                }
                Err(_) => assert!(!good),
            }
        }
    } else {
        assert!(!good);
    }
    Ok(())
}
