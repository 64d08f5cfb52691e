//! Chooses the parts of messages that are computed again, and compares them.

use zeroize::Zeroizing;

use super::{Verifier, ocb_nonce};
use lockstep_core::chaining::counter_after;
use lockstep_core::data::Data;
use lockstep_core::ocb::xor;
use lockstep_core::work::{Pass, Segment, Task, Tweak};
use lockstep_core::{Block, Key, Result};
use lockstep_modes::ocb::{self, Offsets};

/// One in this many blocks is computed again. This is one block in 64 KiB, or 0.02 % of the work.
const BLOCK_STRIDE: usize = 4096;

/// If the whole blocks of a message or segment in host memory have at most this many bytes together, all of them are computed
/// again. Modes derive keys, masks and counters in such segments, and a wrong key, mask or counter would make the whole message
/// wrong.
const SHORT: usize = 256;

/// Maximum number of bytes of short messages that are computed again in a call. The limit is needed because the processor may
/// take longer for these messages than the device.
const MAX_SHORT: usize = 64 << 10;

/// One in this many messages is computed again as a whole, to verify its tag or MAC. This is 0.4 % of the work.
const MESSAGE_STRIDE: usize = 256;

/// Consecutive bytes of a message.
pub(super) struct Piece<'d> {
    /// The index of the message in the call.
    pub(super) message: usize,
    pub(super) key: &'d Key,
    pub(super) tweak: Option<Tweak<'d>>,
    /// The chaining state at the start of the message.
    pub(super) state: Block,
    /// The nonce of a message of OCB3, and the length of its tag.
    pub(super) ocb_nonce: Option<(&'d [u8], usize)>,
    /// The number of the first block within the message.
    pub(super) number: usize,
    pub(super) bytes: usize,
}

impl<'d> Piece<'d> {
    /// A piece of a message of a call. `state` is the chaining state at the start of the message.
    pub(super) fn of(
        all: &Task<'_, 'd>,
        state: Block,
        (message, number): (usize, usize),
        bytes: usize,
    ) -> Piece<'d> {
        let (key, tweak) = (all.key(message), all.tweak(message));
        Piece { message, key, tweak, state, ocb_nonce: ocb_nonce(all, message), number, bytes }
    }

    /// The range of the piece within the message. It includes the preceding block, if any, from which the chaining state of
    /// the piece follows.
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        16 * self.number.saturating_sub(1)..16 * self.number + self.bytes
    }

    /// True for the last, partial block of a message of OCB3. The pass over the whole blocks does not process this block. Such
    /// a block is a piece of its own.
    fn is_partial_block_of_ocb(&self) -> bool {
        self.ocb_nonce.is_some() && !self.bytes.is_multiple_of(16)
    }
}

/// Chooses one place in each stretch of `stride` consecutive places, in ascending order. The position within the stretch
/// differs from stretch to stretch, because errors of devices are often periodic: the errors of a lane occur at the same
/// block number of each tile.
fn places(seed: usize, stride: usize) -> impl Iterator<Item = usize> {
    (0usize..).map(move |stretch| {
        // The position is the fractional part of a multiple of the golden ratio. Such positions are spread evenly.
        let multiple = (seed as u64).wrapping_add(stretch as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        stretch * stride + part_of(stride, (multiple >> 32) as usize)
    })
}

/// `count * fraction / 2^32`, rounded down: a number below `count`.
fn part_of(count: usize, fraction: usize) -> usize {
    ((fraction as u128 * count as u128) >> 32) as usize
}

/// The pieces of data in host memory that are computed again: short messages up to [`MAX_SHORT`], and [`sparse_blocks`] of the
/// other messages. Each piece is returned as the index of its message, the number of its first block in the message, and the
/// number of its bytes.
pub(super) fn sampled_pieces(
    verifier: &Verifier<'_>,
    mut lengths: Vec<usize>,
) -> Vec<((usize, usize), usize)> {
    let (mut pieces, mut room) = (Vec::new(), MAX_SHORT);
    for (message, bytes) in lengths.iter_mut().enumerate() {
        let whole = *bytes & !15;
        if whole > 0 && whole <= SHORT.min(room) {
            pieces.push(((message, 0), whole));
            room -= whole;
            *bytes = 0;
        }
    }
    pieces.extend(sparse_blocks(verifier, &lengths).into_iter().map(|place| (place, 16)));
    pieces
}

/// One in [`BLOCK_STRIDE`] whole blocks of all messages together, but at least one block. Each block is returned as the
/// index of its message and its number in the message.
pub(super) fn sparse_blocks(verifier: &Verifier<'_>, lengths: &[usize]) -> Vec<(usize, usize)> {
    let mut samples = Vec::new();
    let mut places = places(verifier.seed, BLOCK_STRIDE).peekable();
    let mut before = 0;
    for (message, bytes) in lengths.iter().enumerate() {
        let end = before + bytes / 16;
        while let Some(place) = places.next_if(|place| *place < end) {
            samples.push((message, place - before));
        }
        before = end;
    }
    if samples.is_empty() {
        let whole = lengths.iter().enumerate().filter(|(_, bytes)| **bytes >= 16);
        let longest = whole.max_by_key(|(_, bytes)| **bytes);
        samples.extend(longest.map(|(message, bytes)| (message, part_of(bytes / 16, verifier.seed))));
    }
    samples
}

/// Chooses one in [`MESSAGE_STRIDE`] of the messages that are not long. A long message has more than a 16th of all bytes. If
/// `takes_long` is true, all long messages are chosen in each call; otherwise they are chosen in the first call of the operation and
/// then in one of [`MESSAGE_STRIDE`] calls.
pub(super) fn sampled_messages(verifier: &Verifier<'_>, lengths: &[usize], takes_long: bool) -> Vec<usize> {
    let (total, count) = (lengths.iter().sum::<usize>(), lengths.len());
    // The seed of the first call of an operation is 0, and the seeds are spread evenly.
    let takes_long = takes_long || part_of(MESSAGE_STRIDE, verifier.seed) == 0;
    // The size of a message is taken as its bytes plus one block, so that empty messages do not have size 0.
    let is_long = |index: &usize| 16 * (lengths[*index] + 16) > total + 16 * count;
    let stride = MESSAGE_STRIDE.min(count.max(1));
    let places = places(verifier.seed, stride).take_while(|place| *place < count);
    let long = (0..count).filter(|index| takes_long && is_long(index));
    places.filter(|place| !is_long(place)).chain(long).collect()
}

/// The chaining state at the start of a block, computed from the state at the start of the message and from the input and
/// output of the preceding block. The result is valid only if that output is right.
pub(super) fn state_of(pass: Pass, state: &Block, number: usize, input: &Block, output: &Block) -> Block {
    match pass {
        Pass::EcbEncrypt | Pass::EcbDecrypt | Pass::XtsEncrypt | Pass::XtsDecrypt => *state,
        Pass::Ctr | Pass::Ctr32 | Pass::CtrLittle32 => counter_after(pass, state, number as u128),
        _ if number == 0 => *state,
        Pass::CbcDecrypt | Pass::Cfb128Decrypt | Pass::Cfb8Decrypt | Pass::Cfb1Decrypt => *input,
        Pass::CbcEncrypt | Pass::Cfb128Encrypt | Pass::Cfb8Encrypt | Pass::Cfb1Encrypt => *output,
        Pass::Ofb | Pass::PcbcEncrypt | Pass::PcbcDecrypt => std::array::from_fn(|i| input[i] ^ output[i]),
        Pass::CbcMac | Pass::Ghash | Pass::Polyval => unreachable!("they have no output to sample"),
    }
}

/// Computes pieces again. `input` and `output` are the concatenated bytes of the [ranges](Piece::range) of the pieces.
/// Returns the message of each piece that differs, and whether its output is all zeros.
pub(super) fn compare(
    verifier: &Verifier<'_>,
    pass: Pass,
    pieces: &[Piece<'_>],
    mut input: &[u8],
    mut output: &[u8],
) -> Result<Vec<(usize, bool)>> {
    let nonces =
        pieces.iter().filter_map(|piece| piece.ocb_nonce.map(|(nonce, tag)| (piece.key, nonce, tag)));
    // For OCB3, the masks and the first offset of the message of each piece.
    let ocb = Offsets::of(verifier.trusted, &nonces.collect::<Vec<_>>())?;
    let mask = |index: usize, data: &mut [u8]| {
        if let Some(Offsets { masks, offset }) = ocb.get(index) {
            let before = pieces[index].number as u64;
            ocb::mask(masks, &mut Zeroizing::new(masks.offset(offset, before)), before, data);
        }
    };
    let mut again: Vec<Zeroizing<Vec<u8>>> = Vec::new();
    let mut states: Zeroizing<Vec<Block>> = Zeroizing::new(Vec::new());
    let mut found = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        let (read, written);
        (read, input) = input.split_at(piece.range().len());
        (written, output) = output.split_at(piece.range().len());
        let before = 16 * usize::from(piece.number > 0);
        let block = |bytes: &[u8]| bytes.first_chunk().copied().unwrap_or_default();
        states.push(state_of(pass, &piece.state, piece.number, &block(read), &block(written)));
        let mut data = Zeroizing::new(read[before..].to_vec());
        mask(index, &mut data);
        if piece.is_partial_block_of_ocb() {
            // The block is XORed with its encrypted offset (RFC 7253, sections 4.2 and 4.3: Pad).
            let Offsets { masks, offset } = &ocb[index];
            let mut pad = Zeroizing::new(masks.offset(offset, piece.number as u64));
            xor(&mut pad, &masks.star);
            let (state, place) = (&mut [0; 16], Data::in_place(&mut *pad));
            let segment = Segment { key: piece.key, tweak: None, state, data: place };
            verifier.trusted.run_pass(Pass::EcbEncrypt, &mut [segment])?;
            data.iter_mut().zip(&*pad).for_each(|(byte, pad)| *byte ^= pad);
        }
        again.push(data);
        found.push(&written[before..]);
    }
    let mut segments: Vec<Segment<'_>> = pieces
        .iter()
        .zip(&mut again)
        .zip(states.iter_mut())
        .filter(|((piece, _), _)| !piece.is_partial_block_of_ocb())
        .map(|((piece, data), state)| {
            let at = piece.number as u64;
            let tweak = piece.tweak.map(|tweak| Tweak { position: tweak.position.wrapping_add(at), ..tweak });
            Segment { key: piece.key, tweak, state, data: Data::in_place(data) }
        })
        .collect();
    if !segments.is_empty() {
        verifier.trusted.run_pass(pass, &mut segments)?;
    }
    drop(segments);
    again.iter_mut().enumerate().for_each(|(index, data)| mask(index, data));
    let pairs = pieces.iter().zip(again.iter().zip(found));
    let different = pairs.filter(|(_, (again, found))| again[..] != **found);
    Ok(different.map(|(piece, (_, found))| (piece.message, found.iter().all(|&byte| byte == 0))).collect())
}
