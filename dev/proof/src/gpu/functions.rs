//! A basis of the functions of eight bits that occur.
//!
//! The functions of eight bits are a vector space of dimension 256. The first elements of the basis are the constant one, the eight
//! bits, and the bits of the S-box and of its inverse. Each function that is no sum of elements becomes an element.

use std::collections::HashMap;

use crate::symbols::truth::{Truth, of_sbox, sum, truth};

/// The basis. Element 0 is the constant one, and elements 1 to 8 are the bits.
pub(super) struct Functions {
    elements: Vec<Truth>,
    /// Sums of elements by their lowest bit, with the set of these elements: an echelon form.
    rows: Vec<Option<(Truth, Truth)>>,
    known: HashMap<Truth, Vec<u16>>,
}

impl Functions {
    pub(super) fn new() -> Functions {
        let mut functions = Functions { elements: Vec::new(), rows: vec![None; 256], known: HashMap::new() };
        functions.parts(truth(|_| true));
        for bit in 0..8 {
            functions.parts(truth(|x| x >> bit & 1 == 1));
        }
        for inverse in [false, true] {
            for bit in 0..8 {
                functions.parts(of_sbox(bit, 0, inverse));
            }
        }
        functions
    }

    /// An element of the basis.
    pub(super) fn element(&self, number: u16) -> Truth {
        self.elements[usize::from(number)]
    }

    /// The numbers of the elements whose sum is the function.
    pub(super) fn parts(&mut self, function: Truth) -> Vec<u16> {
        if let Some(parts) = self.known.get(&function) {
            return parts.clone();
        }
        let (mut rest, mut set) = (function, [0; 4]);
        let mut parts = Vec::new();
        while let Some(word) = rest.iter().position(|word| *word != 0) {
            let lowest = 64 * word + rest[word].trailing_zeros() as usize;
            let Some((row, elements)) = self.rows[lowest] else {
                let number = self.elements.len();
                self.elements.push(function);
                set[number / 64] ^= 1 << (number % 64);
                self.rows[lowest] = Some((rest, set));
                parts.push(number as u16);
                break;
            };
            (rest, set) = (sum(rest, row), sum(set, elements));
        }
        if parts.is_empty() {
            parts = (0..256u16).filter(|i| set[usize::from(*i) / 64] >> (i % 64) & 1 == 1).collect();
        }
        self.known.insert(function, parts.clone());
        parts
    }
}
