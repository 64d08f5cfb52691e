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
