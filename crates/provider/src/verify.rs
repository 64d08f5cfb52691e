//! Results of devices compared with the processor's: GPUs do return wrong ones.
//!
//! Before the work a [`Witness`] keeps what it needs of the input, since the work may be in place; afterwards it computes
//! some blocks again, or all, by the inline kernel.

use lockstep::hazmat::inline::{Block, InlineKey, Span, advance_tweak};
use lockstep::hazmat::work::Pass;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::settings::Verify;

/// One block in so many is computed again: 64 KiB of data cost one block, a quarter of a thousandth.
const STRIDE: usize = 4096;

/// What is kept of the input of a piece of work.
pub(crate) struct Witness {
    pass: Pass,
    /// The register before the work; for XTS the tweak of the first block, encrypted.
    register: Block,
    blocks: Vec<Sample>,
}

/// A block of input, and the one before it (the register for the first).
#[derive(Zeroize, ZeroizeOnDrop)]
struct Sample {
    number: usize,
    before: Block,
    input: Block,
}

/// The counter of a pass of CTR so many blocks on.
pub(crate) fn counter_after(pass: Pass, counter: &Block, blocks: u128) -> Block {
    let counter = u128::from_be_bytes(*counter);
    let next = counter.wrapping_add(blocks);
    // In GCM the last 32 bits alone count (SP 800-38D, 6.2).
    let counting = if pass == Pass::Ctr32 { u128::from(u32::MAX) } else { u128::MAX };
    ((counter & !counting) | (next & counting)).to_be_bytes()
}

fn block(data: &[u8], number: usize) -> Block {
    data[16 * number..16 * number + 16].try_into().expect("16 bytes")
}

impl Witness {
    /// Keeps a block in every few thousand, at a place of each stretch that `seed` chooses, or all of them.
    /// Nothing if there is no memory.
    pub(crate) fn keep(
        verify: Verify,
        pass: Pass,
        register: &Block,
        input: &[u8],
        seed: usize,
    ) -> Option<Witness> {
        let count = input.len() / 16;
        let stride = if verify == Verify::Full { 1 } else { STRIDE };
        let sample = |start: usize| {
            let number = (start + seed % stride).min(count - 1);
            let before = if number == 0 { *register } else { block(input, number - 1) };
            Sample { number, before, input: block(input, number) }
        };
        let mut blocks = Vec::new();
        if verify != Verify::Off {
            blocks.try_reserve_exact(count.div_ceil(stride)).ok()?;
            blocks.extend((0..count).step_by(stride).map(sample));
        }
        Some(Witness { pass, register: *register, blocks })
    }

    /// True if the blocks kept have become what they should.
    pub(crate) fn agrees(&self, key: &InlineKey, output: &[u8]) -> bool {
        self.blocks.iter().all(|sample| {
            let number = sample.number;
            let got = block(output, number);
            let before = if number == 0 { self.register } else { block(output, number - 1) };
            *self.expected(key, sample, &before) == got
        })
    }

    /// What a block should become; `output_before` is the output before it.
    fn expected(&self, key: &InlineKey, sample: &Sample, output_before: &Block) -> Zeroizing<Block> {
        let mut block = Zeroizing::new(sample.input);
        let mut register = Zeroizing::new(self.register);
        let data = Span::in_place(&mut *block);
        match self.pass {
            Pass::EcbEncrypt => key.ecb_encrypt(data),
            Pass::EcbDecrypt => key.ecb_decrypt(data),
            Pass::Ctr | Pass::Ctr32 => {
                key.ctr(&mut counter_after(self.pass, &register, sample.number as u128), data)
            }
            Pass::CbcEncrypt => key.cbc_encrypt(&mut output_before.clone(), data),
            Pass::CbcDecrypt => key.cbc_decrypt(&mut sample.before.clone(), data),
            Pass::Cfb128Encrypt => key.cfb128_encrypt(&mut output_before.clone(), data),
            Pass::Cfb128Decrypt => key.cfb128_decrypt(&mut sample.before.clone(), data),
            Pass::Ofb => {
                // The keystream block before: what input and output before differ by.
                if sample.number > 0 {
                    register
                        .iter_mut()
                        .zip(sample.before)
                        .zip(output_before)
                        .for_each(|((r, i), o)| *r = i ^ o);
                }
                key.ofb(&mut register, data);
            }
            Pass::XtsEncrypt | Pass::XtsDecrypt => {
                advance_tweak(&mut register, sample.number as u64);
                if self.pass == Pass::XtsEncrypt {
                    key.xts_encrypt(&mut register, data);
                } else {
                    key.xts_decrypt(&mut register, data);
                }
            }
            _ => unreachable!("no other passes are verified"),
        }
        block
    }

    /// True if results of this pass can be verified by blocks.
    pub(crate) fn can_see(pass: Pass) -> bool {
        matches!(
            pass,
            Pass::EcbEncrypt
                | Pass::EcbDecrypt
                | Pass::Ctr
                | Pass::Ctr32
                | Pass::CbcEncrypt
                | Pass::CbcDecrypt
                | Pass::Cfb128Encrypt
                | Pass::Cfb128Decrypt
                | Pass::Ofb
                | Pass::XtsEncrypt
                | Pass::XtsDecrypt
        )
    }
}

#[cfg(test)]
mod tests {
    use lockstep::hazmat::inline::InlineKernel;

    use super::*;

    const PASSES: [Pass; 10] = [
        Pass::EcbEncrypt,
        Pass::EcbDecrypt,
        Pass::Ctr,
        Pass::CbcEncrypt,
        Pass::CbcDecrypt,
        Pass::Cfb128Encrypt,
        Pass::Cfb128Decrypt,
        Pass::Ofb,
        Pass::XtsEncrypt,
        Pass::XtsDecrypt,
    ];

    fn run(key: &InlineKey, pass: Pass, register: &Block, data: &mut [u8]) {
        let (register, data) = (&mut register.clone(), Span::in_place(data));
        match pass {
            Pass::EcbEncrypt => key.ecb_encrypt(data),
            Pass::EcbDecrypt => key.ecb_decrypt(data),
            Pass::Ctr => key.ctr(register, data),
            Pass::CbcEncrypt => key.cbc_encrypt(register, data),
            Pass::CbcDecrypt => key.cbc_decrypt(register, data),
            Pass::Cfb128Encrypt => key.cfb128_encrypt(register, data),
            Pass::Cfb128Decrypt => key.cfb128_decrypt(register, data),
            Pass::Ofb => key.ofb(register, data),
            Pass::XtsEncrypt => key.xts_encrypt(register, data),
            _ => key.xts_decrypt(register, data),
        }
    }

    #[test]
    fn right_results_agree_and_wrong_bytes_are_caught() {
        let key = InlineKey::new(InlineKernel::best(), &[7; 16]).unwrap();
        let register = [0xFE; 16];
        let input: Vec<u8> = (0..3 * 16 * STRIDE + 16).map(|i| (i * 7 + i / 251) as u8).collect();
        for pass in PASSES {
            for (verify, seed) in [(Verify::Sample, 0), (Verify::Sample, 1234), (Verify::Full, 5)] {
                let witness = Witness::keep(verify, pass, &register, &input, seed).unwrap();
                let mut output = input.clone();
                run(&key, pass, &register, &mut output);
                assert!(witness.agrees(&key, &output), "{pass:?} {verify:?}");
                let at = 16 * (STRIDE + seed % STRIDE) + 3;
                output[at] ^= 1;
                assert!(!witness.agrees(&key, &output), "{pass:?} {verify:?}");
            }
        }
    }

    #[test]
    fn all_of_a_wrong_keystream_is_caught_in_any_sample() {
        let key = InlineKey::new(InlineKernel::best(), &[7; 32]).unwrap();
        let witness = Witness::keep(Verify::Sample, Pass::Ctr, &[1; 16], &[0; 1 << 17], 99).unwrap();
        assert!(!witness.agrees(&key, &[0; 1 << 17]));
        assert!(Witness::keep(Verify::Off, Pass::Ctr, &[1; 16], &[0; 64], 0).unwrap().agrees(&key, &[0; 64]));
    }
}
