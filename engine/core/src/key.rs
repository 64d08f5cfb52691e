//! AES keys: checked once, expanded once for each form that a kernel needs, wiped on drop, never printed.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::{Error, Result};
use crate::{sbox, stack};

/// One AES block: 16 bytes, in the byte order of FIPS 197.
pub type Block = [u8; 16];

/// The three key sizes of FIPS 197.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeySize {
    /// 16 bytes, 10 rounds.
    Aes128,
    /// 24 bytes, 12 rounds.
    Aes192,
    /// 32 bytes, 14 rounds.
    Aes256,
}

impl KeySize {
    /// All key sizes, smallest first.
    pub const ALL: [KeySize; 3] = [KeySize::Aes128, KeySize::Aes192, KeySize::Aes256];

    /// Key length in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            KeySize::Aes128 => 16,
            KeySize::Aes192 => 24,
            KeySize::Aes256 => 32,
        }
    }

    /// Key length in bits, the number in the cipher's name.
    pub const fn bits(self) -> usize {
        self.bytes() * 8
    }

    /// Rounds, Nr in FIPS 197.
    pub const fn rounds(self) -> usize {
        self.bytes() / 4 + 6
    }
}

/// An AES key.
///
/// Expanding a key takes as long as encrypting several blocks, so a key caches its expanded forms. Each backend has its own
/// form, which [`Key::prepared`] makes at first use. The forms are wiped with the key.
pub struct Key {
    /// The bytes are on the heap, so that a move of the key leaves no copy of the bytes on the stack.
    bytes: Box<Zeroizing<[u8; 32]>>,
    size: KeySize,
    forms: OnceLock<Box<Form>>,
}

/// One node of a linked list of expanded forms. The list only grows, so that references into it stay valid.
struct Form {
    value: Box<dyn Any + Send + Sync>,
    next: OnceLock<Box<Form>>,
}

impl Key {
    /// Makes a key from its 16, 24 or 32 bytes.
    ///
    /// # Errors
    /// [`Error::KeyLength`] for any other length.
    pub fn new(bytes: &[u8]) -> Result<Key> {
        let got = bytes.len();
        let size =
            KeySize::ALL.into_iter().find(|size| size.bytes() == got).ok_or(Error::KeyLength { got })?;
        let mut all = Box::new(Zeroizing::new([0; 32]));
        all[..bytes.len()].copy_from_slice(bytes);
        Ok(Key { bytes: all, size, forms: OnceLock::new() })
    }

    /// The key's size.
    pub fn size(&self) -> KeySize {
        self.size
    }

    /// The bytes of the key, for backends and key files. Copies of them must be wiped.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.size.bytes()]
    }

    /// The round keys of FIPS 197, expanded at first use in constant time.
    pub fn round_keys(&self) -> &RoundKeys {
        self.prepared(RoundKeys::expand)
    }

    /// The expanded form of type `T`, which is made at first use. `T` must wipe itself on drop.
    pub fn prepared<T: Any + Send + Sync>(&self, make: impl FnOnce(&Key) -> T) -> &T {
        let mut end = match self.find() {
            Ok(value) => return value,
            Err(end) => end,
        };
        let value = value_in_own_frame(|| make(self));
        // Forms of more than 1 KiB contain GCM's powers of H. Making them uses more of the stack than making round keys alone, which
        // GCM-SIV does for each message.
        match size_of::<T>() {
            0..=1024 => stack::wipe::<4>(),
            _ => stack::wipe_below(),
        }
        // The form is moved after the wipe, because the move also copies padding from the stack, which could hold round keys.
        let mut new = Box::write(Box::new_uninit(), Form { value, next: OnceLock::new() });
        // Another thread may have added forms in the meantime, of this type or of other types.
        while let Err(back) = end.set(new) {
            end = match self.find() {
                Ok(value) => return value,
                Err(end) => end,
            };
            new = back;
        }
        end.get().and_then(|form| form.value.downcast_ref()).expect("it was set above, and has this type")
    }

    /// The form of type `T`, if it has been made already.
    pub fn already_prepared<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.find().ok()
    }

    /// The form of type `T`, or the end of the list if there is none.
    fn find<T: Any>(&self) -> std::result::Result<&T, &OnceLock<Box<Form>>> {
        let mut end = &self.forms;
        while let Some(form) = end.get() {
            match form.value.downcast_ref() {
                Some(value) => return Ok(value),
                None => end = &form.next,
            }
        }
        Err(end)
    }
}

/// The value of a form. A separate function, so that its stack frame can be wiped: an expansion leaves round keys on the stack if they
/// do not fit into registers.
#[inline(never)]
fn value_in_own_frame<T: Any + Send + Sync>(make: impl FnOnce() -> T) -> Box<T> {
    // The value is constructed in its final place.
    Box::write(Box::new_uninit(), make())
}

impl Clone for Key {
    /// Makes a new key of the same bytes, without the expanded forms of this key.
    fn clone(&self) -> Key {
        Key::new(self.bytes()).expect("the length was checked when the key was made")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bits)", self.size.bits())
    }
}

/// The round keys of FIPS 197, section 5.2, in the order of encryption.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct RoundKeys {
    keys: [Block; 15],
    #[zeroize(skip)]
    rounds: usize,
}

impl RoundKeys {
    /// The `rounds + 1` round keys.
    pub fn as_blocks(&self) -> &[Block] {
        &self.keys[..=self.rounds]
    }

    /// The round keys of the equivalent inverse cipher (FIPS 197, section 5.3.5): in the order of decryption, with
    /// InvMixColumns applied to all but the first and the last.
    pub fn inverse(&self) -> RoundKeys {
        let mut inverse = RoundKeys { keys: [[0; 16]; 15], rounds: self.rounds };
        for (round, (inverse, key)) in inverse.keys.iter_mut().zip(self.as_blocks().iter().rev()).enumerate()
        {
            let outer = round == 0 || round == self.rounds;
            *inverse = if outer { *key } else { inverse_mix_columns(key) };
        }
        inverse
    }

    /// KeyExpansion of FIPS 197, section 5.2, with SubWord computed rather than looked up.
    fn expand(key: &Key) -> RoundKeys {
        let mut expanded = RoundKeys { keys: [[0; 16]; 15], rounds: key.size.rounds() };
        expand(key.bytes(), &mut expanded.keys, sbox::sub_word);
        expanded
    }
}

/// KeyExpansion of FIPS 197, section 5.2: writes the round keys of a key of 16, 24 or 32 bytes, and returns their number.
/// `sub_word` computes SubWord.
///
/// # Panics
/// If the key has another length.
// Inlined, so that `sub_word` may consist of instructions that only the caller may use.
#[inline(always)]
pub fn expand(key: &[u8], keys: &mut [Block; 15], sub_word: impl Fn([u8; 4]) -> [u8; 4]) -> usize {
    assert!(matches!(key.len(), 16 | 24 | 32), "an AES key has 16, 24 or 32 bytes");
    let nk = key.len() / 4;
    let (words, _) = keys.as_flattened_mut().as_chunks_mut::<4>();
    words[..nk].as_flattened_mut().copy_from_slice(key);
    let mut rcon = 1;
    for i in nk..4 * (nk + 7) {
        let mut word = words[i - 1];
        if i % nk == 0 {
            word.rotate_left(1);
            word = sub_word(word);
            word[0] ^= rcon as u8;
            rcon = xtime4(rcon);
        } else if nk == 8 && i % nk == 4 {
            word = sub_word(word);
        }
        words[i] = std::array::from_fn(|j| words[i - nk][j] ^ word[j]);
    }
    nk + 7
}

/// InvMixColumns of FIPS 197, section 5.3.3, on a block, in constant time.
pub fn inverse_mix_columns(block: &Block) -> Block {
    let mut mixed = *block;
    for column in mixed.as_chunks_mut::<4>().0 {
        *column = inverse_mix_column(u32::from_le_bytes(*column)).to_le_bytes();
    }
    mixed
}

/// InvMixColumns on one column: multiplication by 4x^2 + 5, then MixColumns.
fn inverse_mix_column(column: u32) -> u32 {
    let a = column ^ xtime4(xtime4(column ^ column.rotate_right(16)));
    let next = a.rotate_right(8);
    xtime4(a ^ next) ^ next ^ a.rotate_right(16) ^ a.rotate_right(24)
}

/// Doubles four elements of GF(2^8).
fn xtime4(x: u32) -> u32 {
    let high = (x >> 7) & 0x0101_0101;
    ((x & 0x7f7f_7f7f) << 1) ^ (high * 0x1b)
}

#[cfg(test)]
mod tests;
