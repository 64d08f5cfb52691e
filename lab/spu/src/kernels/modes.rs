//! The loops over blocks: they make the inputs of the cipher and use its results.

use super::aes::AesRounds;
use crate::schedule::{Flow, Value};

/// A mode of operation, as a loop of the SPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// ECB: independent blocks, in the direction of the cipher.
    Ecb,
    /// Counter blocks, whose last 32 bits are incremented.
    Ctr,
    /// CTR; the contribution of the first three words of the counter block to the first round is computed once per
    /// call.
    CtrCached,
    /// CBC encryption: each ciphertext block is added to the next plaintext block.
    CbcEncrypt,
    /// CBC decryption: the previous ciphertext block is added to each result.
    CbcDecrypt,
    /// CFB decryption. All ciphertext is known, so the blocks are independent.
    CfbEncrypt,
    /// CFB decryption, where all ciphertext is known.
    CfbDecrypt,
    /// OFB: the previous keystream block is encrypted.
    Ofb,
}

/// The type of a parameter of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// A round key in the internal form of the cipher.
    RoundKey(usize),
    /// In CBC, this value is added to each block before the first round: the sum of the first round key and of the last round key, in the
    /// internal form.
    ChainKey,
    /// The counter of the first block.
    Counter,
    /// The contribution of the first three words of all counter blocks, and of the second round key, to the first
    /// round.
    FirstRound,
    /// The running hash.
    Hash,
    /// The chaining value in the internal form, without the last round key.
    Chain,
    /// The address of the input, in the preferred slot. The quadword before the input is the previous block or the IV.
    Input,
    /// The address of the output.
    Output,
}

/// Bytes of a block, as an offset.
const BLOCK: i32 = 16;

/// A kernel under construction.
pub(super) struct Building<'c> {
    pub(super) flow: Flow,
    pub(super) parameters: Vec<Parameter>,
    cipher: &'c dyn AesRounds,
    rounds: usize,
    blocks: i32,
}

/// Builds the body of the loop, and the types of its parameters.
pub(super) fn build(
    cipher: &dyn AesRounds,
    mode: Mode,
    rounds: usize,
    blocks: u32,
) -> (Flow, Vec<Parameter>) {
    let blocks = if mode.is_chain() { 1 } else { blocks as i32 };
    let mut b = Building { flow: Flow::new(), parameters: Vec::new(), cipher, rounds, blocks };
    match mode {
        Mode::Ecb => b.each(|_, _, _, out| out, false),
        Mode::Ctr => b.counters(false),
        Mode::CtrCached => b.counters(true),
        Mode::CbcDecrypt => b.each(
            |b, before, k, out| {
                let before = b.flow.load_at(before, BLOCK * (k - 1));
                b.flow.xor(out, before)
            },
            false,
        ),
        Mode::CfbDecrypt => b.each(
            |b, here, k, out| {
                let here = b.flow.load_at(here, BLOCK * k);
                b.flow.xor(out, here)
            },
            true,
        ),
        Mode::CbcEncrypt => b.cbc(),
        Mode::CfbEncrypt => b.feedback(true),
        Mode::Ofb => b.feedback(false),
    }
    (b.flow, b.parameters)
}

impl Mode {
    /// True if each block depends on the previous one.
    pub fn is_chain(self) -> bool {
        matches!(self, Mode::CbcEncrypt | Mode::CfbEncrypt | Mode::Ofb)
    }
}

impl Building<'_> {
    fn parameter(&mut self, what: Parameter) -> Value {
        self.parameters.push(what);
        self.flow.parameter()
    }

    fn keys(&mut self) -> Vec<Value> {
        (0..=self.rounds).map(|round| self.parameter(Parameter::RoundKey(round))).collect()
    }

    /// Returns an address that advances with each group of blocks. Loads and stores that are far apart in an iteration use separate
    /// pointers, so that iterations can overlap.
    fn pointer(&mut self, what: Parameter) -> Value {
        self.parameters.push(what);
        let (carried, value) = self.flow.carried();
        let step = BLOCK * self.blocks;
        let next = if step < 512 {
            self.flow.add_to_words(value, step)
        } else {
            let step = self.flow.constant(super::scalar(step as u32));
            self.flow.add_words(value, step)
        };
        self.flow.carry(carried, next);
        value
    }

    /// Builds a loop over independent blocks. If `before` is set, the input of the cipher is the previous block.
    fn each(&mut self, finish: impl Fn(&mut Self, Value, i32, Value) -> Value, before: bool) {
        let keys = self.keys();
        let input = self.pointer(Parameter::Input);
        let again = self.pointer(Parameter::Input);
        let output = self.pointer(Parameter::Output);
        for k in 0..self.blocks {
            self.flow.block_in_flight(k as u32);
            let block = self.flow.load_at(input, BLOCK * (k - i32::from(before)));
            let entered = self.cipher.enter(&mut self.flow, block);
            let entered = self.flow.xor(entered, keys[0]);
            let (out, _) = self.cipher.run(&mut self.flow, &keys, 0, entered, false);
            let out = finish(self, again, k, out);
            self.flow.store_at(out, output, BLOCK * k);
        }
    }

    fn counters(&mut self, cached: bool) {
        let keys = self.keys();
        let caching = self.cipher.caching().filter(|_| cached);
        let rest = caching.map(|cipher| (self.parameter(Parameter::FirstRound), cipher));
        self.parameters.push(Parameter::Counter);
        let (carried, counter) = self.flow.carried();
        let input = self.pointer(Parameter::Input);
        let output = self.pointer(Parameter::Output);
        let plus = |count: i32| {
            let mut block = [0; 16];
            block[15] = count as u8;
            block
        };
        for k in 0..self.blocks {
            self.flow.block_in_flight(k as u32);
            let mine = if k == 0 {
                counter
            } else {
                let step = self.flow.constant(plus(k));
                self.flow.add_words(counter, step)
            };
            let entered = self.cipher.enter(&mut self.flow, mine);
            let entered = self.flow.xor(entered, keys[0]);
            let (out, _) = match rest {
                None => self.cipher.run(&mut self.flow, &keys, 0, entered, false),
                Some((rest, cipher)) => {
                    let first = cipher.first_round(&mut self.flow, entered, rest);
                    self.cipher.run(&mut self.flow, &keys, 1, first, false)
                }
            };
            let data = self.flow.load_at(input, BLOCK * k);
            let out = self.flow.xor(out, data);
            self.flow.store_at(out, output, BLOCK * k);
        }
        let step = self.flow.constant(plus(self.blocks));
        let next = self.flow.add_words(counter, step);
        self.flow.carry(carried, next);
    }

    /// CBC encryption. The chaining value is kept in the internal form and without the last round key. That key is
    /// added to the plaintext in advance, so the chain has only one exclusive or between two blocks.
    fn cbc(&mut self) {
        let keys = self.keys();
        let chain_key = self.parameter(Parameter::ChainKey);
        self.parameters.push(Parameter::Chain);
        let (carried, chain) = self.flow.carried();
        let input = self.pointer(Parameter::Input);
        let output = self.pointer(Parameter::Output);
        let block = self.flow.load_at(input, 0);
        let entered = self.cipher.enter(&mut self.flow, block);
        let entered = self.flow.xor(entered, chain_key);
        let entered = self.flow.xor(entered, chain);
        let (out, chained) = self.cipher.run(&mut self.flow, &keys, 0, entered, true);
        self.flow.store_at(out, output, 0);
        self.flow.carry(carried, chained.expect("it was asked for"));
    }

    /// Builds CFB encryption if `with_data` is set, and OFB otherwise. In CFB the plaintext is added to the next chaining value.
    fn feedback(&mut self, with_data: bool) {
        let keys = self.keys();
        let chain_key = self.parameter(Parameter::ChainKey);
        self.parameters.push(Parameter::Chain);
        let (carried, chain) = self.flow.carried();
        let input = self.pointer(Parameter::Input);
        let output = self.pointer(Parameter::Output);
        let entered = self.flow.xor(chain, chain_key);
        let (out, chained) = self.cipher.run(&mut self.flow, &keys, 0, entered, true);
        let data = self.flow.load_at(input, 0);
        let out = self.flow.xor(out, data);
        self.flow.store_at(out, output, 0);
        let mut next = chained.expect("it was asked for");
        if with_data {
            let data = self.cipher.enter(&mut self.flow, data);
            next = self.flow.xor(next, data);
        }
        self.flow.carry(carried, next);
    }
}
