//! The bits of keys and data as expressions.
//!
//! An expression is a sum of atoms ([`crate::symbols`]). This module adds three properties, because the code processes many blocks by the
//! same instructions:
//!
//! - **Owners.** A bit is an expression and an owner, such as a block. An atom is either *own* or shared. An own atom, for example a bit of
//!   the data, has another value for each owner. A shared atom, for example a bit of the key, has one value. Blocks that are processed by
//!   the same instructions therefore have the same expressions, which are computed once. A bit without own atoms has owner 0. A sum of bits
//!   of several owners is a list.
//! - **Bytes.** If an atom is a function of the eight bits of a byte, its truth table is stored. The result of an operation on such atoms of
//!   one byte is again a function with a known truth table. If the result of a circuit is the S-box, its expression is therefore that of
//!   the S-box in the definition.
//! - **Names.** An expression that occurs in the definition, such as an input of an S-box, can get an atom as its name. The result of an
//!   operation is replaced by its name, if it has one. This keeps expressions short.
//!
//! An operation whose result is not known in this way gives new atoms. This can only make a proof fail.

use std::collections::{HashMap, HashSet};

use rustc_hash::FxHashMap;

use super::functions::Functions;
use crate::aes;
use crate::symbols::definition::Operations;
use crate::symbols::truth::{Truth, of_sbox, sum};
use crate::symbols::{ONE, Table, ZERO, normal_form};

/// The index of a sum of atoms.
pub(super) type Expr = u32;

/// The owner of sums of bits of several owners. The expression is then the number of a list.
const MANY: u32 = u32::MAX;

/// The value of a bit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Bit {
    pub(super) expr: Expr,
    pub(super) owner: u32,
}

impl Bit {
    pub(super) const fn known(value: bool) -> Bit {
        Bit { expr: value as Expr, owner: 0 }
    }

    pub(super) fn value(self) -> Option<bool> {
        (self.owner == 0 && self.expr <= ONE).then_some(self.expr == ONE)
    }
}

/// Eight bits with functions of them.
struct Byte {
    is_own: bool,
    bits: [Expr; 8],
    /// The atoms of the functions, by their number in the basis.
    functions: HashMap<u16, Expr>,
}

/// The expressions of a proof.
pub(super) struct Expressions {
    table: Table,
    functions: Functions,
    bytes: Vec<Byte>,
    /// The byte whose bits are these expressions.
    by_bits: HashMap<[Expr; 8], u32>,
    /// For each atom: the byte and the function, if it is a function of a byte.
    origins: HashMap<u32, (u32, Truth)>,
    /// For each atom: whether it is own.
    own_atoms: Vec<bool>,
    /// For each expression, as far as needed: 0 not known, 1 shared, 2 with own atoms.
    kinds: Vec<u8>,
    names: FxHashMap<Expr, Bit>,
    /// Equations `sum = 0` that `defined` has made, by the atom that is eliminated. Adding the sum replaces this atom by the other atoms of
    /// the sum. One of them is the new atom.
    relations: FxHashMap<u32, Expr>,
    are_defined: HashSet<u32>,
    logic: FxHashMap<(u8, [Expr; 3]), Bit>,
    views: FxHashMap<Expr, Option<(u32, Truth)>>,
    lists: Vec<Vec<(u32, Expr)>>,
    list_index: HashMap<Vec<(u32, Expr)>, u32>,
    products: HashMap<[[Expr; 32]; 2], [Expr; 63]>,
    /// True if own atoms have been in a factor of a carry-less product.
    has_own_lanes: bool,
}

impl Expressions {
    pub(super) fn new() -> Expressions {
        Expressions {
            table: Table::default(),
            functions: Functions::new(),
            bytes: Vec::new(),
            by_bits: HashMap::new(),
            origins: HashMap::new(),
            own_atoms: vec![false],
            kinds: Vec::new(),
            names: FxHashMap::default(),
            relations: FxHashMap::default(),
            are_defined: HashSet::new(),
            logic: FxHashMap::default(),
            views: FxHashMap::default(),
            lists: Vec::new(),
            list_index: HashMap::new(),
            products: HashMap::new(),
            has_own_lanes: false,
        }
    }

    /// The number of atoms stored for all sums: four bytes each.
    pub(super) fn size(&self) -> usize {
        self.table.size()
    }

    /// Marks the atoms that the last operation has made.
    fn mark_atoms(&mut self, are_own: bool) {
        self.own_atoms.resize(self.table.atom_count(), are_own);
    }

    /// True if the expression has own atoms.
    pub(super) fn is_own(&mut self, expr: Expr) -> bool {
        let index = expr as usize;
        if index >= self.kinds.len() {
            self.kinds.resize(index + 1024, 0);
        }
        if self.kinds[index] == 0 {
            let is_own = self.table.atoms(expr).iter().any(|atom| self.own_atoms[*atom as usize]);
            self.kinds[index] = 1 + u8::from(is_own);
        }
        self.kinds[index] == 2
    }

    /// A new atom.
    pub(super) fn atom(&mut self, is_own: bool) -> Expr {
        let atom = self.table.atom();
        self.mark_atoms(is_own);
        atom
    }

    /// A byte of new atoms.
    pub(super) fn input(&mut self, is_own: bool) -> [Expr; 8] {
        let bits = std::array::from_fn(|_| self.atom(is_own));
        self.add_byte(bits, bits, is_own);
        bits
    }

    fn add_byte(&mut self, key: [Expr; 8], bits: [Expr; 8], is_own: bool) -> u32 {
        let number = self.bytes.len() as u32;
        for (index, bit) in bits.iter().enumerate() {
            let truth = self.functions.element(1 + index as u16);
            self.origins.insert(self.table.atoms(*bit)[0], (number, truth));
        }
        self.bytes.push(Byte { is_own, bits, functions: HashMap::new() });
        self.by_bits.insert(key, number);
        number
    }

    /// The expression without the constant one, and whether it has the constant.
    fn split(&mut self, expr: Expr) -> (Expr, bool) {
        let constant = self.table.has_constant(expr);
        (self.table.xor(expr, constant), constant == ONE)
    }

    /// Makes the atom `name` the value of an expression, for the owner of the name.
    pub(super) fn name(&mut self, expr: Expr, name: Bit) {
        let (rest, has_constant) = self.split(expr);
        if rest == ZERO {
            return;
        }
        assert!(name.owner == 0 || !self.is_own(rest), "a name for one owner is for a shared expression");
        let named = self.xor(name.expr, Expr::from(has_constant));
        self.names.entry(rest).or_insert(Bit { expr: named, owner: name.owner });
    }

    /// Makes a new atom that is equal to an expression, and returns it. In results of later operations, the new atom and the other atoms of
    /// the expression replace one atom of the expression. If all atoms of the expression were made by this function, returns the expression.
    pub(super) fn defined(&mut self, expr: Expr) -> Expr {
        let raw = self.reduced(expr);
        let is_own = self.is_own(raw);
        let replaced = self.table.atoms(raw).iter().rev().copied().find(|atom| {
            *atom != 0 && self.own_atoms[*atom as usize] == is_own && !self.are_defined.contains(atom)
        });
        let Some(replaced) = replaced else { return raw };
        let name = self.atom(is_own);
        self.are_defined.insert(self.table.atoms(name)[0]);
        let relation = self.table.xor(raw, name);
        self.relations.insert(replaced, relation);
        name
    }

    /// The expression after the replacements that `defined` has introduced.
    fn reduced(&mut self, mut expr: Expr) -> Expr {
        while let Some(relation) =
            self.table.atoms(expr).iter().rev().find_map(|atom| self.relations.get(atom)).copied()
        {
            expr = self.table.xor(expr, relation);
        }
        expr
    }

    /// The name of the result of an operation, if it has one.
    fn name_of(&mut self, mut expr: Expr) -> Bit {
        if !self.relations.is_empty() {
            expr = self.reduced(expr);
        }
        let (rest, has_constant) = self.split(expr);
        match self.names.get(&rest).copied() {
            Some(name) => Bit { expr: self.xor(name.expr, Expr::from(has_constant)), owner: name.owner },
            None => Bit { expr, owner: 0 },
        }
    }

    /// The expression of a function of a byte.
    pub(super) fn function(&mut self, byte: u32, function: Truth) -> Expr {
        let parts = self.functions.parts(function);
        let mut terms = Vec::with_capacity(parts.len());
        for part in parts {
            let known = &self.bytes[byte as usize];
            terms.push(match part {
                0 => ONE,
                1..=8 => known.bits[usize::from(part) - 1],
                _ if known.functions.contains_key(&part) => known.functions[&part],
                _ => {
                    let is_own = known.is_own;
                    let atom = self.atom(is_own);
                    let origin = (byte, self.functions.element(part));
                    self.origins.insert(self.table.atoms(atom)[0], origin);
                    self.bytes[byte as usize].functions.insert(part, atom);
                    atom
                }
            });
        }
        self.table.sum(&terms)
    }

    /// The expression is a function of one byte: the byte, and the function.
    pub(super) fn view(&mut self, expr: Expr) -> Option<(u32, Truth)> {
        if let Some(view) = self.views.get(&expr) {
            return *view;
        }
        let mut view: Option<(u32, Truth)> = None;
        let (mut constant, mut is_function) = ([0; 4], true);
        for atom in self.table.atoms(expr) {
            match (self.origins.get(atom), &mut view) {
                (None, _) if *atom == 0 => constant = [u64::MAX; 4],
                (Some((byte, truth)), Some(view)) if view.0 == *byte => view.1 = sum(view.1, *truth),
                (Some(origin), None) => view = Some(*origin),
                _ => is_function = false,
            }
        }
        let view = view.filter(|_| is_function).map(|(byte, truth)| (byte, sum(truth, constant)));
        self.views.insert(expr, view);
        view
    }

    /// The product of up to three expressions.
    fn product(&mut self, factors: &[Expr]) -> Expr {
        if factors.contains(&ZERO) {
            return ZERO;
        }
        if let [first, second] = *factors
            && let (Some(x), Some(y)) = (self.view(first), self.view(second))
            && x.0 == y.0
        {
            return self.function(x.0, std::array::from_fn(|word| x.1[word] & y.1[word]));
        }
        match factors {
            [] => ONE,
            [one] => *one,
            [first, rest @ ..] => {
                let rest = self.product(rest);
                let is_own = factors.iter().any(|factor| self.is_own(*factor));
                let product = self.table.and(*first, rest);
                self.mark_atoms(is_own);
                product
            }
        }
    }

    /// A function of three expressions of the same owner; the value for a, b and c is bit 4a + 2b + c of `table`. The owner of the result is
    /// 0 unless the result has a name of another owner.
    pub(super) fn function_of(&mut self, table: u8, inputs: [Expr; 3]) -> Bit {
        if let Some(result) = self.logic.get(&(table, inputs)) {
            return *result;
        }
        let sum = match self.function_of_byte(table, inputs) {
            Some(function) => function,
            None => self.sum_of_products(table, inputs),
        };
        let result = self.name_of(sum);
        self.logic.insert((table, inputs), result);
        result
    }

    /// The result if the function is not affine and all inputs are functions of one byte; otherwise `None`.
    fn function_of_byte(&mut self, table: u8, inputs: [Expr; 3]) -> Option<Expr> {
        if is_affine(normal_form(table)) {
            return None;
        }
        let mut byte = None;
        let mut truths = [[0; 4]; 3];
        for (truth, input) in truths.iter_mut().zip(inputs) {
            if input <= ONE {
                *truth = [0u64.wrapping_sub(input.into()); 4];
                continue;
            }
            let view = self.view(input)?;
            if *byte.get_or_insert(view.0) != view.0 {
                return None;
            }
            *truth = view.1;
        }
        let mut result = [0; 4];
        for term in (0..8usize).filter(|term| table >> term & 1 == 1) {
            for (word, value) in result.iter_mut().enumerate() {
                let input =
                    |i: usize| if term >> (2 - i) & 1 == 1 { truths[i][word] } else { !truths[i][word] };
                *value |= input(0) & input(1) & input(2);
            }
        }
        Some(self.function(byte?, result))
    }

    fn sum_of_products(&mut self, table: u8, inputs: [Expr; 3]) -> Expr {
        let coefficients = normal_form(table);
        let mut terms = Vec::new();
        for term in (0..8u8).filter(|term| coefficients >> term & 1 == 1) {
            let factors = (0..3).filter(|i| term >> (2 - i) & 1 == 1).map(|i| inputs[i]);
            let factors: Vec<Expr> = factors.filter(|factor| *factor != ONE).collect();
            terms.push(self.product(&factors));
        }
        self.table.sum(&terms)
    }

    /// A function of three bits.
    pub(super) fn logic(&mut self, table: u8, bits: [Bit; 3]) -> Bit {
        if let Some(owner) = common_owner(&bits) {
            let result = self.function_of(table, bits.map(|bit| bit.expr));
            return self.owned(result, owner);
        }
        let (table, bits) = restricted(table, bits);
        if let Some(owner) = common_owner(&bits) {
            let result = self.function_of(table, bits.map(|bit| bit.expr));
            return self.owned(result, owner);
        }
        let form = normal_form(table);
        if is_affine(form) {
            let linear = (0..3).filter(|i| form >> (4 >> i) & 1 == 1).map(|i| bits[i]);
            let terms: Vec<Bit> = linear.chain([Bit::known(form & 1 == 1)]).collect();
            return self.sum_of_owners(&terms);
        }
        self.unknown()
    }

    /// The bit with an expression and an owner, or its name.
    pub(super) fn settle(&mut self, expr: Expr, owner: u32) -> Bit {
        let result = self.name_of(expr);
        self.owned(result, owner)
    }

    /// The bit with an owner, if it has own atoms.
    pub(super) fn owned(&mut self, result: Bit, owner: u32) -> Bit {
        if result.owner == 0 && owner != 0 && self.is_own(result.expr) {
            return Bit { expr: result.expr, owner };
        }
        result
    }

    /// An unknown bit.
    pub(super) fn unknown(&mut self) -> Bit {
        Bit { expr: self.atom(false), owner: 0 }
    }

    /// The sum of bits of any owners.
    pub(super) fn sum_of_owners(&mut self, bits: &[Bit]) -> Bit {
        let mut terms: Vec<(u32, Expr)> = Vec::new();
        for bit in bits {
            let parts = match bit.owner {
                MANY => self.lists[bit.expr as usize].clone(),
                owner => vec![(owner, bit.expr)],
            };
            for (owner, expr) in parts {
                match terms.binary_search_by_key(&owner, |term| term.0) {
                    Ok(place) => terms[place].1 = self.xor(terms[place].1, expr),
                    Err(place) => terms.insert(place, (owner, expr)),
                }
            }
        }
        terms.retain(|term| term.1 != ZERO);
        match terms[..] {
            [] => Bit::default(),
            [(owner, expr)] => self.settle(expr, owner),
            [(0, shared), (owner, expr)] => {
                let sum = self.xor(shared, expr);
                self.settle(sum, owner)
            }
            _ => {
                let number = self.lists.len() as u32;
                let expr = *self.list_index.entry(terms.clone()).or_insert(number);
                if expr == number {
                    self.lists.push(terms);
                }
                Bit { expr, owner: MANY }
            }
        }
    }

    /// The carry-less product of two words. The coefficients to which no two bits contribute are zeros.
    pub(super) fn carryless(&mut self, x: [Expr; 32], y: [Expr; 32]) -> [Expr; 63] {
        if let Some(product) = self.products.get(&[x, y]) {
            return *product;
        }
        let is_own = x.iter().chain(&y).any(|bit| self.is_own(*bit));
        let is_known = |word: &[Expr; 32]| word.iter().all(|bit| *bit <= ONE);
        let mut terms: [Vec<Expr>; 63] = std::array::from_fn(|_| Vec::new());
        for (i, a) in x.iter().enumerate().filter(|(_, a)| **a != ZERO) {
            for (j, b) in y.iter().enumerate().filter(|(_, b)| **b != ZERO) {
                terms[i + j].push(if *a == ONE { *b } else { *a });
            }
        }
        let product: [Expr; 63] = if is_known(&x) || is_known(&y) {
            std::array::from_fn(|place| self.table.sum(&terms[place]))
        } else if !is_own && self.has_own_lanes {
            // The basis of lanes has own atoms, so the atoms of the product would not be known to be shared.
            std::array::from_fn(|_| self.atom(false))
        } else {
            self.has_own_lanes |= is_own;
            let lane = |word: [Expr; 32]| std::array::from_fn(|bit| word.get(bit).copied().unwrap_or(ZERO));
            let product = self.table.product(&lane(x), &lane(y));
            self.mark_atoms(is_own);
            std::array::from_fn(|place| if terms[place].is_empty() { ZERO } else { product[place] })
        };
        self.products.insert([x, y], product);
        product
    }
}

impl Operations for Expressions {
    fn xor(&mut self, x: Expr, y: Expr) -> Expr {
        self.table.xor(x, y)
    }

    fn sum(&mut self, terms: &[Expr]) -> Expr {
        self.table.sum(terms)
    }

    /// The S-box of a byte, or its inverse. If necessary, the bits of the byte get names.
    fn sub_byte(&mut self, byte: [Expr; 8], inverse: bool) -> [Expr; 8] {
        let mut constant = 0;
        let bits: [Expr; 8] = std::array::from_fn(|index| {
            let (rest, has_constant) = self.split(byte[index]);
            constant |= u8::from(has_constant) << index;
            rest
        });
        if bits.iter().all(|bit| *bit == ZERO) {
            let value = aes::sub_byte(constant, inverse);
            return std::array::from_fn(|bit| Expr::from(value >> bit & 1));
        }
        let number = match self.by_bits.get(&bits) {
            Some(number) => *number,
            None => {
                let is_own = bits.iter().any(|bit| self.is_own(*bit));
                let names: [Expr; 8] = std::array::from_fn(|_| self.atom(is_own));
                for (bit, name) in bits.iter().zip(names) {
                    self.name(*bit, Bit { expr: name, owner: 0 });
                }
                self.add_byte(bits, names, is_own)
            }
        };
        std::array::from_fn(|bit| self.function(number, of_sbox(bit, constant, inverse)))
    }

    fn settled(&mut self, bit: Expr) -> Expr {
        self.settle(bit, 0).expr
    }
}

/// True if a normal form has no product of two or three inputs.
fn is_affine(form: u8) -> bool {
    form & 0b1110_1000 == 0
}

/// The owner of the result of an operation on bits; `None` if they have several owners.
pub(super) fn common_owner(bits: &[Bit; 3]) -> Option<u32> {
    let mut owner = 0;
    for bit in bits {
        if bit.owner == MANY || bit.owner != 0 && owner != 0 && bit.owner != owner {
            return None;
        }
        owner = owner.max(bit.owner);
    }
    Some(owner)
}

/// The same function, in which constants have been inserted, and inputs without influence are zeros.
fn restricted(mut table: u8, mut bits: [Bit; 3]) -> (u8, [Bit; 3]) {
    for (i, bit) in bits.iter_mut().enumerate() {
        let weight = 4 >> i;
        let mask = [0x0f, 0x33, 0x55][i];
        let (zero, one) = (table & mask, table >> weight & mask);
        let kept = match bit.value() {
            Some(false) => zero,
            Some(true) => one,
            None if zero == one => zero,
            None => continue,
        };
        (table, *bit) = (kept | kept << weight, Bit::default());
    }
    (table, bits)
}

#[cfg(test)]
pub(super) mod tests;
