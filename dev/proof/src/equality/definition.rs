//! GCM, GCM-SIV and OCB3 on symbols, as the standards define them.

use super::cipher::{
    Block, Cipher, Counter, bits_of, block, bytes_of, public, times_alpha, xor, xor_blocks, zero_padded,
};
use super::difference;
use super::hash::{Hashed, ghash_key, reversed};
use crate::symbols::{Symbol, Symbols, ZERO};
use crate::value::Domain;

/// An AEAD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Aead {
    Gcm,
    Ocb,
    GcmSiv,
}

/// A message and its result.
pub(super) struct Sealed<'a> {
    pub(super) aead: Aead,
    /// True if the kernel has opened the message. Its result is then the plaintext, otherwise the ciphertext.
    pub(super) is_opened: bool,
    pub(super) cipher: &'a Cipher,
    pub(super) key_len: usize,
    pub(super) iv: &'a [Symbol],
    pub(super) aad: &'a [Symbol],
    pub(super) plaintext: &'a [Symbol],
    pub(super) ciphertext: &'a [Symbol],
    /// The tag that the kernel has computed.
    pub(super) tag: &'a [Symbol],
    /// The tag that was received with the message, when a message is opened. The counters of GCM-SIV depend on it.
    pub(super) received: &'a [Symbol],
}

/// Two lengths in bits as 8 bytes each, in big-endian or little-endian order.
fn lengths_block(aad: usize, data: usize, is_big: bool) -> Block {
    let bytes = |len: usize| {
        let bits = 8 * len as u64;
        if is_big { bits.to_be_bytes() } else { bits.to_le_bytes() }
    };
    block(&public(&[bytes(aad), bytes(data)].concat()))
}

impl Sealed<'_> {
    fn symbols(&self) -> &Symbols {
        self.cipher.symbols()
    }

    /// The names of the results that differ from the definition. The list is empty if there is no difference.
    pub(super) fn differences(&self) -> Vec<String> {
        let (expected, tag_is_right) = match self.aead {
            Aead::Gcm => self.check_gcm(),
            Aead::Ocb => self.check_ocb(),
            Aead::GcmSiv => self.check_gcm_siv(),
        };
        let (what, output) = match self.is_opened {
            true => ("the plaintext", self.plaintext),
            false => ("the ciphertext", self.ciphertext),
        };
        let data = difference(what, output, &expected);
        let tag = (!tag_is_right).then(|| "the tag differs".to_string());
        data.into_iter().chain(tag).collect()
    }

    /// The data that the kernel has read.
    fn input(&self) -> &[Symbol] {
        if self.is_opened { self.ciphertext } else { self.plaintext }
    }

    /// The blocks that GHASH and POLYVAL process.
    fn hashed_blocks(&self, data: &[Symbol], is_ghash: bool) -> Vec<Block> {
        let mut bytes = [zero_padded(self.aad), zero_padded(data)].concat();
        bytes.extend(lengths_block(self.aad.len(), data.len(), is_ghash));
        let order = |block: &Block| if is_ghash { reversed(block) } else { *block };
        bytes.as_chunks().0.iter().map(order).collect()
    }

    /// The output, and whether the tag is right: GCM (SP 800-38D, 7.1, algorithm 4, and 7.2, algorithm 5).
    fn check_gcm(&self) -> (Vec<Symbol>, bool) {
        let symbols = self.symbols();
        let key = ghash_key(symbols, &self.cipher.encrypt(&public(&[0; 16])));
        let Some(first) = self.pre_counter_block(key) else { return (Vec::new(), false) };
        let counter = Counter::Last32.after(symbols, &first, 1);
        let output = self.cipher.ctr(&counter, Counter::Last32, self.input());
        let blocks = self.hashed_blocks(self.ciphertext, true);
        let result = reversed(&xor_blocks(symbols, &block(self.tag), &self.cipher.encrypt(&first)));
        let hashed = Hashed { symbols, key, blocks: &blocks, result, ignored: None };
        (output, hashed.is_right())
    }

    /// J_0 (SP 800-38D, 7.1, step 2). If the IV does not have 12 bytes, J_0 is derived from the counter block that the kernel has encrypted
    /// for the first block of ciphertext. Returns `None` if the derived J_0 is not the GHASH of the IV.
    fn pre_counter_block(&self, key: Block) -> Option<Block> {
        let symbols = self.symbols();
        if self.iv.len() == 12 {
            return Some(block(&[self.iv, &public(&[0, 0, 0, 1])].concat()));
        }
        let keystream = xor(symbols, self.plaintext.first_chunk::<16>()?, self.ciphertext);
        let mut counter = reversed(&self.cipher.apply(&block(&keystream), false));
        let (base, offset) = symbols.table().base(counter[..4].as_flattened())?.clone();
        counter[..4].as_flattened_mut().copy_from_slice(&base);
        let bytes = [zero_padded(self.iv), lengths_block(0, self.iv.len(), true).to_vec()].concat();
        let blocks: Vec<Block> = bytes.as_chunks().0.iter().map(reversed).collect();
        let hashed = Hashed { symbols, key, blocks: &blocks, result: counter, ignored: None };
        (offset == 1 && hashed.is_right()).then_some(reversed(&counter))
    }

    /// The keys of a message of GCM-SIV (RFC 8452, section 4): the key of POLYVAL, and that of AES.
    fn derived_keys(&self) -> (Block, Vec<Symbol>) {
        let half = |number: u8| {
            let counter = public(&[number, 0, 0, 0]);
            self.cipher.encrypt(&[&counter, self.iv].concat())[..8].to_vec()
        };
        let halves: Vec<Symbol> = (0..2 + self.key_len as u8 / 8).flat_map(half).collect();
        (block(&halves), halves[16..].to_vec())
    }

    /// GCM-SIV (RFC 8452, section 4). The tag is the encryption of a block. The inverse cipher recovers this block, which is then compared
    /// with the result of POLYVAL.
    fn check_gcm_siv(&self) -> (Vec<Symbol>, bool) {
        let symbols = self.symbols();
        let (key, encryption) = self.derived_keys();
        let cipher = Cipher::new(symbols, &encryption);
        let mut counter = block(self.received);
        counter[15][7] = crate::symbols::ONE;
        let output = cipher.ctr(&counter, Counter::First32, self.input());
        let blocks = self.hashed_blocks(self.plaintext, false);
        let encrypted = cipher.apply(&block(self.tag), false);
        let nonce = [self.iv, &public(&[0; 4])].concat();
        let result = xor_blocks(symbols, &encrypted, &block(&nonce));
        // GCM-SIV clears the top bit of the sum of the hash and the nonce. This bit is therefore not compared.
        let hashed = Hashed { symbols, key, blocks: &blocks, result, ignored: Some(127) };
        (output, encrypted[15][7] == ZERO && hashed.is_right())
    }

    /// OCB3 (RFC 7253, sections 4.2 and 4.3).
    fn check_ocb(&self) -> (Vec<Symbol>, bool) {
        let (symbols, cipher) = (self.symbols(), self.cipher);
        let masks = Masks::new(cipher);
        let mut offset = masks.first_offset(self.iv, self.tag.len());
        let mut checksum = block(&public(&[0; 16]));
        let (blocks, rest) = self.input().as_chunks();
        let mut output = Vec::with_capacity(self.input().len());
        for (number, input) in (1..).zip(blocks) {
            offset = xor_blocks(symbols, &offset, &masks.of(number));
            let result = cipher.apply(&xor_blocks(symbols, input, &offset), !self.is_opened);
            let result = xor_blocks(symbols, &result, &offset);
            checksum = xor_blocks(symbols, &checksum, if self.is_opened { &result } else { input });
            output.extend(result);
        }
        if !rest.is_empty() {
            offset = xor_blocks(symbols, &offset, &masks.star);
            let result = xor(symbols, rest, &cipher.encrypt(&offset));
            checksum = xor_blocks(symbols, &checksum, &padded(if self.is_opened { &result } else { rest }));
            output.extend(result);
        }
        let sum = xor_blocks(symbols, &xor_blocks(symbols, &checksum, &offset), &masks.dollar);
        let tag = xor_blocks(symbols, &cipher.encrypt(&sum), &masks.hash(self.aad));
        (output, tag[..self.tag.len()] == *self.tag)
    }
}

/// X || 1 || zeros (RFC 7253, sections 4.1 and 4.2).
fn padded(bytes: &[Symbol]) -> Block {
    let mut padded = [Symbols::constant(0); 16];
    padded[..bytes.len()].copy_from_slice(bytes);
    padded[bytes.len()] = Symbols::constant(0x80);
    padded
}

/// The key-dependent variables of OCB3 (RFC 7253, section 4.1).
struct Masks<'a> {
    cipher: &'a Cipher,
    star: Block,
    dollar: Block,
}

impl<'a> Masks<'a> {
    fn new(cipher: &'a Cipher) -> Self {
        let star = cipher.encrypt(&public(&[0; 16]));
        Masks { cipher, star, dollar: double(cipher.symbols(), &star) }
    }

    /// L_{ntz(number)}.
    fn of(&self, number: u64) -> Block {
        let symbols = self.cipher.symbols();
        (0..=number.trailing_zeros()).fold(self.dollar, |mask, _| double(symbols, &mask))
    }

    /// HASH(K, A) (RFC 7253, section 4.1).
    fn hash(&self, aad: &[Symbol]) -> Block {
        let symbols = self.cipher.symbols();
        let (mut sum, mut offset) = ([Symbols::constant(0); 16], [Symbols::constant(0); 16]);
        let (blocks, rest) = aad.as_chunks();
        let mut add = |block: &Block, mask: &Block| {
            offset = xor_blocks(symbols, &offset, mask);
            sum = xor_blocks(symbols, &sum, &self.cipher.encrypt(&xor_blocks(symbols, block, &offset)));
        };
        for (number, block) in (1..).zip(blocks) {
            add(block, &self.of(number));
        }
        if !rest.is_empty() {
            add(&padded(rest), &self.star);
        }
        sum
    }

    /// Offset_0 (RFC 7253, section 4.2), for a nonce whose last 6 bits are public.
    fn first_offset(&self, nonce: &[Symbol], tag_len: usize) -> Block {
        let start = 16 - nonce.len();
        let mut bytes = [Symbols::constant(0); 16];
        bytes[0] = Symbols::constant((8 * tag_len % 128) as u8 * 2);
        bytes[start - 1][0] = crate::symbols::ONE;
        bytes[start..].copy_from_slice(nonce);
        let bottom = usize::from(Symbols::value(bytes[15]) & 0x3f);
        bytes[15][..6].fill(ZERO);
        // Stretch consists of the bits of Ktop, from the left, and 64 sums: those of bits 1 to 64 and bits 9 to 72.
        let top = self.cipher.encrypt(&bytes);
        let mut stretch = bits_of(&top);
        let mut table = self.cipher.symbols().table();
        stretch
            .extend((0..64).map(|place| table.xor(stretch[place], stretch[place + 8])).collect::<Vec<_>>());
        block(&bytes_of(&stretch[bottom..bottom + 128]))
    }
}

/// double(S) (RFC 7253, section 2): multiplication by x, with the first bit as the highest coefficient.
fn double(symbols: &Symbols, value: &Block) -> Block {
    reversed(&times_alpha(symbols, &reversed(value)))
}
