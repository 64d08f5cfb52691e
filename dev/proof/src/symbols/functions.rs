//! Functions of eight bits as truth tables, and a basis of the functions that occur.
//!
//! The functions of eight bits are a vector space of dimension 256. The first elements of the basis are the constant one, the eight
//! bits, and the bits of the S-box and of its inverse. Each function that is no sum of elements becomes an element.

use std::collections::HashMap;

use crate::aes;

/// A truth table: bit `x` is the value for the input `x`.
pub(crate) type Truth = [u64; 4];

/// The truth table of a function.
pub(crate) fn truth(function: impl Fn(u8) -> bool) -> Truth {
    let mut truth = [0; 4];
    for x in (0..=255).filter(|x| function(*x)) {
        truth[usize::from(x) / 64] |= 1 << (x % 64);
    }
    truth
}

/// The truth table of an output bit of the S-box, or of its inverse, whose input is added to a constant.
pub(crate) fn of_sbox(bit: usize, constant: u8, inverse: bool) -> Truth {
    truth(|x| aes::sub_byte(x ^ constant, inverse) >> bit & 1 == 1)
}

/// The sum of two functions.
pub(crate) fn sum(x: Truth, y: Truth) -> Truth {
    std::array::from_fn(|word| x[word] ^ y[word])
}

/// The basis. Element 0 is the constant one, and elements 1 to 8 are the bits.
#[derive(Clone)]
pub(crate) struct Functions {
    elements: Vec<Truth>,
    /// Sums of elements by their lowest bit, with the set of these elements: an echelon form.
    rows: Vec<Option<(Truth, Truth)>>,
    known: HashMap<Truth, Vec<u16>>,
}

impl Functions {
    pub(crate) fn new() -> Functions {
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
    pub(crate) fn element(&self, number: u16) -> Truth {
        self.elements[usize::from(number)]
    }

    /// The numbers of the elements whose sum is the function.
    pub(crate) fn parts(&mut self, function: Truth) -> Vec<u16> {
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
