//! AES and its modes on symbols, as the standards define them.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

pub(super) use crate::symbols::definition::Block;
use crate::symbols::{Bit, Symbol, Symbols, definition};
use crate::value::Domain;

/// Public bytes.
pub(super) fn public(bytes: &[u8]) -> Vec<Symbol> {
    bytes.iter().map(|byte| Symbols::constant(*byte)).collect()
}

/// The first 16 bytes.
pub(super) fn block(bytes: &[Symbol]) -> Block {
    *bytes.first_chunk().expect("16 bytes")
}

/// The bits of bytes, from the highest bit of the first byte.
pub(super) fn bits_of(bytes: &[Symbol]) -> Vec<Bit> {
    bytes.iter().flat_map(|byte| byte.iter().rev().copied()).collect()
}

/// The bytes with these bits.
pub(super) fn bytes_of(bits: &[Bit]) -> Vec<Symbol> {
    bits.as_chunks::<8>().0.iter().map(|byte| std::array::from_fn(|bit| byte[7 - bit])).collect()
}

/// The XOR of two lists of bytes. The result is as long as the shorter list.
pub(super) fn xor(symbols: &Symbols, x: &[Symbol], y: &[Symbol]) -> Vec<Symbol> {
    let mut domain = symbols.clone();
    x.iter().zip(y).map(|(x, y)| domain.xor(*x, *y)).collect()
}

/// The XOR of two blocks.
pub(super) fn xor_blocks(symbols: &Symbols, x: &Block, y: &Block) -> Block {
    definition::add(&mut *symbols.table(), x, y)
}

/// The bytes, padded with zeros to a whole number of blocks.
pub(super) fn zero_padded(bytes: &[Symbol]) -> Vec<Symbol> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(16), Symbols::constant(0));
    padded
}

/// `cpu/soft` fills groups of blocks with blocks of this byte (`SPARE_BYTE` in `engine/cpu/src/soft/passes.rs`). Their results are not used,
/// but without expressions in terms of the S-box they would be sums of very many atoms.
const SPARE_BYTE: u8 = 0x5a;

/// AES with a key of symbols (FIPS 197).
pub(super) struct Cipher {
    symbols: Symbols,
    round_keys: Vec<Block>,
    decryption_keys: OnceCell<Vec<Block>>,
    /// Results of the inverse cipher and of the cipher. They are stored because many messages have blocks in common.
    known: RefCell<[HashMap<Block, Block>; 2]>,
}

impl Cipher {
    /// The key expansion (FIPS 197, 5.2).
    pub(super) fn new(symbols: &Symbols, key: &[Symbol]) -> Cipher {
        let round_keys = definition::round_keys(&mut *symbols.table(), key);
        let cipher = Cipher {
            symbols: symbols.clone(),
            round_keys,
            decryption_keys: OnceCell::new(),
            known: RefCell::default(),
        };
        if symbols.table().recognises_circuits() {
            for encrypts in [true, false] {
                cipher.apply(&block(&public(&[SPARE_BYTE; 16])), encrypts);
            }
        }
        cipher
    }

    /// The cipher with the same key, which uses a copy of the table of symbols.
    pub(super) fn fork(&self, symbols: &Symbols) -> Cipher {
        let (round_keys, decryption_keys) = (self.round_keys.clone(), self.decryption_keys.clone());
        Cipher { symbols: symbols.clone(), round_keys, decryption_keys, known: RefCell::default() }
    }

    /// The symbols of the key.
    pub(super) fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Encrypts or decrypts a block.
    pub(super) fn apply(&self, input: &Block, encrypts: bool) -> Block {
        let known = self.known.borrow()[usize::from(encrypts)].get(input).copied();
        known.unwrap_or_else(|| {
            let table = &mut *self.symbols.table();
            let output = if encrypts {
                definition::encrypt(table, &self.round_keys, input)
            } else {
                let keys =
                    self.decryption_keys.get_or_init(|| definition::decryption_keys(table, &self.round_keys));
                definition::decrypt(table, keys, input)
            };
            let mut known = self.known.borrow_mut();
            known[usize::from(encrypts)].insert(*input, output);
            known[usize::from(!encrypts)].insert(output, *input);
            output
        })
    }

    /// Encrypts a block.
    pub(super) fn encrypt(&self, input: &[Symbol]) -> Block {
        self.apply(&block(input), true)
    }

    /// ECB of whole blocks (SP 800-38A, 6.1).
    pub(super) fn ecb(&self, data: &[Symbol], encrypts: bool) -> Vec<Symbol> {
        data.as_chunks().0.iter().flat_map(|input| self.apply(input, encrypts)).collect()
    }

    /// CTR (SP 800-38A, 6.5) with the standard incrementing function (B.1). The counter consists of the last 16 or 4 bytes of the block
    /// or, in GCM-SIV, of the first four bytes in little-endian order (RFC 8452, section 4).
    pub(super) fn ctr(&self, counter: &Block, count: Counter, data: &[Symbol]) -> Vec<Symbol> {
        let mut counter = *counter;
        let mut result = Vec::with_capacity(data.len());
        for chunk in data.chunks(16) {
            result.extend(xor(&self.symbols, chunk, &self.encrypt(&counter)));
            counter = count.after(&self.symbols, &counter, 1);
        }
        result
    }

    /// CBC of whole blocks (SP 800-38A, 6.2).
    pub(super) fn cbc(&self, iv: &Block, data: &[Symbol], encrypts: bool) -> Vec<Symbol> {
        let mut last = *iv;
        let each = |input: &Block| {
            if encrypts {
                last = self.encrypt(&xor(&self.symbols, input, &last));
                return last;
            }
            xor_blocks(&self.symbols, &self.apply(input, false), &std::mem::replace(&mut last, *input))
        };
        data.as_chunks().0.iter().flat_map(each).collect()
    }

    /// CBC-MAC of whole blocks (SP 800-38C, 6.1, step 3), from a state.
    pub(super) fn cbc_mac(&self, state: &Block, data: &[Symbol]) -> Block {
        let add = |state: Block, block| self.encrypt(&xor_blocks(&self.symbols, &state, block));
        data.as_chunks().0.iter().fold(*state, add)
    }

    /// The data of a message of CCM (SP 800-38C, 6.1 and 6.2), followed by the tag. `mac` is the input block of the CBC-MAC before the
    /// data, and `counter` is the counter block that masks the tag.
    pub(super) fn ccm(&self, mac: &Block, counter: &Block, data: &[Symbol], encrypts: bool) -> Vec<Symbol> {
        let first = Counter::Whole.after(&self.symbols, counter, 1);
        let mut result = self.ctr(&first, Counter::Whole, data);
        let tag = self.cbc_mac(&self.encrypt(mac), &zero_padded(if encrypts { data } else { &result }));
        result.extend(xor_blocks(&self.symbols, &tag, &self.encrypt(counter)));
        result
    }

    /// CFB with segments of `size` bits, 128, 8 or 1 (SP 800-38A, 6.3). The last segment may be shorter.
    pub(super) fn cfb(&self, iv: &Block, data: &[Symbol], size: usize, encrypts: bool) -> Vec<Symbol> {
        let (mut register, mut result) = (bits_of(iv), Vec::new());
        for segment in bits_of(data).chunks(size) {
            let keystream = bits_of(&self.encrypt(&bytes_of(&register)));
            let mut table = self.symbols.table();
            let output: Vec<Bit> = segment.iter().zip(&keystream).map(|(x, y)| table.xor(*x, *y)).collect();
            register.drain(..segment.len());
            register.extend(if encrypts { &output } else { segment });
            result.extend(output);
        }
        if self.symbols.table().recognises_circuits() {
            // In decryption, `cpu/soft` also encrypts the last block of ciphertext if the last group of blocks is not full.
            self.encrypt(&bytes_of(&register));
        }
        bytes_of(&result)
    }

    /// OFB (SP 800-38A, 6.4).
    pub(super) fn ofb(&self, iv: &Block, data: &[Symbol]) -> Vec<Symbol> {
        let mut register = *iv;
        let each = |chunk: &[Symbol]| {
            register = self.encrypt(&register);
            xor(&self.symbols, chunk, &register)
        };
        data.chunks(16).flat_map(each).collect()
    }

    /// PCBC of whole blocks (Kerberos 4): the chaining value is the sum of the last plaintext and ciphertext.
    pub(super) fn pcbc(&self, iv: &Block, data: &[Symbol], encrypts: bool) -> Vec<Symbol> {
        let mut chained = *iv;
        let each = |input: &Block| {
            let output = if encrypts {
                self.encrypt(&xor(&self.symbols, input, &chained))
            } else {
                xor_blocks(&self.symbols, &self.apply(input, false), &chained)
            };
            chained = xor_blocks(&self.symbols, input, &output);
            output
        };
        data.as_chunks().0.iter().flat_map(each).collect()
    }

    /// XTS of whole blocks (IEEE 1619, 5.3.1 and 5.4.1). The tweak is already encrypted.
    pub(super) fn xts(&self, tweak: &Block, data: &[Symbol], encrypts: bool) -> Vec<Symbol> {
        let mut tweak = *tweak;
        let each = |input: &Block| {
            let masked = xor_blocks(&self.symbols, input, &tweak);
            let output = xor_blocks(&self.symbols, &self.apply(&masked, encrypts), &tweak);
            tweak = times_alpha(&self.symbols, &tweak);
            output
        };
        data.as_chunks().0.iter().flat_map(each).collect()
    }
}

/// The counter in a block of CTR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Counter {
    /// The whole block in big-endian order.
    Whole,
    /// The last four bytes in big-endian order.
    Last32,
    /// The first four bytes in little-endian order.
    First32,
}

impl Counter {
    /// The counter block after a number of increments.
    pub(super) fn after(self, symbols: &Symbols, counter: &Block, blocks: usize) -> Block {
        let mut next = *counter;
        match self {
            Counter::First32 => {
                let before = block(&next);
                let amount = (blocks as u32).to_le_bytes().map(Symbols::constant);
                let none = crate::value::Flag::new(false, false);
                symbols.clone().add(&before[..4], &amount, none, &mut next[..4]);
            }
            Counter::Last32 => {
                next.reverse();
                next = Counter::First32.after(symbols, &next, blocks);
                next.reverse();
            }
            Counter::Whole => {
                let value = counter.map(Symbols::value);
                assert!(counter.iter().all(|byte| Symbols::secret(*byte) == 0), "the counter is public");
                let next_value = u128::from_be_bytes(value).wrapping_add(blocks as u128);
                next = next_value.to_be_bytes().map(Symbols::constant);
            }
        }
        next
    }
}

/// Multiplication by alpha (IEEE 1619, 5.2).
pub(super) fn times_alpha(symbols: &Symbols, tweak: &Block) -> Block {
    times_x(symbols, tweak, &[0, 1, 2, 7])
}

/// Multiplication by x of a block whose first bit is the lowest coefficient, modulo the sum of x^128 and other powers of x.
pub(super) fn times_x(symbols: &Symbols, value: &Block, modulus: &[usize]) -> Block {
    let bits = value.as_flattened().first_chunk().expect("128 bits");
    block(definition::times_x(&mut *symbols.table(), bits, modulus).as_chunks().0)
}

#[cfg(test)]
mod tests;
