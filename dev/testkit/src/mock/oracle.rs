//! Computes passes and fused AEADs with the oracle.

use lockstep_reference::{self as reference, Aes};

use lockstep_core::key::Block;
use lockstep_core::work::{FusedAead, Pass, Status};

/// Runs a pass on one segment. Returns the output, or the input if the pass only reads.
pub(crate) fn pass(
    pass: Pass,
    key: &[u8],
    tweak: Option<(&[u8], u64)>,
    state: &mut Block,
    input: &[u8],
) -> Vec<u8> {
    let aes = &Aes::new(key);
    match pass {
        Pass::EcbEncrypt => reference::ecb::encrypt(aes, input),
        Pass::EcbDecrypt => reference::ecb::decrypt(aes, input),
        Pass::Ctr | Pass::Ctr32 | Pass::CtrLittle32 => counter(pass, aes, state, input),
        Pass::CbcEncrypt => chained(aes, state, input, (reference::cbc::encrypt, Next::Output, 16)),
        Pass::CbcDecrypt => chained(aes, state, input, (reference::cbc::decrypt, Next::Input, 16)),
        Pass::Cfb128Encrypt => chained(aes, state, input, (reference::cfb::encrypt128, Next::Output, 16)),
        Pass::Cfb128Decrypt => chained(aes, state, input, (reference::cfb::decrypt128, Next::Input, 16)),
        Pass::Cfb8Encrypt => chained(aes, state, input, (reference::cfb::encrypt8, Next::Output, 1)),
        Pass::Cfb8Decrypt => chained(aes, state, input, (reference::cfb::decrypt8, Next::Input, 1)),
        Pass::Cfb1Encrypt => {
            let apply: Apply =
                |aes, state, input| reference::cfb::encrypt1(aes, state, input, 8 * input.len());
            chained(aes, state, input, (apply, Next::Output, 1))
        }
        Pass::Cfb1Decrypt => {
            let apply: Apply =
                |aes, state, input| reference::cfb::decrypt1(aes, state, input, 8 * input.len());
            chained(aes, state, input, (apply, Next::Input, 1))
        }
        Pass::Ofb => chained(aes, state, input, (reference::ofb::apply, Next::Sum, 16)),
        Pass::PcbcEncrypt => chained(aes, state, input, (reference::pcbc::encrypt, Next::Sum, 16)),
        Pass::PcbcDecrypt => chained(aes, state, input, (reference::pcbc::decrypt, Next::Sum, 16)),
        Pass::CbcMac => {
            *state = reference::cbc_mac::update(aes, *state, input);
            input.to_vec()
        }
        Pass::XtsEncrypt | Pass::XtsDecrypt => {
            xts(pass, aes, tweak.expect("checked by the caller"), state, input)
        }
        Pass::Polyval => {
            let h = key.try_into().expect("a POLYVAL key has 16 bytes");
            *state = reference::polyval::update(h, *state, input);
            input.to_vec()
        }
        Pass::Ghash => {
            *state = reference::ghash::update(&aes.encrypt([0; 16]), *state, input);
            input.to_vec()
        }
    }
}

/// Computes a CTR pass with any kind of counter.
fn counter(pass: Pass, aes: &Aes, state: &mut Block, input: &[u8]) -> Vec<u8> {
    let (start, blocks) = (*state, input.len().div_ceil(16) as u128);
    match pass {
        Pass::Ctr => {
            *state = u128::from_be_bytes(start).wrapping_add(blocks).to_be_bytes();
            reference::ctr::apply(aes, &start, input)
        }
        Pass::Ctr32 => {
            let low = u32::from_be_bytes(start[12..].try_into().expect("four bytes"));
            state[12..].copy_from_slice(&low.wrapping_add(blocks as u32).to_be_bytes());
            reference::ctr::apply32(aes, &start, input)
        }
        _ => {
            let mut output = Vec::new();
            for chunk in input.chunks(16) {
                output.extend(chunk.iter().zip(aes.encrypt(*state)).map(|(text, mask)| text ^ mask));
                let first = u32::from_le_bytes(state[..4].try_into().expect("four bytes"));
                state[..4].copy_from_slice(&first.wrapping_add(1).to_le_bytes());
            }
            output
        }
    }
}

/// A mode of the reference implementation, which takes the cipher, the chaining state and the input.
type Apply = fn(&Aes, &Block, &[u8]) -> Vec<u8>;

/// The text whose last 16 bytes are the next chaining state: the input, the output, or the XOR of both.
enum Next {
    Input,
    Output,
    Sum,
}

/// Runs a mode that chains blocks. A last unit of fewer than `unit` bytes does not change the chaining state.
fn chained(aes: &Aes, state: &mut Block, input: &[u8], (apply, next, unit): (Apply, Next, usize)) -> Vec<u8> {
    let output = apply(aes, state, input);
    let mut all = state.to_vec();
    match next {
        Next::Input => all.extend(input),
        Next::Output => all.extend(&output),
        Next::Sum => all.extend(input.iter().zip(&output).map(|(a, b)| a ^ b)),
    }
    let end = input.len() / unit * unit;
    state.copy_from_slice(&all[end..end + 16]);
    output
}

fn xts(pass: Pass, aes: &Aes, (tweak_key, position): (&[u8], u64), state: &Block, input: &[u8]) -> Vec<u8> {
    let tweak_aes = Aes::new(tweak_key);
    // The oracle starts at the beginning of a data unit, so blocks of zeros are put before the segment.
    let start = 16 * usize::try_from(position).expect("tests stay near the beginning");
    let mut unit = vec![0; start];
    unit.extend(input);
    if unit.is_empty() {
        return unit;
    }
    let unit = if pass == Pass::XtsEncrypt {
        reference::xts::encrypt(aes, &tweak_aes, state, &unit)
    } else {
        reference::xts::decrypt(aes, &tweak_aes, state, &unit)
    };
    unit[start..].to_vec()
}
/// Runs a fused AEAD on one message. If the AEAD seals, the length of `tag` is the length of the result's tag. Returns the output, the tag
/// followed by zeros, and the status.
pub(crate) fn fused(
    fused: FusedAead,
    key: &[u8],
    nonce: &[u8],
    aad: &[u8],
    tag: &[u8],
    input: &[u8],
) -> (Vec<u8>, Block, Status) {
    let aes = Aes::new(key);
    match fused {
        FusedAead::GcmSeal => {
            let (output, tag) = reference::gcm::seal(&aes, nonce, aad, input);
            (output, tag, Status::Done)
        }
        FusedAead::GcmOpen => match reference::gcm::open(&aes, nonce, aad, input, tag) {
            Some(output) => (output, [0; 16], Status::Done),
            None => (vec![0; input.len()], [0; 16], Status::AuthenticationFailed),
        },
        FusedAead::OcbSeal => {
            let (output, made) = reference::ocb::seal(&aes, nonce, aad, input, tag.len());
            let mut padded = [0; 16];
            padded[..made.len()].copy_from_slice(&made);
            (output, padded, Status::Done)
        }
        FusedAead::OcbOpen => match reference::ocb::open(&aes, nonce, aad, input, tag) {
            Some(output) => (output, [0; 16], Status::Done),
            None => (vec![0; input.len()], [0; 16], Status::AuthenticationFailed),
        },
        FusedAead::GcmSivSeal => {
            let nonce = nonce.try_into().expect("12 bytes");
            let (output, tag) = reference::gcm_siv::seal(key, nonce, aad, input);
            (output, tag, Status::Done)
        }
        FusedAead::GcmSivOpen => {
            let nonce = nonce.try_into().expect("12 bytes");
            match reference::gcm_siv::open(key, nonce, aad, input, tag) {
                Some(output) => (output, [0; 16], Status::Done),
                None => (vec![0; input.len()], [0; 16], Status::AuthenticationFailed),
            }
        }
    }
}
