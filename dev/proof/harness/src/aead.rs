//! Incremental GCM and OCB3, and GCM of whole messages.

use std::mem::MaybeUninit;

use lockstep_core::work::Tag;
use lockstep_cpu::inline::{Block, InlineGcm, InlineKernel, InlineOcb};

use crate::{bytes, span};

/// Memory for an OCB3 object, which [`proof_ocb_set`] creates in it.
pub type OcbPlace = MaybeUninit<Option<InlineOcb>>;

/// Makes a GCM object with a key of `len` bytes. Returns null if memory cannot be allocated.
///
/// # Safety
/// The pointer is valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_gcm_new(kernel: &InlineKernel, key: *const u8, len: usize) -> *mut InlineGcm {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    let gcm = InlineGcm::new(*kernel, unsafe { bytes(key, len) });
    gcm.map_or(std::ptr::null_mut(), |gcm| Box::into_raw(Box::new(gcm)))
}

/// Drops a GCM object.
///
/// # Safety
/// [`proof_gcm_new`] or [`proof_gcm_copy`] returned the pointer, and no other function uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_gcm_drop(gcm: *mut InlineGcm) {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    drop(unsafe { Box::from_raw(gcm) });
}

/// Copies a GCM object with its state. Returns null if memory cannot be allocated.
#[unsafe(no_mangle)]
pub extern "C" fn proof_gcm_copy(gcm: &InlineGcm) -> *mut InlineGcm {
    gcm.duplicate().map_or(std::ptr::null_mut(), |gcm| Box::into_raw(Box::new(gcm)))
}

/// Replaces the key of a GCM object.
///
/// # Safety
/// The pointer is valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_gcm_set_key(gcm: &mut InlineGcm, key: *const u8, len: usize) -> bool {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    gcm.set_key(unsafe { bytes(key, len) })
}

/// Starts a message.
///
/// # Safety
/// The pointer is valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_gcm_start(
    gcm: &mut InlineGcm,
    encrypts: bool,
    iv: *const u8,
    len: usize,
) -> bool {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    gcm.start(encrypts, unsafe { bytes(iv, len) })
}

/// Adds additional data.
///
/// # Safety
/// The pointer is valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_gcm_aad(gcm: &mut InlineGcm, aad: *const u8, len: usize) -> bool {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    gcm.aad(unsafe { bytes(aad, len) })
}

/// Encrypts or decrypts data.
///
/// # Safety
/// The pointers are valid for `len` bytes, and are equal or do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_gcm_update(
    gcm: &mut InlineGcm,
    src: *const u8,
    dst: *mut u8,
    len: usize,
) -> bool {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    gcm.update(unsafe { span(src, dst, len) })
}

/// Ends an encryption and writes its tag.
#[unsafe(no_mangle)]
pub extern "C" fn proof_gcm_seal(gcm: &mut InlineGcm, tag: &mut Block) -> bool {
    gcm.finish_seal_into(tag)
}

/// Ends a decryption and compares its tag. Returns true if the tag is right.
#[unsafe(no_mangle)]
pub extern "C" fn proof_gcm_open(gcm: &mut InlineGcm, tag: &Block) -> bool {
    gcm.finish_open(tag)
}

/// A message of [`proof_gcm_message`] and [`proof_gcm_shared_message`]: an IV of 12 bytes, additional data, data, and a tag that is written or compared.
#[repr(C)]
pub struct Message<'a> {
    iv: &'a [u8; 12],
    aad: *const u8,
    aad_len: usize,
    src: *const u8,
    dst: *mut u8,
    len: usize,
    tag: &'a mut Block,
    encrypts: usize,
}

/// Defines functions for whole messages.
macro_rules! messages {
    ($($function:ident = $message:ident($gcm:ty);)*) => {
        $(
            /// Processes a whole message.
            ///
            /// # Safety
            /// The pointers of the message are valid for the stated lengths.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $function(gcm: $gcm, message: &mut Message<'_>) -> bool {
                let Message { iv, aad, aad_len, src, dst, len, ref mut tag, encrypts } = *message;
                // SAFETY: the caller guarantees the conditions of `# Safety`.
                let (aad, data) = unsafe { (bytes(aad, aad_len), span(src, dst, len)) };
                let tag = &mut if encrypts != 0 { Tag::Write(*tag) } else { Tag::Expect(*tag) };
                gcm.$message(iv, aad, data, tag) == Some(true)
            }
        )*
    };
}

messages! {
    proof_gcm_message = message(&mut InlineGcm);
    proof_gcm_shared_message = shared_message(&InlineGcm);
}

/// Allocates memory for an OCB3 object, which [`proof_ocb_set`] creates in it.
#[unsafe(no_mangle)]
pub extern "C" fn proof_ocb_place() -> *mut OcbPlace {
    Box::into_raw(Box::new(MaybeUninit::uninit()))
}

/// Creates an OCB3 object with a key of `len` bytes. Returns false if memory cannot be allocated.
///
/// # Safety
/// The pointer is valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_ocb_set(
    place: &mut OcbPlace,
    kernel: &InlineKernel,
    key: *const u8,
    len: usize,
) -> bool {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    place.write(InlineOcb::new(*kernel, unsafe { bytes(key, len) })).is_some()
}

/// Drops an OCB3 object and frees its memory.
///
/// # Safety
/// [`proof_ocb_set`] has filled the place, and no other function uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_ocb_drop(place: *mut Option<InlineOcb>) {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    drop(unsafe { Box::from_raw(place) });
}

/// Copies an OCB3 object with its state to other memory. Returns false if memory cannot be allocated.
#[unsafe(no_mangle)]
pub extern "C" fn proof_ocb_copy(place: &mut OcbPlace, ocb: &InlineOcb) -> bool {
    place.write(ocb.duplicate()).is_some()
}

/// Starts a message with tags of `tag_len` bytes.
///
/// # Safety
/// The pointer is valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_ocb_start(
    ocb: &mut InlineOcb,
    encrypts: bool,
    nonce: *const u8,
    len: usize,
    tag_len: usize,
) {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    ocb.start(encrypts, unsafe { bytes(nonce, len) }, tag_len);
}

/// Adds associated data.
///
/// # Safety
/// The pointer is valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_ocb_aad(ocb: &mut InlineOcb, aad: *const u8, len: usize) {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    ocb.aad(unsafe { bytes(aad, len) });
}

/// Encrypts or decrypts whole blocks.
///
/// # Safety
/// The pointers are valid for `len` bytes, and are equal or do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_ocb_blocks(ocb: &mut InlineOcb, src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    ocb.blocks(unsafe { span(src, dst, len) });
}

/// Encrypts or decrypts the last, partial block.
///
/// # Safety
/// The pointers are valid for `len` bytes, and are equal or do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_ocb_last(ocb: &mut InlineOcb, src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    ocb.last(unsafe { span(src, dst, len) });
}

/// Ends an encryption and writes its tag.
#[unsafe(no_mangle)]
pub extern "C" fn proof_ocb_seal(ocb: &mut InlineOcb, tag: &mut Block) {
    *tag = ocb.finish_seal();
}

/// Ends a decryption and compares its tag. Returns true if the tag is right.
///
/// # Safety
/// The pointer is valid for `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn proof_ocb_open(ocb: &mut InlineOcb, tag: *const u8, len: usize) -> bool {
    // SAFETY: the caller guarantees the conditions of `# Safety`.
    ocb.finish_open(unsafe { bytes(tag, len) })
}
