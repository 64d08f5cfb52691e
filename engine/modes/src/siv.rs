//! AES-SIV (RFC 5297): the synthetic IV is computed by CMACs of the associated data and the plaintext (S2V). The counter of
//! CTR starts with the synthetic IV.
//!
//! A nonce is optional, and is the last string of associated data. Without a nonce, an observer learns which messages are equal.
//! The synthetic IV depends on the whole plaintext, so a message cannot be encrypted in pieces, and it cannot be authenticated
//! before it has been decrypted. CMAC is serial within a message and parallel across messages.

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::absorb::{self, Side};
use crate::cmac::{self, CmacMessage, double};
use crate::executor::Executor;
use crate::transfer;
use lockstep_core::data::Data;
use lockstep_core::error::{Error, Result};
use lockstep_core::key::{Block, Key, KeySize};
use lockstep_core::work::{Pass, Segment, Status, Tag};

/// The maximum number of strings of associated data of a message (RFC 5297, section 2.6).
pub const MAX_STRINGS: usize = 126;

/// The two keys of AES-SIV.
#[derive(Debug, Clone)]
pub struct SivKey {
    mac: Key,
    ctr: Key,
}

impl SivKey {
    /// A key of 32, 48 or 64 bytes: the first half is the key of S2V, the second half is the key of CTR.
    ///
    /// # Errors
    /// [`Error::ModeKey`] for any other length.
    pub fn new(bytes: &[u8]) -> Result<SivKey> {
        let got = bytes.len();
        if !matches!(got, 32 | 48 | 64) {
            return Err(Error::ModeKey { mode: "SIV", expected: "a key of 32, 48 or 64 bytes", got });
        }
        let (mac, ctr) = bytes.split_at(got / 2);
        Ok(SivKey { mac: Key::new(mac)?, ctr: Key::new(ctr)? })
    }

    /// The size of each of the two keys.
    pub fn size(&self) -> KeySize {
        self.mac.size()
    }
}

/// One message of a batch.
pub struct SivMessage<'d> {
    /// The key.
    pub key: &'d SivKey,
    /// The strings of associated data, at most [`MAX_STRINGS`]. A nonce is the last string.
    pub aad: &'d [&'d [u8]],
    /// Sealing reads plaintext and writes ciphertext. Opening does the reverse.
    pub data: Data<'d>,
    /// The synthetic IV of 16 bytes, which RFC 5297 puts in front of the ciphertext: written when sealing, compared when
    /// opening.
    pub tag: Tag<'d>,
    /// The outcome.
    pub status: Status,
}

impl std::fmt::Debug for SivMessage<'_> {
    /// Prints no content of buffers.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SivMessage")
            .field("key", &self.key)
            .field("data", &self.data)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// Encrypts and authenticates each message.
///
/// # Errors
/// [`Error::TagLength`], [`Error::TooLong`], [`Error::Order`] before anything is done; errors of devices.
///
#[doc = include_str!("after_error.md")]
pub fn seal(executor: &dyn Executor, messages: &mut [SivMessage<'_>]) -> Result<()> {
    for message in &mut *messages {
        check(message)?;
        if matches!(message.tag, Tag::Expect(_)) {
            return Err(Error::Order { what: "sealing needs a tag to write to" });
        }
        message.status = Status::Pending;
    }
    for size in KeySize::ALL {
        let mut messages = of_size(messages, size);
        let ivs = s2v(executor, &mut messages, Side::Input)?;
        ctr(executor, &mut messages, &ivs).inspect_err(|_| invalidate(executor, &mut messages))?;
        for (message, iv) in messages.iter_mut().zip(&*ivs) {
            if let Tag::Write(tag) = &mut message.tag {
                tag.copy_from_slice(iv);
            }
            message.status = Status::Done;
        }
    }
    Ok(())
}

/// Decrypts and checks each message. The output of a message whose tag is wrong is zeroed before this function returns; the
/// other outputs are valid. The field `status` of each message has its result.
///
/// # Errors
/// [`Error::AuthenticationFailed`] if any tag was wrong; otherwise the errors of [`seal`].
///
#[doc = include_str!("after_error.md")]
pub fn open(executor: &dyn Executor, messages: &mut [SivMessage<'_>]) -> Result<()> {
    for message in &mut *messages {
        check(message)?;
        if matches!(message.tag, Tag::Write(_)) {
            return Err(Error::Order { what: "opening needs a tag to compare with" });
        }
        message.status = Status::Pending;
    }
    for size in KeySize::ALL {
        let mut messages = of_size(messages, size);
        // The plaintext exists before its tag is checked. It must be zeroed if the check fails or does not happen.
        open_checked(executor, &mut messages)
            .and_then(|()| zero_failed(executor, &mut messages))
            .inspect_err(|_| invalidate(executor, &mut messages))?;
    }
    if messages.iter().all(|message| message.status == Status::Done) {
        Ok(())
    } else {
        Err(Error::AuthenticationFailed)
    }
}

fn open_checked(executor: &dyn Executor, messages: &mut [&mut SivMessage<'_>]) -> Result<()> {
    let tags = messages.iter().map(|message| message.tag.bytes().try_into().expect("the length was checked"));
    let tags: Vec<Block> = tags.collect();
    ctr(executor, messages, &tags)?;
    let ivs = s2v(executor, messages, Side::Output)?;
    for ((message, iv), tag) in messages.iter_mut().zip(&*ivs).zip(&tags) {
        let is_right = bool::from(iv.ct_eq(tag));
        message.status = if is_right { Status::Done } else { Status::AuthenticationFailed };
    }
    Ok(())
}

/// Zeroes the output of every message that failed. If one output cannot be zeroed, the others are still zeroed.
fn zero_failed(executor: &dyn Executor, messages: &mut [&mut SivMessage<'_>]) -> Result<()> {
    let failed = messages.iter_mut().filter(|message| message.status != Status::Done);
    failed.map(|message| transfer::zero_output(executor, &mut message.data)).fold(Ok(()), Result::and)
}

/// Does the same as `invalidate` of `lib.rs`, for messages of SIV.
fn invalidate(executor: &dyn Executor, messages: &mut [&mut SivMessage<'_>]) {
    for message in messages {
        message.status = Status::Pending;
        if let Tag::Write(tag) = &mut message.tag {
            tag.fill(0);
        }
        let _ = transfer::zero_output(executor, &mut message.data);
    }
}

fn check(message: &SivMessage<'_>) -> Result<()> {
    if message.tag.len() != 16 {
        return Err(Error::TagLength { mode: "SIV", expected: "16", got: message.tag.len() });
    }
    if message.aad.len() > MAX_STRINGS {
        let limit = MAX_STRINGS as u64;
        return Err(Error::TooLong { mode: "SIV", what: "strings of associated data", limit });
    }
    Ok(())
}

fn of_size<'m, 'd>(messages: &'m mut [SivMessage<'d>], size: KeySize) -> Vec<&'m mut SivMessage<'d>> {
    messages.iter_mut().filter(|message| message.key.mac.size() == size).collect()
}

/// S2V (RFC 5297, section 2.4) of each message, with the plaintext as the last string.
fn s2v(
    executor: &dyn Executor,
    messages: &mut [&mut SivMessage<'_>],
    plaintext: Side,
) -> Result<Zeroizing<Vec<Block>>> {
    // D starts as the CMAC of a block of zeros. The CMACs of the strings are added to it, each after a doubling.
    let mut d = Zeroizing::new(vec![[0; 16]; messages.len()]);
    let zeros = [0; 16];
    let of_zeros = messages.iter().zip(&mut *d);
    let of_zeros = of_zeros.map(|(message, mac)| CmacMessage { key: &message.key.mac, data: &zeros, mac });
    cmac::cmac(executor, &mut of_zeros.collect::<Vec<_>>())?;
    let longest = messages.iter().map(|message| message.aad.len()).max().unwrap_or(0);
    for i in 0..longest {
        let mut macs = Zeroizing::new(vec![[0; 16]; messages.len()]);
        let with_string = messages.iter().zip(&mut *macs);
        let with_string = with_string.filter_map(|(message, mac)| {
            Some(CmacMessage { key: &message.key.mac, data: message.aad.get(i)?, mac })
        });
        cmac::cmac(executor, &mut with_string.collect::<Vec<_>>())?;
        for ((message, d), mac) in messages.iter().zip(&mut *d).zip(&*macs) {
            if i < message.aad.len() {
                double(d);
                xor(d, mac);
            }
        }
    }
    add_plaintext(executor, messages, &d, plaintext)
}

/// The last step of S2V: the CMAC of the plaintext, whose last 16 bytes are masked with D. A plaintext of less than 16 bytes is
/// padded, and masked with the double of D.
fn add_plaintext(
    executor: &dyn Executor,
    messages: &mut [&mut SivMessage<'_>],
    d: &[Block],
    plaintext: Side,
) -> Result<Zeroizing<Vec<Block>>> {
    let mut ivs = Zeroizing::new(vec![[0; 16]; messages.len()]);
    // The last 16 bytes of a longer plaintext lie in its last block and in the block before it. These two are the end.
    let mut ends = Zeroizing::new(vec![[0; 32]; messages.len()]);
    let mut end_lengths = Vec::with_capacity(messages.len());
    for ((message, d), end) in messages.iter_mut().zip(d).zip(&mut *ends) {
        let len = message.data.len();
        let end_len = if len < 16 { len } else { 16 + len % 16 };
        plaintext.fetch(executor, &mut message.data, len - end_len, &mut end[..end_len])?;
        if len < 16 {
            let mut mask = Zeroizing::new(*d);
            double(&mut mask);
            end[len] = 0x80;
            xor(&mut end[..16], &*mask);
        } else {
            xor(&mut end[end_len - 16..end_len], d);
        }
        end_lengths.push(end_len.max(16));
    }
    let mut segments = Vec::new();
    for (message, iv) in messages.iter_mut().zip(&mut *ivs) {
        let before = message.data.len().saturating_sub(16) & !15;
        if before > 0 {
            let data = plaintext.of(&mut message.data).split_at(before).0;
            segments.push(Segment { key: &message.key.mac, tweak: None, state: iv, data });
        }
    }
    executor.run_pass(Pass::CbcMac, &mut segments)?;
    drop(segments);
    for ((message, iv), (end, len)) in messages.iter().zip(&mut *ivs).zip(ends.iter().zip(&end_lengths)) {
        if *len > 16 {
            absorb::blocks(executor, Pass::CbcMac, &message.key.mac, iv, &end[..16])?;
        }
    }
    let lasts = messages.iter().zip(&mut *ivs).zip(ends.iter().zip(&end_lengths));
    let lasts = lasts.map(|((message, mac), (end, &len))| cmac::End {
        key: &message.key.mac,
        mac,
        last: if len > 16 { &end[16..len] } else { &end[..16] },
    });
    cmac::finish(executor, &mut lasts.collect::<Vec<_>>())?;
    Ok(ivs)
}

/// CTR over the data of all messages, from the synthetic IVs (RFC 5297, section 2.5).
fn ctr(executor: &dyn Executor, messages: &mut [&mut SivMessage<'_>], ivs: &[Block]) -> Result<()> {
    let mut counters = ivs.to_vec();
    for counter in &mut counters {
        // Two bits are cleared so that additions of 32 or 64 bits do not carry.
        counter[8] &= 0x7f;
        counter[12] &= 0x7f;
    }
    let data = messages.iter_mut().zip(&mut counters);
    let data = data.map(|(message, counter)| (&message.key.ctr, counter, &mut message.data));
    crate::ctr(executor, Pass::Ctr, data)
}

fn xor(to: &mut [u8], mask: &[u8]) {
    to.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
}
