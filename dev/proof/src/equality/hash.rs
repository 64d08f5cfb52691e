//! GHASH and POLYVAL: blocks of 16 bytes as polynomials in the hash key.
//!
//! Blocks are elements of the field of POLYVAL (RFC 8452, section 3), and the product of two blocks is `dot`. GHASH is POLYVAL with
//! reversed blocks and a key that is multiplied by x (RFC 8452, appendix A).
//!
//! A [`Meaning`] is a sum of terms X * K^e, where X is an input block or the constant one, and K is the key. The product of two blocks
//! whose meaning is known has a known meaning, since `dot` is commutative, associative and bilinear. The value of any other block is a
//! linear combination of such products and inputs, or has no known meaning.

use std::cell::RefCell;
use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::cipher::{Block, times_x};
use crate::symbols::definition::{self, POLYVAL, divided_by_x, reduced};
use crate::symbols::{Bit, ONE, Place, Symbols, Table, ZERO, places, sum_of_sorted};

/// A sum of terms. Each term is the number of an input block, or 0 for the constant one, and the exponent of the key.
pub(super) type Meaning = BTreeSet<(u32, u32)>;

/// Adds terms modulo two.
fn add(meaning: &mut Meaning, terms: &Meaning) {
    for term in terms {
        if !meaning.remove(term) {
            meaning.insert(*term);
        }
    }
}

/// The product of two meanings; `None` if the result contains a product of two input blocks.
fn times(x: &Meaning, y: &Meaning) -> Option<Meaning> {
    let mut product = Meaning::new();
    for (a, d) in x {
        for (b, e) in y {
            if *a != 0 && *b != 0 {
                return None;
            }
            add(&mut product, &Meaning::from([(a + b, d + e)]));
        }
    }
    Some(product)
}

/// A half of a block.
fn half(block: &Block, half: usize) -> [Bit; 64] {
    std::array::from_fn(|bit| block.as_flattened()[64 * half + bit])
}

/// `dot` (RFC 8452, section 3).
fn dot(table: &mut Table, x: &Block, y: &Block) -> [Bit; 128] {
    let mut terms: [Vec<Bit>; 256] = std::array::from_fn(|_| Vec::new());
    for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let product = table.product(&half(x, a), &half(y, b));
        for (place, bit) in product.into_iter().enumerate() {
            terms[64 * (a + b) + place].push(bit);
        }
    }
    reduced(table, terms)
}

/// The product of a block and a key, times x^-127, from the products by which `cpu/soft` computes it: of the bits of 64-bit halves whose
/// numbers have the same remainder modulo four, and of each of the four highest bits of a half of the key.
fn product_by_parts(table: &mut Table, block: &Block, key: &Block) -> [Bit; 128] {
    let part = |lane: &[Bit; 64], remainder: usize, end: usize| -> [Bit; 64] {
        std::array::from_fn(|bit| if bit % 4 == remainder && bit < end { lane[bit] } else { ZERO })
    };
    let mut terms: [Vec<Bit>; 256] = std::array::from_fn(|_| Vec::new());
    for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let (x, y) = (half(block, a), half(key, b));
        let first = 64 * (a + b) + 1;
        for (i, j) in (0..16).map(|pair| (pair / 4, pair % 4)) {
            let product = table.product(&part(&x, i, 64), &part(&y, j, 60));
            (0..128)
                .filter(|place| product[*place] != ZERO)
                .for_each(|place| terms[first + place].push(product[place]));
        }
        for (i, j) in (0..64).flat_map(|i| (60..64).map(move |j| (i, j))) {
            terms[first + i + j].push(table.and(x[i], y[j]));
        }
    }
    reduced(table, terms)
}

/// The blocks whose meaning is known, in echelon form.
#[derive(Default)]
struct Known {
    rows: FxHashMap<Place, (Vec<Place>, Meaning)>,
    /// The meaning of blocks that have been looked up.
    found: RefCell<FxHashMap<Vec<Bit>, Meaning>>,
    /// The index of a bit that is not compared.
    ignored: Option<usize>,
}

impl Known {
    fn reduced(&self, table: &Table, bits: &[Bit]) -> (Vec<Place>, Meaning) {
        let kept =
            bits.iter().enumerate().map(|(place, bit)| if self.ignored == Some(place) { ZERO } else { *bit });
        let (mut rest, mut meaning) = (places(table, kept), Meaning::new());
        while let Some((row, terms)) = rest.last().and_then(|last| self.rows.get(last)) {
            rest = sum_of_sorted(&rest, row);
            add(&mut meaning, terms);
        }
        (rest, meaning)
    }

    fn insert(&mut self, table: &Table, bits: &[Bit], mut meaning: Meaning) {
        let (rest, terms) = self.reduced(table, bits);
        add(&mut meaning, &terms);
        if let Some(last) = rest.last() {
            self.rows.insert(*last, (rest, meaning));
        }
    }

    fn meaning(&self, table: &Table, bits: &[Bit]) -> Option<Meaning> {
        if let Some(meaning) = self.found.borrow().get(bits) {
            return Some(meaning.clone());
        }
        let (rest, meaning) = self.reduced(table, bits);
        let meaning = rest.is_empty().then_some(meaning)?;
        self.found.borrow_mut().insert(bits.to_vec(), meaning.clone());
        Some(meaning)
    }
}

/// A hash that a run has computed: the key, the input blocks and the result, as elements of the field of POLYVAL.
pub(super) struct Hashed<'a> {
    /// The symbols of the run. Their table contains the pairs of blocks that the run has multiplied.
    pub(super) symbols: &'a Symbols,
    /// The key, which is multiplied once for each block.
    pub(super) key: Block,
    /// The input blocks. The hash state before the input is a part of the first block.
    pub(super) blocks: &'a [Block],
    /// The result.
    pub(super) result: Block,
    /// A bit of the result that is not compared.
    pub(super) ignored: Option<usize>,
}

impl Hashed<'_> {
    /// True if the result is that of Horner's rule with these products by the key.
    fn is_computed_by(
        &self,
        table: &mut Table,
        times_key: impl Fn(&mut Table, &Block) -> [Bit; 128],
    ) -> bool {
        let state = self.blocks.iter().fold([ZERO; 128], |state, block| {
            let state: &Block = state.as_chunks().0.first_chunk().expect("16 bytes");
            let sum = definition::add(table, state, block);
            times_key(table, &sum)
        });
        let is_same = |place: usize| state[place] == self.result.as_flattened()[place];
        (0..128).all(|place| self.ignored == Some(place) || is_same(place))
    }

    /// Like [`is_right`](Self::is_right), for `cpu/soft`, which multiplies integers and hashes one block after the other.
    pub(super) fn is_right_by_integers(&self) -> bool {
        let table = &mut *self.symbols.table();
        let key = divided_by_x(table, self.key.as_flattened().first_chunk().expect("128 bits"));
        let key = key.as_chunks().0.first_chunk().expect("16 bytes");
        self.is_computed_by(table, |table, block| product_by_parts(table, block, key))
    }

    /// True if, for all values of the symbols, the result is the sum of all blocks, each multiplied by the power of the key
    /// that the definition states.
    pub(super) fn is_right(&self) -> bool {
        let table = &mut *self.symbols.table();
        if self.key.as_flattened().iter().all(|bit| *bit <= ONE) {
            // The products of a public key have expressions, so the definition can be computed.
            return self.is_computed_by(table, |table, block| dot(table, block, &self.key));
        }
        let mut known = Known::default();
        let mut all: Vec<(Vec<Bit>, Meaning)> = Vec::new();
        let mut insert = |known: &mut Known, table: &Table, bits: &[Bit], meaning: Meaning| {
            known.insert(table, bits, meaning.clone());
            all.push((bits.to_vec(), meaning));
        };
        insert(&mut known, table, self.key.as_flattened(), Meaning::from([(0, 1)]));
        for (number, block) in (1..).zip(self.blocks) {
            // If a block is a sum of known blocks, its meaning follows from their meanings.
            if known.meaning(table, block.as_flattened()).is_none() {
                insert(&mut known, table, block.as_flattened(), Meaning::from([(number, 0)]));
            }
        }
        for [a, b] in table.multiplied().to_vec() {
            let meaning = |block: &Block| known.meaning(table, block.as_flattened());
            let Some((x, y)) = meaning(&a).zip(meaning(&b)) else { continue };
            let Some(meaning) = times(&x, &y) else { continue };
            let product = dot(table, &a, &b);
            insert(&mut known, table, &product, meaning);
        }
        let mut expected = Meaning::new();
        for (place, block) in self.blocks.iter().enumerate() {
            let terms = known.meaning(table, block.as_flattened()).expect("all blocks are known");
            let power = Meaning::from([(0, (self.blocks.len() - place) as u32)]);
            add(&mut expected, &times(&terms, &power).expect("a power has no block"));
        }
        if self.ignored.is_some() {
            known = Known { ignored: self.ignored, ..Known::default() };
            all.into_iter().for_each(|(bits, meaning)| known.insert(table, &bits, meaning));
        }
        known.meaning(table, self.result.as_flattened()) == Some(expected)
    }
}

/// A block as an element of the field of POLYVAL: GHASH reverses it (RFC 8452, appendix A).
pub(super) fn reversed(block: &Block) -> Block {
    let mut reversed = *block;
    reversed.reverse();
    reversed
}

/// mulX_POLYVAL(ByteReverse(H)): the key with which POLYVAL computes GHASH (RFC 8452, appendix A).
pub(super) fn ghash_key(symbols: &Symbols, h: &Block) -> Block {
    times_x(symbols, &reversed(h), &POLYVAL)
}

#[cfg(test)]
mod tests;
