//! Known-answer tests that a kernel passes before it is used: on the very device, for the operation at hand.
//!
//! Inputs are made by rule and long enough, or for serial passes many enough, to enter every interleaved loop and every
//! tail, with keys of their own and shared ones, in place and not; of the answers, which the oracle gave, only a digest
//! is kept. A test in this crate says when the digests must be made anew.

use lockstep_core::backend::{Device, KernelId};
use lockstep_core::data::Data;
use lockstep_core::error::{Error, Result};
use lockstep_core::key::{Block, Key, KeySize};
use lockstep_core::work::{AeadMessage, FusedAead, Operation, Pass, Segment, Status, Tag, Task, Tweak};

#[path = "selftest_answers.rs"]
mod answers;

/// Runs the known-answer test of an operation, for every key size the kernel claims to support.
///
/// # Errors
/// [`Error::SelfTest`] if an answer is wrong; those of the device.
pub fn run(device: &dyn Device, kernel: KernelId, operation: Operation) -> Result<()> {
    for size in KeySize::ALL {
        if device.cost(kernel, operation, size).is_none() {
            continue;
        }
        let digest = match operation {
            Operation::Pass(pass) => run_pass(device, kernel, pass, size),
            Operation::Fused(fused) => run_fused(device, kernel, fused, size),
        }?;
        if digest != answers::expected(operation, size) {
            return Err(Error::SelfTest {
                kernel: device.kernels()[usize::from(kernel.0)].name.into(),
                device: device.id(),
                test: format!("known answer of {operation} with {} bits", size.bits()),
            });
        }
    }
    Ok(())
}

/// Bytes of test messages by the unit of the pass: past 64 blocks, so that the widest loop (32 blocks of AVX-512)
/// runs twice, with single blocks and a tail left over; CFB1 takes 128 ciphers a block and gets less.
fn lengths(operation: Operation) -> [usize; 3] {
    match operation {
        Operation::Pass(Pass::Cfb1Encrypt | Pass::Cfb1Decrypt) => [19, 0, 7],
        Operation::Pass(Pass::Cfb8Encrypt | Pass::Cfb8Decrypt) => [51, 0, 17],
        Operation::Pass(pass) if pass.unit() == 16 => [16 * 77, 0, 16 * 5],
        _ => [16 * 77 + 11, 0, 16 * 5 + 3],
    }
}

/// A message long enough for what GPUs do with long ones: two tiles of a warp, 32 blocks a lane, and a rest.
const LONG: usize = 2 * 32 * 32 * 16 + 16 * 77;

/// Bytes by rule: a linear congruential sequence of its own for each purpose.
fn bytes(purpose: u8, len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9u32.wrapping_mul(u32::from(purpose) + 1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn key(purpose: u8, size: KeySize) -> Key {
    Key::new(&bytes(purpose, size.bytes())).expect("a length of AES")
}

/// A chaining state that wraps at 2^32 and 2^64 within the first message.
fn state(message: u8) -> Block {
    let mut block: Block = bytes(30 + message, 16).try_into().expect("16 bytes");
    block[8..].copy_from_slice(&(u64::MAX - 9).to_be_bytes());
    block
}

/// FNV-1a, 64 bits: enough to tell right from wrong where nobody cheats.
fn digest(parts: &[&[u8]]) -> u64 {
    let all = parts.iter().copied().flatten();
    all.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn run_pass(device: &dyn Device, kernel: KernelId, pass: Pass, size: KeySize) -> Result<u64> {
    let lengths = lengths(Operation::Pass(pass));
    // One message alone, a few, and for serial passes more than any kernel takes side by side.
    let counts: &[usize] = if pass.is_serial() { &[1, 3, 41] } else { &[3] };
    let mut digests = Vec::new();
    for &count in counts {
        let lengths: Vec<usize> = match count {
            41 => (0..41).map(|i| lengths[2] + (i % 3) * 16).collect(),
            _ => lengths[..count].to_vec(),
        };
        digests.push(run_messages(device, kernel, pass, size, &lengths)?.to_le_bytes());
    }
    if !pass.is_serial() {
        digests.push(run_messages(device, kernel, pass, size, &[LONG])?.to_le_bytes());
    }
    Ok(digest(&[digests.as_flattened()]))
}

/// One pass over messages of these lengths: the first half under one key, of the others each under its own; every
/// other one out of place.
fn run_messages(
    device: &dyn Device,
    kernel: KernelId,
    pass: Pass,
    size: KeySize,
    lengths: &[usize],
) -> Result<u64> {
    let shared = key(0, size);
    let own: Vec<_> = (0..lengths.len()).map(|i| key(40 + i as u8, size)).collect();
    let tweak_key = key(2, size);
    let mut states: Vec<_> = (0..lengths.len()).map(|i| state(i as u8)).collect();
    let inputs: Vec<_> = lengths.iter().map(|&len| bytes(10 + len as u8, len)).collect();
    let mut outputs = inputs.clone();
    let mut segments = Vec::new();
    for (i, ((input, output), state)) in inputs.iter().zip(&mut outputs).zip(&mut states).enumerate() {
        let data = match i % 2 {
            _ if pass.is_read_only() => Data::read_only(input),
            0 => Data::in_place(output),
            _ => {
                output.fill(0);
                Data::copy(input, output)?
            }
        };
        let key = if 2 * i <= lengths.len() { &shared } else { &own[i] };
        let tweak = pass.is_xts().then_some(Tweak { key: &tweak_key, position: 3 });
        segments.push(Segment { key, tweak, state, data });
    }
    device.submit(kernel, Task::Pass(pass, &mut segments).into())?.wait()?;
    drop(segments);
    let mut parts: Vec<&[u8]> = outputs.iter().map(Vec::as_slice).collect();
    if sets_state(pass) {
        parts.push(states.as_flattened());
    }
    Ok(digest(&parts))
}

/// ECB has no chaining state, and after a partial block the chaining modes leave nothing to go on from.
fn sets_state(pass: Pass) -> bool {
    !matches!(
        pass,
        Pass::EcbEncrypt | Pass::EcbDecrypt | Pass::Cfb128Encrypt | Pass::Cfb128Decrypt | Pass::Ofb
    )
}

fn run_fused(device: &dyn Device, kernel: KernelId, fused: FusedAead, size: KeySize) -> Result<u64> {
    // Two messages in a row under one key, and one under another.
    let keys = [key(0, size), key(1, size)];
    let keys = [&keys[0], &keys[0], &keys[1]];
    let aad = bytes(3, 37);
    let nonces = [bytes(20, 12), bytes(21, 12), bytes(22, 12)];
    let mut data = lengths(Operation::Fused(fused)).map(|len| bytes(10 + len as u8, len));
    let mut tags = [[0; 16]; 3];
    if fused == FusedAead::GcmOpen {
        // Good tags for two messages, as the oracle gave them; the last one is wrong and must be found out.
        tags = answers::open_tags(size);
    }
    let mut messages = Vec::new();
    for (i, (data, tag)) in data.iter_mut().zip(&mut tags).enumerate() {
        messages.push(AeadMessage {
            key: keys[i],
            nonce: &nonces[i],
            aad: &aad[..[37, 0, 16][i]],
            data: Data::in_place(data),
            tag: if fused == FusedAead::GcmSeal { Tag::Write(tag) } else { Tag::Expect(tag) },
            status: Status::Pending,
        });
    }
    device.submit(kernel, Task::Fused(fused, &mut messages).into())?.wait()?;
    let statuses: Vec<u8> = messages.iter().map(|message| message.status as u8).collect();
    Ok(digest(&[&data[0], &data[1], &data[2], tags.as_flattened(), &statuses]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_reference as reference;

    /// The answers of the oracle, as the file of answers has them. Run with `--nocapture` to print a new file.
    #[test]
    fn answers_are_the_oracles() {
        let far = lockstep_testkit::mock::MockAsyncDevice::default();
        let kernel = KernelId(0);
        let mut wrong = false;
        for operation in Operation::all() {
            for size in KeySize::ALL {
                // `far` computes by the oracle, so its digests are the oracle's.
                let digest = match operation {
                    Operation::Pass(pass) => run_pass(&far, kernel, pass, size),
                    Operation::Fused(fused) => run_fused(&far, kernel, fused, size),
                }
                .unwrap();
                if digest != answers::expected(operation, size) {
                    println!("{operation} {size:?}: {digest:#018x}");
                    wrong = true;
                }
            }
        }
        for size in KeySize::ALL {
            let aad = bytes(3, 37);
            let len = lengths(Operation::Fused(FusedAead::GcmOpen));
            let tags: Vec<Block> = (0..3)
                .map(|i| {
                    let aes = reference::Aes::new(key([0, 0, 1][i], size).bytes());
                    let nonce = bytes(20 + i as u8, 12);
                    let ciphertext = bytes(10 + len[i] as u8, len[i]);
                    // CTR is its own inverse: sealing what this ciphertext opens to gives its tag.
                    let (plaintext, _) = reference::gcm::seal(&aes, &nonce, &[], &ciphertext);
                    let (_, mut tag) = reference::gcm::seal(&aes, &nonce, &aad[..[37, 0, 16][i]], &plaintext);
                    tag[15] ^= u8::from(i == 2);
                    tag
                })
                .collect();
            if tags != answers::open_tags(size) {
                println!("open_tags {size:?}: {tags:02x?}");
                wrong = true;
            }
        }
        assert!(!wrong, "the answers differ: see the output");
    }
}
