//! Passes and fused AEADs by the oracle.

use lockstep_reference as reference;

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
    let aes = reference::Aes::new(key);
    let aes = &aes;
    match pass {
        Pass::EcbEncrypt => reference::ecb::encrypt(aes, input),
        Pass::EcbDecrypt => reference::ecb::decrypt(aes, input),
        Pass::Ctr | Pass::Ctr32 => {
            let blocks = input.len().div_ceil(16) as u128;
            let counter = *state;
            if pass == Pass::Ctr {
                *state = u128::from_be_bytes(counter).wrapping_add(blocks).to_be_bytes();
                return reference::ctr::apply(aes, &counter, input);
            }
            let low = u32::from_be_bytes(counter[12..].try_into().expect("four bytes"));
            state[12..].copy_from_slice(&low.wrapping_add(blocks as u32).to_be_bytes());
            reference::ctr::apply32(aes, &counter, input)
        }
        Pass::CtrLittle32 => {
            let mut output = Vec::new();
            for chunk in input.chunks(16) {
                output.extend(chunk.iter().zip(aes.encrypt(*state)).map(|(text, mask)| text ^ mask));
                let first = u32::from_le_bytes(state[..4].try_into().expect("four bytes"));
                state[..4].copy_from_slice(&first.wrapping_add(1).to_le_bytes());
            }
            output
        }
        Pass::CbcEncrypt => {
            let output = reference::cbc::encrypt(aes, state, input);
            chain(state, &output);
            output
        }
        Pass::CbcDecrypt => {
            let output = reference::cbc::decrypt(aes, state, input);
            chain(state, input);
            output
        }
        Pass::Cfb128Encrypt => {
            let output = reference::cfb::encrypt128(aes, state, input);
            chain(state, &output[..output.len() & !15]);
            output
        }
        Pass::Cfb128Decrypt => {
            let output = reference::cfb::decrypt128(aes, state, input);
            chain(state, &input[..input.len() & !15]);
            output
        }
        Pass::Cfb8Encrypt => {
            let output = reference::cfb::encrypt8(aes, state, input);
            chain(state, &output);
            output
        }
        Pass::Cfb8Decrypt => {
            let output = reference::cfb::decrypt8(aes, state, input);
            chain(state, input);
            output
        }
        Pass::Cfb1Encrypt => {
            let output = reference::cfb::encrypt1(aes, state, input, 8 * input.len());
            chain(state, &output);
            output
        }
        Pass::Cfb1Decrypt => {
            let output = reference::cfb::decrypt1(aes, state, input, 8 * input.len());
            chain(state, input);
            output
        }
        Pass::Ofb => {
            let output = reference::ofb::apply(aes, state, input);
            let whole = input.len() & !15;
            let keystream: Vec<u8> = input[..whole].iter().zip(&output).map(|(a, b)| a ^ b).collect();
            chain(state, &keystream);
            output
        }
        Pass::PcbcEncrypt | Pass::PcbcDecrypt => {
            let output = if pass == Pass::PcbcEncrypt {
                reference::pcbc::encrypt(aes, state, input)
            } else {
                reference::pcbc::decrypt(aes, state, input)
            };
            let both: Vec<u8> = input.iter().zip(&output).map(|(a, b)| a ^ b).collect();
            chain(state, &both);
            output
        }
        Pass::CbcMac => {
            *state = reference::cbc_mac::update(aes, *state, input);
            input.to_vec()
        }
        Pass::XtsEncrypt | Pass::XtsDecrypt => {
            let (tweak_key, position) = tweak.expect("checked by the caller");
            let tweak_aes = reference::Aes::new(tweak_key);
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

/// Sets the state to the last 16 bytes of the old state followed by `bytes`.
fn chain(state: &mut Block, bytes: &[u8]) {
    let mut all = state.to_vec();
    all.extend(bytes);
    state.copy_from_slice(&all[all.len() - 16..]);
}

/// Runs a fused AEAD on one message. If it seals, `tag` gives the length of the tag. Returns the output, the tag with zeros behind
/// it, and the status.
pub(crate) fn fused(
    fused: FusedAead,
    key: &[u8],
    nonce: &[u8],
    aad: &[u8],
    tag: &[u8],
    input: &[u8],
) -> (Vec<u8>, Block, Status) {
    let aes = reference::Aes::new(key);
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
