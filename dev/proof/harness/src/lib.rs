//! The CPU kernels behind functions of C. `lockstep-proof` interprets the machine code of this library.
//!
//! The harness implements no cryptography: its functions call the public functions of `lockstep_cpu::inline`, with which the provider,
//! the C library and the Python package run AES. The module [`controls`] contains functions that leak on purpose.
//!
//! Pointers that callers pass must be valid for the stated number of bytes. A pointer to data may be equal to the pointer to the
//! result; otherwise the two do not overlap.

pub mod aead;
pub mod controls;
pub mod task;

use std::mem::MaybeUninit;
use std::slice;

use lockstep_core::work::Pass;
use lockstep_cpu::inline::{self, Block, InlineKernel, InlineKey, Span};
use lockstep_cpu::soft::{Soft, Width};

/// A place for a key, which [`proof_key_set`] fills.
pub type KeyPlace = MaybeUninit<Option<InlineKey>>;

/// The bytes at a pointer of the caller.
///
/// # Safety
/// The pointer is valid for `len` bytes, which are not written while the result is in use.
#[inline(always)]
unsafe fn bytes<'a>(data: *const u8, len: usize) -> &'a [u8] {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    unsafe { slice::from_raw_parts(data, len) }
}

/// The input and the output at pointers of the caller.
///
/// # Safety
/// The pointers are valid for `len` bytes, and are equal or do not overlap.
#[inline(always)]
unsafe fn span<'a>(src: *const u8, dst: *mut u8, len: usize) -> Span<'a> {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    unsafe { Span::from_raw(src, dst, len) }
}

/// The kernel with this name, or null if the processor cannot run it. For `cpu/soft`, `width` is the index of the width of its registers.
///
/// # Safety
/// The pointer is valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_kernel(name: *const u8, len: usize, width: usize) -> *const InlineKernel {
    if let Some(width) = Width::ALL.get(width) {
        Soft::limit(*width);
    }
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    let name = std::str::from_utf8(unsafe { bytes(name, len) }).ok();
    name.and_then(InlineKernel::by_name).map_or(std::ptr::null(), |kernel| Box::into_raw(Box::new(kernel)))
}

/// Allocates memory for a key, which [`proof_key_set`] fills.
#[unsafe(no_mangle)]
pub extern "C" fn proof_key_place() -> *mut KeyPlace {
    Box::into_raw(Box::new(MaybeUninit::uninit()))
}

/// Expands a key of `len` bytes.
///
/// # Safety
/// The pointer is valid for `len` bytes. The place contains no key yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_key_set(
    place: &mut KeyPlace,
    kernel: &InlineKernel,
    key: *const u8,
    len: usize,
) -> bool {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    place.write(InlineKey::new(*kernel, unsafe { bytes(key, len) })).is_some()
}

/// Drops a key and frees its place.
///
/// # Safety
/// [`proof_key_set`] has filled the place, and no other function uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_key_drop(place: *mut Option<InlineKey>) {
    // SAFETY: the caller guarantees the conditions of `# Safety`, and the place comes from a box.
    drop(unsafe { Box::from_raw(place) });
}

/// Makes a clone of a key, which shares its round keys, in another place.
#[unsafe(no_mangle)]
pub extern "C" fn proof_key_copy(place: &mut KeyPlace, key: &InlineKey) -> bool {
    place.write(Some(key.clone())).is_some()
}

/// Defines a function for each mode of a key. Some modes have a chaining register, which the function updates.
macro_rules! modes {
    ($($function:ident = $mode:ident($($register:ident)?);)*) => {
        $(
            /// Processes data of a caller with the mode.
            ///
            /// # Safety
            /// The pointers are valid for `len` bytes, and are equal or do not overlap.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $function(
                key: &InlineKey,
                $($register: &mut Block,)?
                src: *const u8,
                dst: *mut u8,
                len: usize,
            ) {
                // SAFETY: the caller guarantees the conditions of `# Safety`.
                key.$mode($($register,)? unsafe { span(src, dst, len) });
            }
        )*
    };
}

modes! {
    proof_ecb_encrypt = ecb_encrypt();
    proof_ecb_decrypt = ecb_decrypt();
    proof_ctr = ctr(counter);
    proof_ctr32 = ctr32(counter);
    proof_cbc_encrypt = cbc_encrypt(iv);
    proof_cbc_decrypt = cbc_decrypt(iv);
    proof_cfb128_decrypt = cfb128_decrypt(iv);
    proof_xts_encrypt = xts_encrypt(tweak);
    proof_xts_decrypt = xts_decrypt(tweak);
}

/// Defines functions for serial modes. Each processes `len` bytes, without a number of bits at the end, which are copied from the input.
macro_rules! serial_modes {
    ($($name:ident = $pass:ident $(without $bits:literal)?;)*) => {
        $(
            /// Encrypts or decrypts with this pass.
            ///
            /// # Safety
            /// The pointers are valid for `len` bytes, and are equal or do not overlap.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                key: &InlineKey,
                iv: &mut Block,
                src: *const u8,
                dst: *mut u8,
                len: usize,
            ) {
                let without = 0 $(+ $bits)?;
                if without > 0 && len > 0 {
                    // SAFETY: as below.
                    unsafe { dst.add(len - 1).write(src.add(len - 1).read()) };
                }
                // SAFETY: the caller guarantees the conditions of `# Safety`.
                let data = unsafe { span(src, dst, len) };
                key.serial(Pass::$pass, iv, (8 * len).saturating_sub(without), data);
            }
        )*
    };
}

serial_modes! {
    proof_cfb128_encrypt = Cfb128Encrypt;
    proof_cfb8_encrypt = Cfb8Encrypt;
    proof_cfb8_decrypt = Cfb8Decrypt;
    proof_cfb1_encrypt = Cfb1Encrypt;
    proof_cfb1_decrypt = Cfb1Decrypt;
    proof_cfb1_bits_encrypt = Cfb1Encrypt without 3;
    proof_cfb1_bits_decrypt = Cfb1Decrypt without 3;
    proof_ofb = Ofb;
}

/// Encrypts one block in place.
#[unsafe(no_mangle)]
pub extern "C" fn proof_block(key: &InlineKey, block: &mut Block) {
    key.encrypt_block(block);
}

/// Continues CBC-MAC over whole blocks.
///
/// # Safety
/// The pointer is valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_cbc_mac(key: &InlineKey, state: &mut Block, data: *const u8, len: usize) {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    key.cbc_mac(state, unsafe { bytes(data, len) });
}

/// Defines functions for the data of a message of CCM in both directions.
macro_rules! ccm {
    ($($function:ident = $encrypts:literal;)*) => {
        $(
            /// Processes the data of a message of CCM. `first` is the counter block that masks the tag, which replaces the block of `mac`.
            ///
            /// # Safety
            /// The pointers are valid for `len` bytes, and are equal or do not overlap.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $function(
                key: &InlineKey,
                mac: &mut Block,
                first: &Block,
                src: *const u8,
                dst: *mut u8,
                len: usize,
            ) {
                // SAFETY: the caller guarantees the conditions of `# Safety`.
                key.ccm($encrypts, mac, first, unsafe { span(src, dst, len) });
            }
        )*
    };
}

ccm! {
    proof_ccm_encrypt = true;
    proof_ccm_decrypt = false;
}

/// The keys and the number of a data unit of XTS.
#[repr(C)]
pub struct Unit<'a> {
    key: &'a InlineKey,
    tweak_key: &'a InlineKey,
    number: &'a Block,
    after: &'a mut Block,
    encrypts: usize,
}

/// Encrypts or decrypts a data unit of XTS, which consists of whole blocks.
///
/// # Safety
/// The pointers are valid for `len` bytes, and are equal or do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_xts_unit(unit: &mut Unit<'_>, src: *const u8, dst: *mut u8, len: usize) {
    let Unit { key, tweak_key, number, after, encrypts } = unit;
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    key.xts_unit(tweak_key, *encrypts != 0, number, Some(after), unsafe { span(src, dst, len) });
}

/// Multiplies a tweak of XTS by a power of x.
#[unsafe(no_mangle)]
pub extern "C" fn proof_advance_tweak(tweak: &mut Block, blocks: u64) {
    inline::advance_tweak(tweak, blocks);
}
