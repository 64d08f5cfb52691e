//! Functions that leak on purpose. The analysis must report each of them.

use std::arch::asm;
use std::hint::black_box;
use std::sync::atomic::{AtomicU8, Ordering};

/// Branches on a secret.
#[unsafe(no_mangle)]
pub extern "C" fn proof_control_branch(secret: &[u8; 16], result: &mut [u8; 16]) {
    if secret[3] & 1 == 1 {
        black_box(&mut *result)[0] = 1;
    } else {
        black_box(result)[1] = 2;
    }
}

/// Reads a table at a secret index.
#[unsafe(no_mangle)]
pub extern "C" fn proof_control_address(secret: &[u8; 16], result: &mut [u8; 16]) {
    static TABLE: [u8; 256] = [0x63; 256];
    result[0] = black_box(&TABLE)[usize::from(secret[0])];
}

/// Divides by a secret. The time of a division depends on the divisor.
#[unsafe(no_mangle)]
pub extern "C" fn proof_control_time(secret: &[u8; 16], result: &mut [u8; 16]) {
    let divisor = u64::from(secret[0]) | 0x100;
    result[0] = (black_box(u64::MAX) / divisor) as u8;
}

/// Leaves a secret in a vector register.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
pub extern "C" fn proof_control_register(secret: &[u8; 16], _: &mut [u8; 16]) {
    // SAFETY: the instruction reads 16 bytes of the argument.
    unsafe {
        asm!("movdqu xmm7, [{secret}]", secret = in(reg) secret, out("xmm7") _, options(nostack, readonly))
    };
}

/// Leaves a secret in a register whose value functions must preserve. The function is naked, because a prologue would
/// save the register and the epilogue would restore it.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn proof_control_preserved(secret: &[u8; 16], _: &mut [u8; 16]) {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("mov rbx, [rdi]", "ret");
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("ldr d8, [x0]", "ret");
}

/// Leaves a secret on the stack.
#[unsafe(no_mangle)]
pub extern "C" fn proof_control_stack(secret: &[u8; 16], _: &mut [u8; 16]) {
    let mut copy = [0u8; 64];
    copy[16..32].copy_from_slice(secret);
    black_box(&mut copy);
}

/// Frees memory that holds a secret.
#[unsafe(no_mangle)]
pub extern "C" fn proof_control_heap(secret: &[u8; 16], _: &mut [u8; 16]) {
    drop(black_box(Box::new(*secret)));
}

/// Reads the byte after the secret.
#[unsafe(no_mangle)]
pub extern "C" fn proof_control_read(secret: &[u8; 16], result: &mut [u8; 16]) {
    // There is no such byte. The volatile read is never executed: the function is only interpreted.
    // SAFETY: none; this is the fault that the analysis must find.
    result[0] = unsafe { black_box(secret.as_ptr()).add(16).read_volatile() };
}

/// Writes the byte after the result.
#[unsafe(no_mangle)]
pub extern "C" fn proof_control_write(_: &[u8; 16], result: &mut [u8; 16]) {
    // SAFETY: none; this is the fault that the analysis must find. The function is only interpreted.
    unsafe { black_box(result.as_mut_ptr()).add(16).write_volatile(1) };
}

/// Writes only 15 bytes of the result.
#[unsafe(no_mangle)]
pub extern "C" fn proof_control_partial(secret: &[u8; 16], result: &mut [u8; 16]) {
    for (result, secret) in result[..15].iter_mut().zip(secret) {
        *result = !*secret;
    }
}

/// Writes a wrong result.
#[unsafe(no_mangle)]
pub extern "C" fn proof_control_result(secret: &[u8; 16], result: &mut [u8; 16]) {
    *result = *secret;
}

/// Leaves a secret in a static variable.
#[unsafe(no_mangle)]
pub extern "C" fn proof_control_static(secret: &[u8; 16], _: &mut [u8; 16]) {
    static PLACE: AtomicU8 = AtomicU8::new(0);
    black_box(&PLACE).store(secret[0], Ordering::Relaxed);
}

/// Leaves a secret in a block that is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn proof_control_unfreed(secret: &[u8; 16], _: &mut [u8; 16]) {
    black_box(Box::leak(Box::new(*secret)));
}

/// Writes the complement of the secret. For one in 65,536 secrets, a byte of the result is wrong. No branch and no address depends on the
/// secret, so that only a proof for all secrets finds the fault.
#[unsafe(no_mangle)]
pub extern "C" fn proof_control_rare(secret: &[u8; 16], result: &mut [u8; 16]) {
    for (result, secret) in result.iter_mut().zip(secret) {
        *result = !*secret;
    }
    let difference = u32::from(u16::from_le_bytes([secret[0], secret[1]]) ^ 0x1234);
    // The top bit of the number is set only if the difference is zero.
    result[5] ^= (black_box(difference).wrapping_sub(1) >> 31) as u8;
}

/// The block at an address.
///
/// # Safety
/// The pointer is valid for 16 bytes.
unsafe fn block(data: *const u8) -> u128 {
    // SAFETY: the caller guarantees the condition of `# Safety`.
    unsafe { data.cast::<u128>().read_unaligned() }
}

/// Defines functions whose loops over blocks go wrong only after many iterations. In each block of the output, all bits of the input are
/// inverted. The first argument is not used.
macro_rules! loops {
    ($($(#[$doc:meta])* $function:ident($state:ident: $type:ty = $start:expr, $index:ident, $input:ident) $body:block)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// The pointers are valid for `len` bytes, and are equal or do not overlap. Most of these functions nevertheless have a fault.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $function(_: &[u8; 16], src: *const u8, dst: *mut u8, len: usize) {
                let mut $state: $type = $start;
                for $index in 0..len / 16 {
                    // The block is not processed together with others.
                    // SAFETY: the caller guarantees the conditions of `# Safety`.
                    let $input = black_box(unsafe { block(src.wrapping_add(16 * $index)) });
                    let (output, place): (u128, usize) = $body;
                    // SAFETY: the fault of `proof_control_loop_pointer`; the function is only interpreted.
                    unsafe { dst.wrapping_add(place).cast::<u128>().write_unaligned(output) };
                }
                black_box(&mut $state);
            }
        )*
    };
}

loops! {
    /// Is right for every length.
    proof_control_loop_right(state: u64 = 0, index, input) {
        state += 2;
        (!input, 16 * index)
    }

    /// Branches on the number of a block.
    proof_control_loop_branch(state: u64 = 0, index, input) {
        if black_box(index) == 1000 {
            state = 1;
        }
        (!input, 16 * index)
    }

    /// Computes a wrong block without a branch.
    proof_control_loop_result(state: u64 = 1000, index, input) {
        state = state.wrapping_sub(1);
        // The top bit of the number is set only if the state is zero.
        (!input ^ u128::from(black_box(state).wrapping_sub(1) >> 63 & !state >> 63), 16 * index)
    }

    /// Moves the pointer of the output by one more byte after each 1024 blocks.
    proof_control_loop_pointer(state: u64 = 0, index, input) {
        state += 1;
        (!input, 16 * index + (state >> 10) as usize)
    }

    /// Branches on a byte of the block that was read six iterations before.
    proof_control_loop_late(state: [u128; 6] = [0; 6], index, input) {
        let first = black_box(state[0]);
        black_box(&mut state).rotate_left(1);
        state[5] = input;
        if first & 1 == 1 {
            black_box(&mut state)[5] = 0;
        }
        (!input, 16 * index)
    }
}
