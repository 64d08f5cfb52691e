//! S-boxes that code computes by circuits of products and sums of bits.
//!
//! A byte is *registered* if the definition has computed its S-box or its inverse S-box. An expression that code computes from the eight bits
//! of a registered byte by sums and products is a function of these bits, whose truth table is known. The functions of eight bits are a vector
//! space. Each byte has a basis of the functions that occur: the constant one, the bits of the byte, the bits of the S-boxes that the definition
//! has computed, and products. A product that is a sum of elements of the basis has the sum of their expressions; any other product is a new
//! atom and an element. If the bits of the byte are independent, each function of it has one expression from then on. If the result of a
//! circuit is the S-box, its expression is that of the definition, in whatever order the circuit and the linear operations before and after it
//! are computed.

use rustc_hash::FxHashMap;

use super::lanes::sum_of_sorted;
use super::table::{Atom, Bit, ONE, Symbol, Table, ZERO};
use super::truth::{Truth, of_sbox, sum, truth};

/// A registered byte.
#[derive(Clone, Default)]
struct Byte {
    /// Sums of the bits of the byte in echelon form: the atoms without the constant one, and the truth table. The last atoms of the rows
    /// differ.
    bits: Vec<(Vec<Atom>, Truth)>,
    /// The expressions of the elements of the basis.
    elements: Vec<Bit>,
    /// Sums of elements in echelon form: the truth table, its lowest bit, and the set of elements.
    rows: Vec<(Truth, usize, Truth)>,
}

impl Byte {
    /// The sum of a function and some elements of the basis, and the set of these elements. The sum is zero if the function is a sum of
    /// elements.
    fn reduced(&self, function: Truth) -> (Truth, Truth) {
        self.rows.iter().fold((function, [0; 4]), |(rest, set), (row, lowest, elements)| {
            let is_added = rest[lowest / 64] >> (lowest % 64) & 1 == 1;
            if is_added { (sum(rest, *row), sum(set, *elements)) } else { (rest, set) }
        })
    }
}

/// The registered bytes, and the atoms that are functions of one of them.
#[derive(Clone, Default)]
pub(super) struct Circuits {
    /// The registered bytes without constants, and their numbers.
    numbers: FxHashMap<Symbol, usize>,
    bytes: Vec<Byte>,
    /// The byte and the truth table of each atom that is an element of a basis.
    elements: FxHashMap<Atom, (usize, Truth)>,
    /// The bytes that have a row of `bits` with this last atom.
    with_last: FxHashMap<Atom, Vec<usize>>,
    /// Expressions that are known to be functions of a byte.
    known: FxHashMap<Bit, (usize, Truth)>,
}

impl Circuits {
    /// Returns the bytes that may determine the value of an expression.
    fn candidates(&self, atoms: &[Atom]) -> Vec<usize> {
        let Some(last) = atoms.last() else { return Vec::new() };
        let owner = self.elements.get(last).map(|(byte, _)| *byte);
        owner.into_iter().chain(self.with_last.get(last).into_iter().flatten().copied()).collect()
    }

    /// The truth table of an expression that is a function of a byte.
    fn function(&self, atoms: &[Atom], byte: usize) -> Option<Truth> {
        let mut function = [0; 4];
        let mut rest = Vec::with_capacity(atoms.len());
        for atom in atoms {
            match self.elements.get(atom) {
                _ if *atom == 0 => function = sum(function, [u64::MAX; 4]),
                Some((owner, truth)) if *owner == byte => function = sum(function, *truth),
                _ => rest.push(*atom),
            }
        }
        while let Some(last) = rest.last() {
            let (row, truth) = self.bytes[byte].bits.iter().find(|(row, _)| row.last() == Some(last))?;
            rest = sum_of_sorted(&rest, row);
            function = sum(function, *truth);
        }
        Some(function)
    }
}

impl Table {
    /// Makes the table recognise S-boxes that are computed by circuits. The definition has to be computed before the code runs.
    pub fn recognise_circuits(&mut self) {
        self.circuits = Some(Circuits::default());
    }

    /// True if the table recognises S-boxes that are computed by circuits.
    pub fn recognises_circuits(&self) -> bool {
        self.circuits.is_some()
    }

    fn circuits(&mut self) -> &mut Circuits {
        self.circuits.as_mut().expect("the table recognises circuits")
    }

    /// Registers a byte and returns its S-box, or its inverse S-box.
    pub(super) fn sub_registered(&mut self, byte: Symbol, inverse: bool) -> Symbol {
        let constants = byte.map(|bit| self.has_constant(bit));
        let bits: Symbol = std::array::from_fn(|bit| self.xor(byte[bit], constants[bit]));
        let constant = constants.iter().rev().fold(0, |value, bit| value << 1 | u8::from(*bit == ONE));
        let number = match self.circuits().numbers.get(&bits) {
            Some(number) => *number,
            None => self.register(bits),
        };
        std::array::from_fn(|bit| self.function_of(number, of_sbox(bit, constant, inverse)))
    }

    /// Registers a byte, whose bits do not contain the constant one.
    fn register(&mut self, bits: Symbol) -> usize {
        let mut byte = Byte::default();
        for (index, bit) in bits.into_iter().enumerate().filter(|(_, bit)| *bit != ZERO) {
            let (mut atoms, mut function) = (self.atoms(bit).to_vec(), truth(|x| x >> index & 1 == 1));
            while let Some((row, added)) = byte.bits.iter().find(|(row, _)| row.last() == atoms.last()) {
                (atoms, function) = (sum_of_sorted(&atoms, row), sum(function, *added));
            }
            if !atoms.is_empty() {
                byte.bits.push((atoms, function));
            }
        }
        let circuits = self.circuits();
        let number = circuits.bytes.len();
        circuits.numbers.insert(bits, number);
        for (atoms, _) in &byte.bits {
            circuits.with_last.entry(atoms[atoms.len() - 1]).or_default().push(number);
        }
        circuits.bytes.push(byte);
        self.add_element(number, [u64::MAX; 4], ONE);
        for (index, bit) in bits.into_iter().enumerate() {
            self.add_element(number, truth(|x| x >> index & 1 == 1), bit);
        }
        number
    }

    /// Adds a function with its expression to the basis, unless it is a sum of elements.
    fn add_element(&mut self, number: usize, function: Truth, bit: Bit) {
        let byte = &mut self.circuits().bytes[number];
        let (rest, mut set) = byte.reduced(function);
        let Some(word) = rest.iter().position(|word| *word != 0) else { return };
        let element = byte.elements.len();
        set[element / 64] ^= 1 << (element % 64);
        byte.elements.push(bit);
        byte.rows.push((rest, 64 * word + rest[word].trailing_zeros() as usize, set));
    }

    /// The expression of a function of a registered byte.
    fn function_of(&mut self, number: usize, function: Truth) -> Bit {
        let byte = &self.circuits().bytes[number];
        let (rest, set) = byte.reduced(function);
        let result = if rest == [0; 4] {
            let is_added = |place: &usize| set[place / 64] >> (place % 64) & 1 == 1;
            let added: Vec<Bit> =
                (0..byte.elements.len()).filter(is_added).map(|i| byte.elements[i]).collect();
            self.sum(&added)
        } else {
            let atom = self.atom();
            let index = self.atoms(atom)[0];
            self.circuits().elements.insert(index, (number, function));
            self.add_element(number, function, atom);
            atom
        };
        self.circuits().known.insert(result, (number, function));
        result
    }

    /// The product of two functions of one registered byte. `None` for other expressions.
    pub(super) fn product_of_functions(&mut self, x: Bit, y: Bit) -> Option<Bit> {
        let circuits = self.circuits.as_ref()?;
        let function_of = |bit: Bit, byte: usize| match circuits.known.get(&bit) {
            Some((known, function)) if *known == byte => Some(*function),
            _ => circuits.function(self.atoms(bit), byte),
        };
        let candidates = match circuits.known.get(&x) {
            Some((byte, _)) => vec![*byte],
            None => circuits.candidates(self.atoms(x)),
        };
        let (byte, functions) = candidates
            .into_iter()
            .find_map(|byte| Some((byte, [function_of(x, byte)?, function_of(y, byte)?])))?;
        for (bit, function) in [x, y].into_iter().zip(functions) {
            self.circuits().known.insert(bit, (byte, function));
        }
        Some(self.function_of(byte, std::array::from_fn(|word| functions[0][word] & functions[1][word])))
    }
}

#[cfg(test)]
mod tests;
