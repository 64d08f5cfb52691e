//! The table of expressions.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::ops::Range;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::circuits::Circuits;
use super::lanes::{Lanes, is_modulus, sum_of_sorted};
use crate::aes;

/// An expression: the index of a sum in the table.
pub type Bit = u32;
/// The expressions of the bits of a byte, from the lowest bit.
pub type Symbol = [Bit; 8];
/// The number of an atom. Atom 0 is the constant one.
pub(super) type Atom = u32;

/// The empty sum.
pub const ZERO: Bit = 0;
/// The sum that has only the constant one.
pub const ONE: Bit = 1;

/// The largest number of atoms of a sum of two expressions in a table that recognises circuits. A larger sum becomes a new atom, which
/// differs from all other expressions. Such sums occur if code encrypts blocks that the definition does not have, for example to fill a
/// group of blocks.
/// There is no limit if products of bits are bilinear: sums of integer products, which the definition also has, are longer.
const MOST_ATOMS: usize = 4096;

/// All sums, and the atoms of each operation.
#[derive(Clone)]
pub struct Table {
    /// The atoms of all sums, one sum after the other. The atoms of a sum are in ascending order.
    atoms: Vec<Atom>,
    /// The end of each sum in `atoms`.
    ends: Vec<usize>,
    /// The sums by hash. If the hash of a sum is used by another sum, the sum is stored under the next free number.
    index: FxHashMap<u64, Bit>,
    next: Atom,
    /// The S-box of bytes, and the inverse S-box.
    boxes: [FxHashMap<Symbol, Symbol>; 2],
    /// MixColumns of columns, and its inverse.
    mixed: [FxHashMap<[Symbol; 4], [Symbol; 4]>; 2],
    /// Sums of two expressions.
    sums: FxHashMap<(Bit, Bit), Bit>,
    /// Products of two bits.
    products: FxHashMap<(Bit, Bit), Bit>,
    /// The highest bits of sums of a lane and a constant, which depend on the bits below.
    offsets: FxHashMap<(Vec<Bit>, u64), Bit>,
    /// The lane and the constant of each sum.
    bases: FxHashMap<Vec<Bit>, (Vec<Bit>, u64)>,
    /// Lanes of carry-less products.
    pub(super) lanes: Lanes,
    /// Pairs of blocks that have been multiplied, in the order of the first product.
    multiplied: Vec<[[Symbol; 16]; 2]>,
    are_multiplied: FxHashSet<[[Symbol; 16]; 2]>,
    /// The watched atoms. For each of them, `others` contains the first other expression to which the atom was added, if the sum is not an
    /// input of an S-box.
    watched: Range<Atom>,
    others: BTreeMap<Atom, Bit>,
    /// True if products of two bits are bilinear.
    pub(super) has_bilinear_bits: bool,
    /// The S-boxes that code computes by circuits, if the table recognises them.
    pub(super) circuits: Option<Circuits>,
    scratch: Vec<Atom>,
}

impl Default for Table {
    fn default() -> Self {
        let mut table = Table {
            atoms: Vec::new(),
            ends: Vec::new(),
            index: FxHashMap::default(),
            next: 1,
            boxes: Default::default(),
            mixed: Default::default(),
            sums: FxHashMap::default(),
            products: FxHashMap::default(),
            offsets: FxHashMap::default(),
            bases: FxHashMap::default(),
            lanes: Lanes::default(),
            multiplied: Vec::new(),
            are_multiplied: FxHashSet::default(),
            watched: 0..0,
            others: BTreeMap::new(),
            has_bilinear_bits: false,
            circuits: None,
            scratch: Vec::new(),
        };
        assert_eq!((table.intern(&[]), table.intern(&[0])), (ZERO, ONE));
        table
    }
}

/// The inputs of each output bit of MixColumns of a column, or of its inverse: places among 32 bits.
fn mixing(inverse: bool) -> [Vec<usize>; 32] {
    let mut sources: [Vec<usize>; 32] = Default::default();
    for place in 0..32 {
        let mut column = [0u8; 4];
        column[place / 8] = 1 << (place % 8);
        let mixed = u32::from_le_bytes(aes::mix_column(column, inverse));
        (0..32).filter(|bit| mixed >> bit & 1 == 1).for_each(|bit| sources[bit].push(place));
    }
    sources
}

impl Table {
    /// The atoms of an expression.
    pub(crate) fn atoms(&self, bit: Bit) -> &[Atom] {
        let bit = bit as usize;
        let start = if bit == 0 { 0 } else { self.ends[bit - 1] };
        &self.atoms[start..self.ends[bit]]
    }

    /// The expression with these atoms, which are in ascending order.
    fn intern(&mut self, atoms: &[Atom]) -> Bit {
        let mut hash = FxBuildHasher.hash_one(atoms);
        while let Some(bit) = self.index.get(&hash).copied() {
            if self.atoms(bit) == atoms {
                return bit;
            }
            hash = hash.wrapping_add(1);
        }
        let bit = Bit::try_from(self.ends.len()).expect("less than 2^32 expressions");
        self.atoms.extend_from_slice(atoms);
        self.ends.push(self.atoms.len());
        self.index.insert(hash, bit);
        bit
    }

    /// The expression that is a new atom.
    pub(crate) fn atom(&mut self) -> Bit {
        let atom = self.next;
        self.next = atom.checked_add(1).expect("less than 2^32 atoms");
        self.intern(&[atom])
    }

    /// The number of atoms.
    pub(crate) fn atom_count(&self) -> usize {
        self.next as usize
    }

    /// The number of atoms stored for all sums. An atom is counted once for each sum that contains it.
    pub(crate) fn size(&self) -> usize {
        self.atoms.len()
    }

    /// A byte of eight new atoms: an input, or the result of an operation that the domain does not know.
    pub fn input(&mut self) -> Symbol {
        std::array::from_fn(|_| self.atom())
    }

    /// The sum of two expressions.
    pub fn xor(&mut self, x: Bit, y: Bit) -> Bit {
        match (x, y) {
            (ZERO, other) | (other, ZERO) => other,
            _ if x == y => ZERO,
            _ => {
                let key = (x.min(y), x.max(y));
                if let Some(sum) = self.sums.get(&key) {
                    return *sum;
                }
                let sum = self.raw_sum(x, y);
                self.sums.insert(key, sum);
                sum
            }
        }
    }

    /// The sum of two expressions, from their atoms.
    fn raw_sum(&mut self, x: Bit, y: Bit) -> Bit {
        let atoms = sum_of_sorted(self.atoms(x), self.atoms(y));
        if self.recognises_circuits() && !self.has_bilinear_bits && atoms.len() > MOST_ATOMS {
            return self.atom();
        }
        self.intern(&atoms)
    }

    /// The sum of expressions.
    pub fn sum(&mut self, bits: &[Bit]) -> Bit {
        let mut all = std::mem::take(&mut self.scratch);
        all.clear();
        for bit in bits {
            all.extend_from_slice(self.atoms(*bit));
        }
        // The sums are sorted, which the stable sort uses if they are long.
        if all.len() < 32 {
            all.sort_unstable()
        } else {
            all.sort()
        }
        // Two equal atoms cancel each other.
        let mut kept = 0;
        let mut place = 0;
        while place < all.len() {
            if all.get(place + 1) == Some(&all[place]) {
                place += 2;
            } else {
                all[kept] = all[place];
                (kept, place) = (kept + 1, place + 1);
            }
        }
        let sum = self.intern(&all[..kept]);
        self.scratch = all;
        sum
    }

    /// The product of two expressions.
    pub fn and(&mut self, x: Bit, y: Bit) -> Bit {
        match (x, y) {
            (ZERO, _) | (_, ZERO) => return ZERO,
            (ONE, other) | (other, ONE) => return other,
            _ if x == y => return x,
            _ => {}
        }
        if let Some(product) = self.product_of_functions(x, y) {
            return product;
        }
        // (a + c)(b + d) = ab + ad + bc + cd with constants c and d.
        let (c, d) = (self.has_constant(x), self.has_constant(y));
        let (a, b) = (self.sum(&[x, c]), self.sum(&[y, d]));
        let key = (a.min(b), a.max(b));
        let product = match self.products.get(&key) {
            _ if a == b => a,
            _ if self.has_bilinear_bits => self.bilinear_product(a, b),
            Some(product) => *product,
            None => {
                let product = self.atom();
                self.products.insert(key, product);
                product
            }
        };
        let ad = if d == ONE { a } else { ZERO };
        let bc = if c == ONE { b } else { ZERO };
        self.sum(&[product, ad, bc, c.min(d)])
    }

    /// [`ONE`] if the constant one is in the sum, otherwise [`ZERO`].
    pub(crate) fn has_constant(&self, bit: Bit) -> Bit {
        if self.atoms(bit).first() == Some(&0) { ONE } else { ZERO }
    }

    /// The sum of two numbers and a carry modulo a power of two. `None` if the sum has no expression, because a carry depends on
    /// symbols and both numbers contain symbols.
    pub(super) fn add(&mut self, x: &[Bit], y: &[Bit], carry: bool) -> Option<Vec<Bit>> {
        if let Some(sum) = self.add_by_places(x, y, carry) {
            return Some(sum);
        }
        let is_public = |lane: &[Bit]| lane.iter().all(|bit| *bit <= ONE);
        let (lane, constant) = if is_public(y) { (x, y) } else { (y, x) };
        if !is_public(constant) {
            return None;
        }
        let number = constant.iter().rev().fold(0u64, |number, bit| number << 1 | u64::from(*bit));
        Some(self.add_constant(lane, number.wrapping_add(carry.into())))
    }

    fn add_constant(&mut self, lane: &[Bit], number: u64) -> Vec<Bit> {
        // The constants of repeated additions are added, so that (x + 1) + 1 is x + 2.
        let (base, before) = self.bases.get(lane).cloned().unwrap_or((lane.to_vec(), 0));
        let offset = before.wrapping_add(number) & u64::MAX >> (64 - lane.len());
        if offset == 0 {
            return base;
        }
        // If the lowest bits of the constant are zeros, the same bits of the lane do not change, and the next bit is
        // inverted.
        let kept = offset.trailing_zeros() as usize;
        let mut sum = base[..kept].to_vec();
        sum.push(self.xor(base[kept], ONE));
        for place in kept + 1..base.len() {
            let key = (base[kept..=place].to_vec(), offset >> kept & u64::MAX >> (63 + kept - place));
            let bit = match self.offsets.get(&key) {
                Some(bit) => *bit,
                None => self.atom(),
            };
            self.offsets.insert(key, bit);
            sum.push(bit);
        }
        // The low half of a sum of 64 bits is a sum of 32 bits. Counters have 32 bits.
        if lane.len() == 64 {
            let low = self.add_constant(&lane[..32], number & u64::from(u32::MAX));
            sum[..32].copy_from_slice(&low);
        }
        self.bases.insert(sum.clone(), (base, offset));
        sum
    }

    /// The sum of two numbers and a carry, if at each place the next carry is known to be one of the three bits that
    /// are added there.
    fn add_by_places(&mut self, x: &[Bit], y: &[Bit], carry: bool) -> Option<Vec<Bit>> {
        let (mut sum, mut carry) = (Vec::with_capacity(x.len()), Bit::from(carry));
        for (a, b) in x.iter().copied().zip(y.iter().copied()) {
            sum.push(self.sum(&[a, b, carry]));
            // The next carry is the majority of three bits. If two of them are known to be equal, the majority is their value. If two of
            // them are known to differ, the majority is the third bit.
            let third = [(a, b, carry), (a, carry, b), (b, carry, a)].into_iter().find_map(
                |(x, y, third)| match self.xor(x, y) {
                    ZERO => Some(x),
                    ONE => Some(third),
                    _ => None,
                },
            );
            carry = third?;
        }
        Some(sum)
    }

    /// If `lane` is a sum of another lane and a constant, returns that lane and the constant.
    pub fn base(&self, lane: &[Bit]) -> Option<&(Vec<Bit>, u64)> {
        self.bases.get(lane)
    }

    /// The S-box of AES, or its inverse.
    pub(crate) fn sub_byte(&mut self, byte: Symbol, inverse: bool) -> Symbol {
        use super::Symbols;
        use crate::value::Domain;
        if Symbols::secret(byte) == 0 {
            return Symbols::constant(aes::sub_byte(Symbols::value(byte), inverse));
        }
        if self.circuits.is_some() {
            return self.sub_registered(byte, inverse);
        }
        if self.is_watching() {
            for bit in byte {
                let atoms = self.atoms(bit).to_vec();
                self.others.retain(|atom, _| !atoms.contains(atom));
            }
        }
        if let Some(result) = self.boxes[usize::from(inverse)].get(&byte) {
            return *result;
        }
        let result = self.input();
        self.boxes[usize::from(inverse)].insert(byte, result);
        self.boxes[usize::from(!inverse)].insert(result, byte);
        result
    }

    /// MixColumns of a column, or its inverse.
    pub(crate) fn mix_column(&mut self, column: [Symbol; 4], inverse: bool) -> [Symbol; 4] {
        use std::sync::LazyLock;
        static SOURCES: LazyLock<[[Vec<usize>; 32]; 2]> = LazyLock::new(|| [mixing(false), mixing(true)]);
        if let Some(mixed) = self.mixed[usize::from(inverse)].get(&column) {
            return *mixed;
        }
        let bits = column.as_flattened();
        let mut mixed = [[ZERO; 8]; 4];
        for (bit, sources) in mixed.as_flattened_mut().iter_mut().zip(&SOURCES[usize::from(inverse)]) {
            let terms: Vec<Bit> = sources.iter().map(|place| bits[*place]).collect();
            *bit = self.sum(&terms);
        }
        self.mixed[usize::from(inverse)].insert(column, mixed);
        mixed
    }

    /// The carry-less product of two halves of blocks, which start at the stated bytes. The pair is noted if both blocks
    /// may be factors of a product in a field.
    pub(super) fn carryless(
        &mut self,
        x: &[Symbol; 16],
        y: &[Symbol; 16],
        halves: [usize; 2],
    ) -> [Symbol; 16] {
        let is_public = |block: &[Symbol; 16]| block.as_flattened().iter().all(|bit| *bit <= ONE);
        // Not a factor of a product in a field: a block of symbols whose halves are equal (for Karatsuba's method, both contain
        // the sum of the halves of a factor), and a block with a part of the modulus.
        let is_factor = |block: &[Symbol; 16]| {
            block[..8] != block[8..]
                || is_public(block) && !is_modulus(block.as_flattened().first_chunk().expect("64 bits"))
        };
        let pair = [*x, *y];
        if is_factor(x) && is_factor(y) && !(is_public(x) && is_public(y)) && self.are_multiplied.insert(pair)
        {
            self.multiplied.push(pair);
        }
        let half = |block: &[Symbol; 16], start: usize| -> [Bit; 64] {
            std::array::from_fn(|bit| block[start + bit / 8][bit % 8])
        };
        let product = self.product(&half(x, halves[0]), &half(y, halves[1]));
        std::array::from_fn(|byte| std::array::from_fn(|bit| product[8 * byte + bit]))
    }

    /// The pairs of blocks that have been multiplied.
    pub fn multiplied(&self) -> &[[[Symbol; 16]; 2]] {
        &self.multiplied
    }

    /// Starts to watch new inputs: notes the expressions with which these inputs are compared.
    pub fn watch(&mut self, inputs: &[Symbol]) {
        self.watched = match inputs.as_flattened() {
            [first, .., last] => self.atoms(*first)[0]..self.atoms(*last)[0] + 1,
            _ => 0..0,
        };
        self.others.clear();
    }

    /// The first expression other than a constant that has been added to each of the watched inputs. `None` if an input has no such
    /// expression. Sums that are inputs of an S-box do not count: tags of GCM-SIV are also counters.
    pub fn compared(&self) -> Option<Vec<Symbol>> {
        let others = self.watched.clone().map(|atom| self.others.get(&atom).copied());
        Some(others.collect::<Option<Vec<Bit>>>()?.as_chunks().0.to_vec())
    }

    /// Notes a sum if it contains one of the watched inputs.
    pub(super) fn note(&mut self, sum: Bit) {
        let atoms = self.atoms(sum);
        let start = atoms.partition_point(|atom| *atom < self.watched.start);
        let found: Vec<Atom> =
            atoms[start..].iter().copied().take_while(|atom| *atom < self.watched.end).collect();
        let others = atoms.iter().filter(|atom| **atom != 0).count() - found.len();
        if let ([atom], true) = (&found[..], others > 0)
            && !self.others.contains_key(atom)
        {
            let input = self.intern(&[*atom]);
            let other = self.xor(sum, input);
            self.others.insert(*atom, other);
        }
    }

    /// True if inputs are watched.
    pub(super) fn is_watching(&self) -> bool {
        !self.watched.is_empty()
    }
}

#[cfg(test)]
pub(crate) mod tests;
