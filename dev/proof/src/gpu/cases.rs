//! The launches of the passes of `cuda/bitslice` and of its key expansion.

use super::expressions::{Bit, Expr, Expressions};
use super::memory::{Access, Byte, Memory, known};
use super::warp::{LANES, Launch};
use super::{Kernel, Run};
use crate::symbols::Symbols;
use crate::symbols::definition::{self, Block, add};
use crate::value::Domain;

/// The size of the structure Segment, and of a tile of each shape (`common/work.cuh`, `bitslice/shape.cuh`).
pub(super) const SEGMENT_BYTES: usize = 80;
const TILE_OF_WARP: usize = 16 * 1024;
const TILE_OF_LANE: usize = 16 * 32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pass {
    EcbEncrypt,
    EcbDecrypt,
    Ctr,
    Ctr32,
}

/// A message of a launch.
#[derive(Clone, Copy)]
pub(super) struct Message {
    pub(super) bytes: usize,
    /// The remainder of its address modulo 4096.
    pub(super) offset: u64,
    pub(super) in_place: bool,
    /// The index of the key.
    pub(super) key: usize,
    /// The counter before the message.
    pub(super) counter: u128,
}

/// A launch of a pass.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) pass: Pass,
    pub(super) key_bits: usize,
    /// True if a thread processes a tile, false if a warp does.
    pub(super) is_lane: bool,
    pub(super) messages: Vec<Message>,
    pub(super) title: &'static str,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} AES-{}, {}", self.function(), self.key_bits, self.title)
    }
}

/// The bytes of a structure in memory.
pub(super) fn public_bytes(bytes: &[u8]) -> Vec<Byte> {
    bytes.iter().map(|byte| known(*byte)).collect()
}

/// Expressions with an owner as bytes.
pub(super) fn owned_bytes(expressions: &mut Expressions, bytes: &[[Expr; 8]], owner: u32) -> Vec<Byte> {
    bytes.iter().map(|byte| byte.map(|expr| expressions.owned(Bit { expr, owner: 0 }, owner))).collect()
}

/// A Segment: the addresses and the length of a message, the key and the chaining state.
pub(super) fn segment(from: u64, to: u64, bytes: usize, key: usize, state: &[Byte]) -> Vec<Byte> {
    let mut segment = Vec::new();
    for number in [from, to, bytes as u64, 0, key as u64, 0] {
        segment.extend(public_bytes(&number.to_le_bytes()));
    }
    segment.extend(state);
    segment.resize(SEGMENT_BYTES, known(0));
    segment
}

/// An error with the place of the first byte that differs.
pub(super) fn compare(what: &str, found: &[Byte], right: &[Byte]) -> Result<(), String> {
    assert_eq!(found.len(), right.len(), "the length of {what}");
    match found.iter().zip(right).position(|(found, right)| found != right) {
        Some(place) => Err(format!("byte {place} of {what} is not equal to the definition")),
        None => Ok(()),
    }
}

impl Case {
    pub(super) fn module(&self) -> &'static str {
        match self.pass {
            Pass::EcbEncrypt => "bitslice_ecb_encrypt",
            Pass::EcbDecrypt => "bitslice_ecb_decrypt",
            Pass::Ctr => "bitslice_ctr",
            Pass::Ctr32 => "bitslice_ctr32",
        }
    }

    pub(super) fn function(&self) -> String {
        let name = self.module();
        if self.is_lane { name.replace("bitslice_", "bitslice_lane_") } else { name.to_string() }
    }

    /// The counter block of a block (SP 800-38A, B.1; SP 800-38D, 6.2).
    fn counter(&self, first: u128, block: usize) -> [u8; 16] {
        let mut counter = first.wrapping_add(block as u128);
        if self.pass == Pass::Ctr32 {
            counter = first >> 32 << 32 | u128::from(counter as u32);
        }
        counter.to_be_bytes()
    }

    /// Returns the input block and the result of the cipher by the definition. For CTR, the input is the state before round 3.
    fn output(
        &self,
        expressions: &mut Expressions,
        keys: &[Block],
        decryption_keys: &[Block],
    ) -> (Block, Block) {
        let block: Block = std::array::from_fn(|_| expressions.input(true));
        let output = match self.pass {
            Pass::EcbEncrypt => definition::encrypt(expressions, keys, &block),
            Pass::EcbDecrypt => definition::decrypt(expressions, decryption_keys, &block),
            Pass::Ctr | Pass::Ctr32 => {
                definition::encrypt_rounds(expressions, keys, block, 3..=keys.len() - 1)
            }
        };
        (block, output)
    }

    fn is_counting(&self) -> bool {
        matches!(self.pass, Pass::Ctr | Pass::Ctr32)
    }

    /// Runs all thread blocks of the launch, and compares the results with the definition.
    pub(super) fn run(&self, kernel: &Kernel, run: &mut Run) -> Result<(), String> {
        let expressions = &mut Expressions::new();
        let mut memory = Memory::default();
        let tile = if self.is_lane { TILE_OF_LANE } else { TILE_OF_WARP };
        let keys = 1 + self.messages.iter().map(|message| message.key).max().unwrap_or(0);
        let mut schedules = Vec::new();
        let mut ciphers = Vec::new();
        for _ in 0..keys {
            // Round keys that are independent of each other.
            let round_keys: Vec<Block> = (0..=self.key_bits / 32 + 6)
                .map(|_| std::array::from_fn(|_| expressions.input(false)))
                .collect();
            let decryption_keys = definition::decryption_keys(expressions, &round_keys);
            let schedule = schedule(&round_keys, &decryption_keys);
            schedules.extend(owned_bytes(expressions, &schedule, 0));
            let (block, output) = self.output(expressions, &round_keys, &decryption_keys);
            if !self.is_counting() {
                // The blocks of a tile that are not in the message are zeros.
                let zeros = [Symbols::constant(0); 16];
                match self.pass {
                    Pass::EcbDecrypt => definition::decrypt(expressions, &decryption_keys, &zeros),
                    _ => definition::encrypt(expressions, &round_keys, &zeros),
                };
            }
            ciphers.push((round_keys, block, output));
        }
        let data: [[Expr; 8]; 16] = std::array::from_fn(|_| expressions.input(true));
        let (mut segments, mut first_tiles, mut tiles) = (Vec::new(), vec![0u64], 0);
        let mut outputs = Vec::new();
        let mut owner = 1;
        for message in &self.messages {
            let (round_keys, block, output) = &ciphers[message.key];
            let count = message.bytes.div_ceil(tile);
            let (mut input, mut right) = (Vec::new(), Vec::new());
            for number in 0..count * tile / 16 {
                let (text, result) = if self.is_counting() {
                    let counter = self.counter(message.counter, number).map(Symbols::constant);
                    let state = add(expressions, &counter, &round_keys[0]);
                    let state = definition::encrypt_rounds(expressions, round_keys, state, 1..=2);
                    for (expr, name) in state.as_flattened().iter().zip(block.as_flattened()) {
                        expressions.name(*expr, Bit { expr: *name, owner });
                    }
                    (data, add(expressions, &data, output))
                } else {
                    (*block, *output)
                };
                input.extend(owned_bytes(expressions, &text, owner));
                right.extend(owned_bytes(expressions, &result, owner));
                owner += 1;
            }
            input.truncate(message.bytes);
            right.truncate(message.bytes);
            let access = if message.in_place { Access::InPlace } else { Access::Read };
            let unwritten = vec![known(0); message.bytes];
            let from = memory.add("the input", access, input, message.offset);
            let (mut to, mut place) = (from, memory.buffers.len() - 1);
            if !message.in_place {
                (to, place) = (memory.add("the output", Access::Write, unwritten, message.offset), place + 1);
            }
            outputs.push((place, right));
            let counter = public_bytes(&message.counter.to_be_bytes());
            segments.extend(segment(from, to, message.bytes, message.key, &counter));
            tiles += count as u64;
            first_tiles.push(tiles);
        }
        let first_tiles: Vec<u8> = first_tiles.iter().flat_map(|number| number.to_le_bytes()).collect();
        let mut parameters = Vec::new();
        for (name, bytes) in [
            ("the segments", segments),
            ("the first tiles", public_bytes(&first_tiles)),
            ("the schedules", schedules),
        ] {
            parameters.extend(memory.add(name, Access::Read, bytes, 0).to_le_bytes());
        }
        parameters.extend([0, tiles].map(u64::to_le_bytes).as_flattened());
        let rounds = self.key_bits / 32 + 6;
        parameters.extend([self.messages.len(), rounds].map(|n| (n as u32).to_le_bytes()).as_flattened());
        let blocks = if self.is_lane { tiles.div_ceil(LANES as u64) } else { tiles } as u32;
        for block in 0..blocks {
            let launch = Launch { blocks, block, ..Launch::of_warp(&parameters, kernel.shared) };
            run.warp(kernel, &launch, &mut memory, expressions)?;
        }
        memory.unwritten()?;
        for (place, right) in &outputs {
            compare("the output", &memory.buffers[*place].bytes, right)?;
        }
        Ok(())
    }
}

/// The schedule in memory: the round keys for encryption, then those for decryption in the order of use.
fn schedule(round_keys: &[Block], decryption_keys: &[Block]) -> Vec<[Expr; 8]> {
    let in_order_of_use: Vec<Block> = decryption_keys.iter().rev().copied().collect();
    [round_keys, &in_order_of_use].concat().into_flattened()
}

/// Runs the key expansion of as many keys as a warp has lanes, and compares the schedules with the definition.
pub(super) fn expand(kernel: &Kernel, run: &mut Run, key_bits: usize) -> Result<(), String> {
    let expressions = &mut Expressions::new();
    let mut memory = Memory::default();
    let key: Vec<[Expr; 8]> = (0..key_bits / 8).map(|_| expressions.input(true)).collect();
    let round_keys = definition::round_keys(expressions, &key);
    let schedule = schedule(&round_keys, &definition::decryption_keys(expressions, &round_keys));
    let (mut keys, mut right) = (Vec::new(), Vec::new());
    for owner in 1..=LANES as u32 {
        keys.extend(owned_bytes(expressions, &key, owner));
        right.extend(owned_bytes(expressions, &schedule, owner));
    }
    let unwritten = vec![known(0); right.len()];
    let mut parameters = Vec::new();
    parameters.extend(memory.add("the keys", Access::Read, keys, 0).to_le_bytes());
    parameters.extend(memory.add("the schedules", Access::Write, unwritten, 0).to_le_bytes());
    parameters.extend((LANES as u32).to_le_bytes());
    run.warp(kernel, &Launch::of_warp(&parameters, kernel.shared), &mut memory, expressions)?;
    memory.unwritten()?;
    compare("the schedules", &memory.buffer("the schedules").bytes, &right)
}
