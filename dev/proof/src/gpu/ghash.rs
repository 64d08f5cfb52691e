//! GHASH (SP 800-38D, 6.4) and POLYVAL (RFC 8452, section 3) by integer multiplication.
//!
//! Both are hashed as POLYVAL: GHASH is POLYVAL with reversed blocks and a key that is multiplied by x (RFC 8452, appendix A). The
//! definition computes the same powers and sums as the kernels (`ghash/hashing.cuh`), with products by `dot` on expressions. Each
//! product gets a name. The exponents of the key are counted, and compared with those in the standard.

use std::array::from_fn;
use std::collections::HashMap;

use super::cases::{SEGMENT_BYTES, compare, owned_bytes, public_bytes, segment};
use super::expressions::{Bit, Expr, Expressions};
use super::memory::{Access, Byte, Memory, known};
use super::warp::{LANES, Launch};
use super::{Kernel, Run};
use crate::symbols::definition::{Block, Operations, POLYVAL, reduced, times_x};
use crate::symbols::{ONE, ZERO};

/// An element of the field: bit i is the coefficient of x^i.
type Element = [Expr; 128];

const TILE_BLOCKS: usize = 512;
const LEVELS: usize = 4;
const POWERS: usize = 33;

/// The offset of the chaining state after the segment in a Segment.
const NEXT: usize = SEGMENT_BYTES - 16;

fn element(block: &Block, is_polyval: bool) -> Element {
    from_fn(|bit| block[if is_polyval { bit / 8 } else { 15 - bit / 8 }][bit % 8])
}

fn block(element: &Element, is_polyval: bool) -> Block {
    from_fn(|byte| from_fn(|bit| element[8 * if is_polyval { byte } else { 15 - byte } + bit]))
}

fn sum(expressions: &mut Expressions, x: &Element, y: &Element) -> Element {
    from_fn(|bit| expressions.xor(x[bit], y[bit]))
}

/// `dot` (RFC 8452, section 3): the product times x^-128. The factors are divided into words, and words into parts that have every fourth
/// bit, because sums of these parts are the factors of the kernels' products.
fn dot(expressions: &mut Expressions, x: &Element, y: &Element) -> Element {
    let part = |element: &Element, word: usize, first: usize| -> [Expr; 32] {
        from_fn(|bit| if bit % 4 == first { element[32 * word + bit] } else { ZERO })
    };
    let mut terms: [Vec<Expr>; 256] = from_fn(|_| Vec::new());
    for i in 0..16 {
        for j in 0..16 {
            let product = expressions.carryless(part(x, i / 4, i % 4), part(y, j / 4, j % 4));
            for (place, expr) in product.into_iter().enumerate().filter(|(_, expr)| *expr != ZERO) {
                terms[32 * (i / 4 + j / 4) + place].push(expr);
            }
        }
    }
    reduced(expressions, terms)
}

/// The product of blocks in the field of GHASH (SP 800-38D, 6.3).
#[cfg(test)]
pub(super) fn product_of_blocks(expressions: &mut Expressions, x: &Block, y: &Block) -> Block {
    let key = times_x(expressions, &element(y, false), &POLYVAL);
    block(&dot(expressions, &element(x, false), &key), false)
}

/// The product as 128 atoms, unless a factor is public.
fn defined_product(expressions: &mut Expressions, x: &Element, y: &Element) -> Element {
    let product = dot(expressions, x, y);
    let is_public = |element: &Element| element.iter().all(|expr| *expr <= ONE);
    if is_public(x) || is_public(y) { product } else { product.map(|expr| expressions.defined(expr)) }
}

/// The neutral element of `dot`: x^128.
fn one() -> Element {
    from_fn(|bit| if POLYVAL.contains(&bit) { ONE } else { ZERO })
}

/// A product with its exponent of the key.
#[derive(Clone)]
struct Power {
    element: Element,
    exponent: u64,
}

impl Power {
    fn times(&self, expressions: &mut Expressions, other: &Power) -> Power {
        let product = defined_product(expressions, &self.element, &other.element);
        Power { element: product, exponent: self.exponent + other.exponent }
    }
}

/// Runs the computation of the powers of a key.
pub(super) fn powers(kernel: &Kernel, run: &mut Run, is_polyval: bool, levels: usize) -> Result<(), String> {
    let expressions = &mut Expressions::new();
    let hash_key: Block = from_fn(|_| expressions.input(false));
    let mut key = element(&hash_key, is_polyval);
    if !is_polyval {
        key = times_x(expressions, &key, &POLYVAL);
    }
    let mut key = Power { element: key, exponent: 1 };
    let mut right = Vec::new();
    for level in 0..levels {
        // K, K^2, K^4 ... K^512.
        let mut squares = vec![key];
        for _ in 0..9 {
            let last = squares[squares.len() - 1].clone();
            squares.push(last.times(expressions, &last));
        }
        let unit = squares[0].exponent;
        let mut known: HashMap<usize, Power> = HashMap::from([(0, Power { element: one(), exponent: 0 })]);
        for lane in 0..LANES {
            let exponent = lane + usize::from(level == 0);
            for bit in (0..6).filter(|bit| exponent >> bit & 1 == 1) {
                let (before, after) = (exponent & ((1 << bit) - 1), exponent & ((2 << bit) - 1));
                if !known.contains_key(&after) {
                    let power = known[&before].clone().times(expressions, &squares[bit]);
                    known.insert(after, power);
                }
            }
            let power = &known[&exponent];
            assert_eq!(power.exponent, exponent as u64 * unit, "the power of the standard");
            right.extend(owned_bytes(expressions, &block(&power.element, false), 0));
        }
        assert_eq!(squares[5].exponent, 32 * unit, "the power of the standard");
        right.extend(owned_bytes(expressions, &block(&squares[5].element, false), 0));
        key = squares.pop().expect("K^512");
    }
    let mut memory = Memory::default();
    let input = owned_bytes(expressions, &hash_key, 0);
    let mut parameters = Vec::new();
    parameters.extend(memory.add("the hash key", Access::Read, input, 0).to_le_bytes());
    let rows = vec![known(0); right.len()];
    parameters.extend(memory.add("the powers", Access::Write, rows, 0).to_le_bytes());
    for number in [1, levels as u32, 16, is_polyval.into()] {
        parameters.extend(number.to_le_bytes());
    }
    run.warp(kernel, &Launch::of_warp(&parameters, 0), &mut memory, expressions)?;
    memory.unwritten()?;
    compare("the powers", &memory.buffer("the powers").bytes, &right)
}

/// A message whose tiles are hashed.
#[derive(Clone, Copy)]
pub(super) struct Hash {
    pub(super) bytes: usize,
    /// The length of the associated data of GCM; `None` for GHASH of the message with a chaining state.
    pub(super) aad: Option<usize>,
    /// The remainder of the address of the data modulo 4096.
    pub(super) offset: u64,
    pub(super) level: usize,
    pub(super) is_polyval: bool,
}

impl std::fmt::Display for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let name = if self.is_polyval { "POLYVAL" } else { "GHASH" };
        write!(f, "ghash_tiles {name} of {} bytes at level {}", self.bytes, self.level)?;
        if !self.offset.is_multiple_of(16) {
            write!(f, ", unaligned")?;
        }
        self.aad.map_or(Ok(()), |aad| write!(f, ", GCM with {aad} bytes of associated data"))
    }
}

/// A block of the message, and where its bytes are.
struct Input {
    block: Block,
    buffer: usize,
    start: usize,
    bytes: usize,
}

impl Hash {
    fn blocks(&self) -> usize {
        let blocks = self.bytes.div_ceil(16) + self.aad.map_or(0, |aad| aad.div_ceil(16) + 1);
        (0..self.level).fold(blocks, |blocks, _| blocks.div_ceil(TILE_BLOCKS))
    }

    pub(super) fn tiles(&self) -> usize {
        self.blocks().div_ceil(TILE_BLOCKS)
    }

    /// Where the bytes of a block are: the buffer (0 data, 1 associated data, 2 none, 3 hashes of the level below), the offset and the number.
    fn place(&self, index: usize) -> (usize, usize, usize) {
        if self.level > 0 {
            return (3, 16 * index, 16);
        }
        let aad = self.aad.unwrap_or(0);
        let (buffer, len, start) = match index.checked_sub(aad.div_ceil(16)) {
            None => (1, aad, 16 * index),
            Some(index) if index < self.bytes.div_ceil(16) => (0, self.bytes, 16 * index),
            Some(_) => (2, 0, 0),
        };
        (buffer, start, (len - start).min(16))
    }

    /// Runs the warp of a tile.
    pub(super) fn run(&self, kernel: &Kernel, run: &mut Run, tile: usize) -> Result<(), String> {
        let expressions = &mut Expressions::new();
        let (blocks, tiles) = (self.blocks(), self.tiles());
        let end = blocks - (tiles - 1 - tile) * TILE_BLOCKS;
        let count = end.min(TILE_BLOCKS);
        // At level 0, the last block is multiplied by K, too.
        let extra = u64::from(self.level == 0);
        let is_polyval = self.is_polyval && self.level == 0;
        let state: Block = from_fn(|_| expressions.input(false));
        let stride_block: Block = from_fn(|_| expressions.input(false));
        let stride = Power { element: element(&stride_block, false), exponent: 32 };
        let factor: Block = from_fn(|_| expressions.input(true));
        let steps: Vec<Block> =
            (0..count.div_ceil(32)).map(|_| from_fn(|_| expressions.input(true))).collect();
        let lengths = [8 * self.bytes as u64, 8 * self.aad.unwrap_or(0) as u64];
        let mut inputs: Vec<(u32, Input)> = Vec::new();
        let mut total = vec![Vec::new(); 128];
        for lane in 0..LANES.min(count) {
            let mut horner: Option<(Element, Vec<(usize, u64)>)> = None;
            for distance in (lane..count).step_by(32).rev() {
                let index = end - 1 - distance;
                let (buffer, start, bytes) = self.place(index);
                let mut input = steps[distance / 32];
                input[bytes..].fill([ZERO; 8]);
                inputs.push((lane as u32 + 1, Input { block: input, buffer, start, bytes }));
                let mut added = element(&input, is_polyval);
                if buffer == 2 {
                    // The block of lengths: the low word has the length of the data.
                    let bits = |place: usize| lengths[place / 64] >> (place % 64) & 1;
                    added = from_fn(|place| Expr::from(bits(place) == 1));
                }
                if self.level == 0 && self.aad.is_none() && index == 0 {
                    added = sum(expressions, &added, &element(&state, is_polyval));
                }
                horner = Some(match horner {
                    None => (added, vec![(index, 0)]),
                    Some((before, mut terms)) => {
                        let product = defined_product(expressions, &before, &stride.element);
                        let next = sum(expressions, &product, &added);
                        terms.iter_mut().for_each(|term| term.1 += stride.exponent);
                        terms.push((index, 0));
                        (next, terms)
                    }
                });
            }
            let (last, terms) = horner.expect("a lane below the number of blocks has a block");
            let product = defined_product(expressions, &last, &element(&factor, false));
            let exponent = lane as u64 + extra;
            for (index, power) in terms {
                assert_eq!(power + exponent, (end - 1 - index) as u64 + extra, "the power of the standard");
            }
            for (sum, expr) in total.iter_mut().zip(product) {
                sum.push(expressions.settle(expr, lane as u32 + 1));
            }
        }
        let total: Vec<Bit> = total.iter().map(|bits| expressions.sum_of_owners(bits)).collect();
        let is_only = tiles == 1;
        let reversed = !(is_only && self.is_polyval);
        let right: Vec<Byte> = (0..16)
            .map(|byte| from_fn(|bit| total[8 * if reversed { 15 - byte } else { byte } + bit]))
            .collect();
        let powers = [factor, stride_block];
        let (mut memory, parameters) = self.memory(expressions, &inputs, &state, powers);
        let launch = Launch {
            threads: 128,
            blocks: tiles.div_ceil(4) as u32,
            block: tile as u32 / 4,
            first: tile as u32 % 4 * 32,
            ..Launch::of_warp(&parameters, 0)
        };
        run.warp(kernel, &launch, &mut memory, expressions)?;
        let (name, start) = if is_only { ("the segment", NEXT) } else { ("the output", 16 * tile) };
        for buffer in &memory.buffers {
            let expected = |place| buffer.name == name && (start..start + 16).contains(&place);
            if let Some(place) = (0..buffer.bytes.len()).find(|i| buffer.is_written[*i] != expected(*i)) {
                return Err(format!("byte {place} of {} is written or missing", buffer.name));
            }
        }
        compare("the hash", &memory.buffer(name).bytes[start..start + 16], &right)
    }

    /// The memory and the parameters of a launch. Each byte that is no input of the tile is a symbol with an owner of its own: a hash that
    /// depends on such a byte is not equal to the definition.
    fn memory(
        &self,
        expressions: &mut Expressions,
        inputs: &[(u32, Input)],
        state: &Block,
        [factor, stride]: [Block; 2],
    ) -> (Memory, Vec<u8>) {
        let byte = expressions.input(true);
        let mut owner = LANES as u32;
        let mut others = |len: usize| -> Vec<Byte> {
            let mut other = || {
                owner += 1;
                byte.map(|expr| Bit { expr, owner })
            };
            (0..len).map(|_| other()).collect()
        };
        // Levels above 0 read hashes, and no data.
        let [data, aad] =
            [self.bytes, self.aad.unwrap_or(0)].map(|len| if self.level == 0 { len } else { 0 });
        let mut buffers = [data, aad, 0, 16 * self.blocks()].map(&mut others);
        for (owner, input) in inputs {
            let bytes = owned_bytes(expressions, &input.block[..input.bytes], *owner);
            buffers[input.buffer][input.start..input.start + input.bytes].copy_from_slice(&bytes);
        }
        let mut rows = others(LEVELS * POWERS * 16);
        let row = &mut rows[self.level * POWERS * 16..];
        for lane in 0..LANES {
            let bytes = owned_bytes(expressions, &factor, lane as u32 + 1);
            row[16 * lane..16 * lane + 16].copy_from_slice(&bytes);
        }
        row[16 * LANES..16 * LANES + 16].copy_from_slice(&owned_bytes(expressions, &stride, 0));
        let mut memory = Memory::default();
        let [data, aad, _, hashes] = buffers;
        let data = memory.add("the data", Access::Read, data, self.offset);
        let aad = memory.add("the associated data", Access::Read, aad, self.offset);
        let state = owned_bytes(expressions, state, 0);
        let mut segment = segment(data, 0, self.bytes, 0, &state);
        segment[NEXT..].copy_from_slice(&others(16));
        let segment = memory.add("the segment", Access::Update, segment, 0);
        let numbers = |numbers: &[u64]| {
            public_bytes(numbers.iter().map(|n| n.to_le_bytes()).collect::<Vec<_>>().as_flattened())
        };
        let tiles = self.tiles() as u64;
        let first_tile = memory.add("the first tiles", Access::Read, numbers(&[0, tiles]), 0);
        let first_input =
            memory.add("the first inputs", Access::Read, numbers(&[0, self.blocks() as u64]), 0);
        let hashes = memory.add("the hashes", Access::Read, hashes, 0);
        let output = memory.add("the output", Access::Update, others(16 * tiles as usize), 0);
        let rows = memory.add("the powers", Access::Read, rows, 0);
        // An Extra: the address and the length of the associated data, 16 bytes that this kernel does not use, the address of the data, and
        // again such bytes.
        let mut extra = numbers(&[aad, self.aad.unwrap_or(0) as u64]);
        extra.extend(others(16));
        extra.extend(numbers(&[data]));
        extra.extend(others(24));
        let extra = memory.add("the extra", Access::Read, extra, 0);
        let extra = if self.aad.is_some() { extra } else { 0 };
        let mut parameters = Vec::new();
        for number in [segment, first_tile, first_input, hashes, output, rows, extra, 0, tiles] {
            parameters.extend(number.to_le_bytes());
        }
        for number in [1, self.level as u32, self.is_polyval.into(), 0] {
            parameters.extend(number.to_le_bytes());
        }
        (memory, parameters)
    }
}

#[cfg(test)]
mod tests;
