//! Passes and recipes by the oracle.

use lockstep_reference as reference;

use lockstep_core::key::Block;
use lockstep_core::work::{Pass, Recipe, Status};

/// One segment; returns the output, or the input again if the pass only reads.
pub(crate) fn pass(
    pass: Pass,
    key: &[u8],
    tweak: Option<(&[u8], u64)>,
    register: &mut Block,
    input: &[u8],
) -> Vec<u8> {
    let aes = reference::Aes::new(key);
    let aes = &aes;
    match pass {
        Pass::EcbEncrypt => reference::ecb::encrypt(aes, input),
        Pass::EcbDecrypt => reference::ecb::decrypt(aes, input),
        Pass::Ctr | Pass::Ctr32 => {
            let blocks = input.len().div_ceil(16) as u128;
            let counter = *register;
            if pass == Pass::Ctr {
                *register = u128::from_be_bytes(counter).wrapping_add(blocks).to_be_bytes();
                return reference::ctr::apply(aes, &counter, input);
            }
            let low = u32::from_be_bytes(counter[12..].try_into().expect("four bytes"));
            register[12..].copy_from_slice(&low.wrapping_add(blocks as u32).to_be_bytes());
            reference::ctr::apply32(aes, &counter, input)
        }
        Pass::CbcEncrypt => {
            let output = reference::cbc::encrypt(aes, register, input);
            chain(register, &output);
            output
        }
        Pass::CbcDecrypt => {
            let output = reference::cbc::decrypt(aes, register, input);
            chain(register, input);
            output
        }
        Pass::Cfb128Encrypt => {
            let output = reference::cfb::encrypt128(aes, register, input);
            chain(register, &output[..output.len() & !15]);
            output
        }
        Pass::Cfb128Decrypt => {
            let output = reference::cfb::decrypt128(aes, register, input);
            chain(register, &input[..input.len() & !15]);
            output
        }
        Pass::Cfb8Encrypt => {
            let output = reference::cfb::encrypt8(aes, register, input);
            chain(register, &output);
            output
        }
        Pass::Cfb8Decrypt => {
            let output = reference::cfb::decrypt8(aes, register, input);
            chain(register, input);
            output
        }
        Pass::Cfb1Encrypt => {
            let output = reference::cfb::encrypt1(aes, register, input, 8 * input.len());
            chain(register, &output);
            output
        }
        Pass::Cfb1Decrypt => {
            let output = reference::cfb::decrypt1(aes, register, input, 8 * input.len());
            chain(register, input);
            output
        }
        Pass::Ofb => {
            let output = reference::ofb::apply(aes, register, input);
            let whole = input.len() & !15;
            let keystream: Vec<u8> = input[..whole].iter().zip(&output).map(|(a, b)| a ^ b).collect();
            chain(register, &keystream);
            output
        }
        Pass::PcbcEncrypt | Pass::PcbcDecrypt => {
            let output = if pass == Pass::PcbcEncrypt {
                reference::pcbc::encrypt(aes, register, input)
            } else {
                reference::pcbc::decrypt(aes, register, input)
            };
            let both: Vec<u8> = input.iter().zip(&output).map(|(a, b)| a ^ b).collect();
            chain(register, &both);
            output
        }
        Pass::CbcMac => {
            *register = reference::cbc_mac::update(aes, *register, input);
            input.to_vec()
        }
        Pass::XtsEncrypt | Pass::XtsDecrypt => {
            let (tweak_key, position) = tweak.expect("checked by the caller");
            let tweak_aes = reference::Aes::new(tweak_key);
            // The oracle starts at the beginning of a unit: put as many blocks before the segment.
            let start = 16 * usize::try_from(position).expect("tests stay near the beginning");
            let mut unit = vec![0; start];
            unit.extend(input);
            if unit.is_empty() {
                return unit;
            }
            let unit = if pass == Pass::XtsEncrypt {
                reference::xts::encrypt(aes, &tweak_aes, register, &unit)
            } else {
                reference::xts::decrypt(aes, &tweak_aes, register, &unit)
            };
            unit[start..].to_vec()
        }
        Pass::Ghash => {
            *register = reference::ghash::update(&aes.encrypt([0; 16]), *register, input);
            input.to_vec()
        }
    }
}

/// The last 16 bytes of what was there and what came.
fn chain(register: &mut Block, bytes: &[u8]) {
    let mut all = register.to_vec();
    all.extend(bytes);
    register.copy_from_slice(&all[all.len() - 16..]);
}

/// One message: output, full tag, status.
pub(super) fn recipe(
    recipe: Recipe,
    key: &[u8],
    nonce: &[u8],
    aad: &[u8],
    tag: &[u8],
    input: &[u8],
) -> (Vec<u8>, Block, Status) {
    let aes = reference::Aes::new(key);
    match recipe {
        Recipe::GcmSeal => {
            let (output, tag) = reference::gcm::seal(&aes, nonce, aad, input);
            (output, tag, Status::Done)
        }
        Recipe::GcmOpen => match reference::gcm::open(&aes, nonce, aad, input, tag) {
            Some(output) => (output, [0; 16], Status::Done),
            None => (vec![0; input.len()], [0; 16], Status::AuthenticationFailed),
        },
    }
}
