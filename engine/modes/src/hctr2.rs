//! AES-HCTR2 (Crowley, Huckleberry and Biggers, "Length-preserving encryption with HCTR2", 2021): a wide-block cipher. The
//! ciphertext has the length of the plaintext, and each bit of the ciphertext depends on each bit of the plaintext and of the
//! tweak.
//!
//! HCTR2 is intended for disk sectors and file names, where there is no room for a tag. It does not authenticate the data.
//! Equal plaintexts with equal tweaks have equal ciphertexts.

use zeroize::Zeroizing;

use crate::absorb::{self, Side};
use crate::executor::Executor;
use crate::{Direction, check_block, ecb, pieces, transfer};
use lockstep_core::data::Data;
use lockstep_core::ocb::xor;
use lockstep_core::work::{Pass, Segment};
use lockstep_core::{Block, Key, Result};

/// A key of HCTR2 with the values that are derived from it.
pub struct Hctr2Key {
    key: Key,
    /// The key of POLYVAL: the encryption of the block with number 0.
    hash: Key,
    /// The value L of the paper: the encryption of the block with number 1.
    l: Box<Zeroizing<Block>>,
}

impl Hctr2Key {
    /// Derives the hash key and the value L from the key.
    ///
    /// # Errors
    /// Errors of devices.
    pub fn new(executor: &dyn Executor, key: Key) -> Result<Hctr2Key> {
        let mut blocks = Zeroizing::new([[0; 16], 1u128.to_le_bytes()]);
        ecb(executor, Direction::Encrypt, &key, blocks.as_flattened_mut())?;
        // The value is on the heap, as the bytes of keys are, so that moving the structure leaves no copy.
        let mut l = Box::new(Zeroizing::new([0; 16]));
        l.copy_from_slice(&blocks[1]);
        Ok(Hctr2Key { hash: Key::new(&blocks[0])?, l, key })
    }

    /// Computes the hash of a block and of the tweak after it. The block encodes the length of the tweak, and whether the `rest`
    /// bytes after the first block of the message are whole blocks (section 2.2 of the paper).
    fn hash_of_tweak(&self, executor: &dyn Executor, tweak: &[u8], rest: usize) -> Result<Zeroizing<Block>> {
        let is_partial = !rest.is_multiple_of(16);
        let bits = 8 * tweak.len() as u128;
        let mut hash = Zeroizing::new([0; 16]);
        let lengths = (2 * bits + 2 + u128::from(is_partial)).to_le_bytes();
        absorb::bytes(executor, Pass::Polyval, &self.hash, &mut hash, &lengths)?;
        absorb::bytes(executor, Pass::Polyval, &self.hash, &mut hash, tweak)?;
        Ok(hash)
    }
}

/// Encrypts or decrypts a message of at least 16 bytes. The tweak may have any length.
///
/// # Errors
/// [`lockstep_core::Error::DataLength`], with the message unchanged; errors of devices. After an error of a device, the output is
/// invalid.
pub fn run(
    executor: &dyn Executor,
    direction: Direction,
    key: &Hctr2Key,
    tweak: &[u8],
    mut data: Data<'_>,
) -> Result<()> {
    check_block("HCTR2", data.len())?;
    let of_tweak = key.hash_of_tweak(executor, tweak, data.len() - 16)?;
    let mut m = Zeroizing::new([0; 16]);
    transfer::fetch_input(executor, &data, 0, &mut *m)?;
    let mut masked = hash_of_data(executor, key, &of_tweak, &mut data, Side::Input)?;
    xor(&mut masked, &m);
    let mut u = masked.clone();
    ecb(executor, direction, &key.key, &mut *u)?;
    let mut s = masked;
    xor(&mut s, &u);
    xor(&mut s, &key.l);
    let len = data.len();
    pieces::process(executor, &mut data, 16..len, |at, piece| xctr(executor, &key.key, &s, at, piece))?;
    let hash = hash_of_data(executor, key, &of_tweak, &mut data, Side::Output)?;
    xor(&mut u, &hash);
    transfer::store_output(executor, &mut data, 0, &*u)
}

/// Adds the data after the first block to the hash of the tweak.
fn hash_of_data(
    executor: &dyn Executor,
    key: &Hctr2Key,
    of_tweak: &Block,
    data: &mut Data<'_>,
    side: Side,
) -> Result<Zeroizing<Block>> {
    let mut hash = Zeroizing::new(*of_tweak);
    let (len, tail) = (data.len(), data.len() % 16);
    let whole = side.of(data).split_at(16).1.split_at(len - 16 - tail).0;
    if !whole.is_empty() {
        let segment = Segment { key: &key.hash, tweak: None, state: &mut hash, data: whole };
        executor.run_pass(Pass::Polyval, &mut [segment])?;
    }
    if tail > 0 {
        let mut last = Zeroizing::new([0; 16]);
        transfer::fetch_input(executor, &side.of(data), len - tail, &mut last[..tail])?;
        last[tail] = 1;
        absorb::bytes(executor, Pass::Polyval, &key.hash, &mut hash, &*last)?;
    }
    Ok(hash)
}

/// XCTR: the keystream is the encryption of S XOR 1, S XOR 2, ... The numbers are little-endian. `at` is the offset of the piece.
fn xctr(executor: &dyn Executor, key: &Key, s: &Block, at: usize, piece: &mut [u8]) -> Result<()> {
    let mut keystream = Zeroizing::new(vec![*s; piece.len().div_ceil(16)]);
    for (i, block) in (at as u128 / 16 + 1..).zip(&mut *keystream) {
        xor(block, &i.to_le_bytes());
    }
    ecb(executor, Direction::Encrypt, key, keystream.as_flattened_mut())?;
    piece.iter_mut().zip(keystream.as_flattened()).for_each(|(byte, mask)| *byte ^= mask);
    Ok(())
}
