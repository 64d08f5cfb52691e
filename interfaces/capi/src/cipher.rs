//! Modes without authentication: keys, one message, batches.

use std::ffi::c_int;

use lockstep::hazmat::Block;
use lockstep::hazmat::data::Data;
use lockstep::hazmat::mode::{Cipher, CipherKey as ModeKey, Direction, Message as ModeMessage};

use crate::engine::Engine;
use crate::error::{Failure, LOCKSTEP_ERROR_KEY, Outcome, ensure};
use crate::ffi::{self, Call, MemoryRange};

/// ECB (SP 800-38A). Whole blocks of 16 bytes. No IV. It reveals equal blocks.
pub const LOCKSTEP_CIPHER_ECB: c_int = 1;
/// CBC (SP 800-38A). Whole blocks of 16 bytes, without padding.
pub const LOCKSTEP_CIPHER_CBC: c_int = 2;
/// PCBC of Kerberos 4. Whole blocks of 16 bytes.
pub const LOCKSTEP_CIPHER_PCBC: c_int = 3;
/// CFB with 128 bits (SP 800-38A). Any length.
pub const LOCKSTEP_CIPHER_CFB: c_int = 4;
/// CFB with 8 bits. Any length.
pub const LOCKSTEP_CIPHER_CFB8: c_int = 5;
/// CFB with 1 bit. Any number of bytes.
pub const LOCKSTEP_CIPHER_CFB1: c_int = 6;
/// OFB (SP 800-38A). Any length.
pub const LOCKSTEP_CIPHER_OFB: c_int = 7;
/// CTR (SP 800-38A) with a big-endian counter of 128 bits. Any length.
pub const LOCKSTEP_CIPHER_CTR: c_int = 8;
/// XTS (IEEE 1619). Data units of 16 bytes to 16 MiB. Keys of 32 or 64 bytes, whose halves differ. The IV is the tweak.
pub const LOCKSTEP_CIPHER_XTS: c_int = 9;

/// Plaintext to ciphertext.
pub const LOCKSTEP_ENCRYPT: c_int = 1;
/// Ciphertext to plaintext.
pub const LOCKSTEP_DECRYPT: c_int = 2;

/// A key of a mode without authentication. It is wiped when it is freed. All threads may use it at the same time.
pub struct CipherKey {
    pub(crate) key: ModeKey,
}

/// A message of a batch.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CipherMessage {
    /// The key. Messages may have the same key.
    pub key: *const CipherKey,
    /// The IV, counter or tweak, of 16 bytes. The call updates it as lockstep_cipher_encrypt does. NULL in ECB.
    pub iv: *mut u8,
    /// The data.
    pub input: *const u8,
    /// The result, which has the length of the data. Its memory is that of the input, or separate memory.
    pub output: *mut u8,
    /// Bytes of the data.
    pub len: usize,
}

/// The mode that a number LOCKSTEP_CIPHER_ stands for.
pub(crate) fn mode(number: c_int) -> Outcome<Cipher> {
    ffi::numbered(&Cipher::ALL, 1, number, "a mode without authentication: use a number LOCKSTEP_CIPHER_")
}

/// The direction that LOCKSTEP_ENCRYPT or LOCKSTEP_DECRYPT stands for.
pub(crate) fn direction(number: c_int) -> Outcome<Direction> {
    let directions = [Direction::Encrypt, Direction::Decrypt];
    ffi::numbered(&directions, 1, number, "a direction: use LOCKSTEP_ENCRYPT or LOCKSTEP_DECRYPT")
}

/// Makes a key for a mode (a number LOCKSTEP_CIPHER_) from its bytes, which are copied: 16, 24 or 32 bytes, or 32 or 64 for
/// XTS. A key that was made for any mode except XTS can be used in each of these modes, and for CMAC, key wrap, HCTR2 and CBC
/// with ciphertext stealing.
///
/// Errors: LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_KEY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_cipher_key_new(
    cipher: c_int,
    bytes: *const u8,
    len: usize,
    key: *mut *mut CipherKey,
) -> c_int {
    ffi::new_object(key, |call| {
        Ok(CipherKey { key: ModeKey::new(mode(cipher)?, call.input(bytes, len, "the key")?)? })
    })
}

/// Wipes and frees a key. No call may be using it. NULL is permitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_cipher_key_free(key: *mut CipherKey) {
    ffi::free(key)
}

/// Encrypts a message by a mode without authentication. If an attacker changes the ciphertext, the plaintext changes, and no
/// call detects this. `iv` has 16 bytes (NULL in ECB) and is updated, so that the next call continues the message if this call
/// ended at a block boundary; in XTS the tweak is not changed. `output` has `len` bytes and is `input` or separate memory.
///
/// Errors: LOCKSTEP_ERROR_ARGUMENT, LOCKSTEP_ERROR_KEY, LOCKSTEP_ERROR_LENGTH, LOCKSTEP_ERROR_TOO_LONG,
/// LOCKSTEP_ERROR_OVERLAP; errors of devices.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_cipher_encrypt(
    engine: *const Engine,
    cipher: c_int,
    key: *const CipherKey,
    iv: *mut u8,
    input: *const u8,
    len: usize,
    output: *mut u8,
) -> c_int {
    one(engine, cipher, Direction::Encrypt, CipherMessage { key, iv, input, output, len })
}

/// Decrypts a message. The arguments and errors are those of lockstep_cipher_encrypt.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_cipher_decrypt(
    engine: *const Engine,
    cipher: c_int,
    key: *const CipherKey,
    iv: *mut u8,
    input: *const u8,
    len: usize,
    output: *mut u8,
) -> c_int {
    one(engine, cipher, Direction::Decrypt, CipherMessage { key, iv, input, output, len })
}

/// Encrypts the messages of a batch. A batch is much faster than single calls.
///
/// Errors: those of lockstep_cipher_encrypt. After an error, all outputs are invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_cipher_encrypt_batch(
    engine: *const Engine,
    cipher: c_int,
    messages: *const CipherMessage,
    count: usize,
) -> c_int {
    batch(engine, cipher, Direction::Encrypt, messages, count)
}

/// Decrypts the messages of a batch. The errors are those of lockstep_cipher_encrypt_batch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_cipher_decrypt_batch(
    engine: *const Engine,
    cipher: c_int,
    messages: *const CipherMessage,
    count: usize,
) -> c_int {
    batch(engine, cipher, Direction::Decrypt, messages, count)
}

unsafe fn one(engine: *const Engine, cipher: c_int, direction: Direction, message: CipherMessage) -> c_int {
    ffi::call(|_| {
        let cipher = mode(cipher)?;
        ffi::check_overlap(&mut ranges(cipher, &message)?)?;
        let mut unused = Block::default();
        let ModeMessage { key, iv, data } = convert(cipher, &message, &mut unused)?;
        let engine = ffi::object(engine, "the engine")?;
        engine.run_mode(|executor| cipher.one(executor, direction, key, iv, data))
    })
}

unsafe fn batch(
    engine: *const Engine,
    cipher: c_int,
    direction: Direction,
    messages: *const CipherMessage,
    count: usize,
) -> c_int {
    ffi::call(|_| {
        let cipher = mode(cipher)?;
        let engine = ffi::object(engine, "the engine")?;
        let list = ffi::input(messages, count, "the array of messages")?;
        let mut all = vec![MemoryRange::read(messages, count)];
        for message in list {
            all.extend(ranges(cipher, message)?);
        }
        ffi::check_overlap(&mut all)?;
        let mut unused = vec![Block::default(); count];
        let converted =
            list.iter().zip(&mut unused).map(|(message, unused)| convert(cipher, message, unused));
        let mut converted = converted.collect::<Outcome<Vec<_>>>()?;
        engine.run_mode(|executor| cipher.run(executor, direction, &mut converted))
    })
}

fn ranges(cipher: Cipher, message: &CipherMessage) -> Outcome<[MemoryRange; 3]> {
    let CipherMessage { iv, input, output, len, .. } = *message;
    ffi::check_data(input, output, len)?;
    Ok([
        MemoryRange::input(input, output, len),
        MemoryRange::written(output, len),
        MemoryRange::written(iv, if has_iv(cipher) { 16 } else { 0 }),
    ])
}

pub(crate) fn has_iv(cipher: Cipher) -> bool {
    cipher != Cipher::Ecb
}

/// Converts a message whose memory was checked by [`ranges`]. ECB has no IV: its message gets `unused`, which the mode
/// ignores.
unsafe fn convert<'a>(
    cipher: Cipher,
    message: &CipherMessage,
    unused: &'a mut Block,
) -> Outcome<ModeMessage<'a>> {
    let mut call = Call::checked();
    let key = &ffi::object(message.key, "the key")?.key;
    let iv = if has_iv(cipher) { call.block(message.iv, "the IV")? } else { unused };
    Ok(ModeMessage { key, iv, data: Data::Host(call.data(message.input, message.output, message.len)?) })
}

impl CipherKey {
    /// Returns the AES key, for the modes that use one AES key. Fails for a key of XTS, which has two AES keys.
    pub(crate) fn single(&self) -> Outcome<&lockstep::hazmat::Key> {
        let message =
            "this is a pair of keys for XTS: make the key with another mode, such as LOCKSTEP_CIPHER_CTR";
        ensure(self.key.tweak().is_none(), || Failure::new(LOCKSTEP_ERROR_KEY, message))?;
        Ok(self.key.data())
    }
}
