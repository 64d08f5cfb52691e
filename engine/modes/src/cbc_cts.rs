//! CBC with ciphertext stealing (addendum to SP 800-38A, October 2010): the ciphertext is as long as the plaintext, which
//! may have any length of at least one block. Kerberos 5 (RFC 3962, section 5) uses the third variant.
//!
//! A message is processed in one call, because the last two blocks depend on the end of the message.

use lockstep_core::data::Span;
use lockstep_core::work::Pass;
use lockstep_core::{Block, Error, Key};
use zeroize::{Zeroize, Zeroizing};

use crate::check_block;
use crate::executor::Executor;
use crate::incremental::{BlockIo, KeyedExecutor, Planned, SliceIo};
use crate::message::{Cipher, Direction};

/// The order of the last two ciphertext blocks. C(n-1) is the block from which bytes were stolen, and C(n-1)* is this block
/// without the stolen bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Variant {
    /// CBC-CS1: C(n-1)* precedes C(n). Equal to CBC if the message consists of whole blocks.
    #[default]
    Cs1,
    /// CBC-CS2: C(n) precedes C(n-1)* if the last block is partial. Equal to CBC if the message consists of whole blocks.
    Cs2,
    /// CBC-CS3: C(n) precedes C(n-1)*, even if the message consists of whole blocks. Equal to CBC if the message consists of
    /// one block.
    Cs3,
}

impl Variant {
    /// All variants.
    pub const ALL: [Variant; 3] = [Variant::Cs1, Variant::Cs2, Variant::Cs3];

    /// Number of bytes that are processed as the last block of a message of `len` bytes; 0 if the message is equal to CBC.
    fn tail(self, len: usize) -> usize {
        match (self, len % 16) {
            (Variant::Cs3, 0) if len > 16 => 16,
            (_, partial) => partial,
        }
    }
}

/// Encrypts or decrypts a message in host memory, in place. The message has at least 16 bytes. After the call, `iv` is C(n),
/// the encryption of the last block.
///
/// # Errors
/// [`Error::DataLength`], with the message unchanged; errors of devices.
pub fn run_in_place(
    executor: &dyn Executor,
    direction: Direction,
    key: &Key,
    variant: Variant,
    iv: &mut Block,
    data: &mut [u8],
) -> Result<(), Error> {
    let mut io = SliceIo { input: None, output: data };
    run(&mut Planned::new(executor, key), direction, variant, iv, &mut io)
}

/// Encrypts or decrypts a whole message of at least 16 bytes. Before the call, `state` is the IV. After the call, it is C(n).
///
/// # Errors
/// [`Error::DataLength`] and [`Error::OutputLength`], with the message unchanged; errors of the executor.
pub fn run<E: KeyedExecutor>(
    executor: &mut E,
    direction: Direction,
    variant: Variant,
    state: &mut Block,
    io: &mut impl BlockIo,
) -> Result<(), E::Error> {
    let len = io.len();
    check_block("CBC-CTS", len)?;
    if io.room() < len {
        return Err(Error::OutputLength { needed: len, got: io.room() }.into());
    }
    match (direction, variant.tail(len)) {
        (_, 0) => executor.run(Cipher::Cbc.pass(direction), state, io.part(0, 0, len)),
        (Direction::Encrypt, tail) => encrypt_stealing(executor, variant, tail, state, io),
        (Direction::Decrypt, tail) => decrypt_stealing(executor, variant, tail, state, io),
    }
}

/// Encrypts a message whose last block consists of its last `tail` bytes (1 to 16).
fn encrypt_stealing<E: KeyedExecutor>(
    executor: &mut E,
    variant: Variant,
    tail: usize,
    state: &mut Block,
    io: &mut impl BlockIo,
) -> Result<(), E::Error> {
    let whole = io.len() - tail;
    // The output may overlap this input, so the input is read first. The bytes of the block after these `tail` bytes are zero.
    let mut last = Zeroizing::new(Block::default());
    io.read(whole, &mut last[..tail]);
    executor.run(Pass::CbcEncrypt, state, io.part(0, 0, whole))?;
    // After a pass of CBC, the chaining state is the last ciphertext block.
    let stolen = *state;
    executor.run(Pass::CbcEncrypt, state, Span::in_place(&mut *last))?;
    let (partial, full) = (&stolen[..tail], &last[..]);
    let (first, second) = if variant == Variant::Cs1 { (partial, full) } else { (full, partial) };
    io.write(whole - 16, first);
    io.write(whole - 16 + first.len(), second);
    Ok(())
}

/// Decrypts a message whose last block consists of its last `tail` bytes (1 to 16).
fn decrypt_stealing<E: KeyedExecutor>(
    executor: &mut E,
    variant: Variant,
    tail: usize,
    state: &mut Block,
    io: &mut impl BlockIo,
) -> Result<(), E::Error> {
    let body = io.len() - tail - 16;
    let mut ends = [0; 32];
    let ends = &mut ends[..16 + tail];
    io.read(body, ends);
    let (first, second) = ends.split_at(if variant == Variant::Cs1 { tail } else { 16 });
    let (partial, full) = if variant == Variant::Cs1 { (first, second) } else { (second, first) };
    if body > 0 {
        executor.run(Pass::CbcDecrypt, state, io.part(0, 0, body))?;
    }
    // Let P be the last plaintext block, padded with zeros. The decryption of C(n) is P XOR C(n-1). Because the padding is
    // zero, the end of this value is the stolen end of C(n-1).
    let mut last = Zeroizing::new(Block::default());
    last.copy_from_slice(full);
    executor.run(Pass::EcbDecrypt, &mut [0; 16], Span::in_place(&mut *last))?;
    let mut previous = Zeroizing::new(*last);
    previous[..tail].copy_from_slice(partial);
    for (byte, ciphertext) in last.iter_mut().zip(partial) {
        *byte ^= ciphertext;
    }
    executor.run(Pass::CbcDecrypt, state, Span::in_place(&mut *previous))?;
    state.copy_from_slice(full);
    io.write(body, &*previous);
    io.write(body + 16, &last[..tail]);
    ends.zeroize();
    Ok(())
}
