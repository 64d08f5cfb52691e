//! The client requests of valgrind (valgrind.h and memcheck.h, 3.19) that the probe uses.

use std::arch::asm;

const RUNNING_ON_VALGRIND: u64 = 0x1001;
const COUNT_ERRORS: u64 = 0x1201;
const MEMCHECK: u64 = (b'M' as u64) << 24 | (b'C' as u64) << 16;
const MAKE_MEM_UNDEFINED: u64 = MEMCHECK + 1;
const MAKE_MEM_DEFINED: u64 = MEMCHECK + 2;
const GET_VBITS: u64 = MEMCHECK + 8;

fn request(code: u64, arguments: [u64; 3]) -> u64 {
    let [a, b, c] = arguments;
    let block = [code, a, b, c, 0, 0];
    let mut answer = 0u64;
    // SAFETY: without valgrind, the instructions rotate one register by 128 bits in total and exchange another register with itself, so
    // only the flags change. Valgrind recognises this sequence of instructions: it reads the block to which rax points, performs the
    // request, and returns the result in rdx.
    unsafe {
        asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") block.as_ptr(),
            inout("rdx") answer,
        );
    }
    answer
}

/// True under valgrind.
pub(crate) fn is_running() -> bool {
    request(RUNNING_ON_VALGRIND, [0; 3]) > 0
}

/// Number of reports so far, including repeated reports.
pub(crate) fn reports() -> u64 {
    request(COUNT_ERRORS, [0; 3])
}

/// Marks bytes as secret: branches and addresses that depend on them are reported.
pub(crate) fn hide(secret: &mut [u8]) {
    hide_shared(secret);
}

/// Like [`hide`], for shared bytes, such as those of a key.
pub(crate) fn hide_shared(secret: &[u8]) {
    // The request does not change the bytes, only their state in memcheck.
    request(MAKE_MEM_UNDEFINED, [secret.as_ptr() as u64, secret.len() as u64, 0]);
}

/// Declassifies bytes.
pub(crate) fn reveal(bytes: &mut [u8]) {
    request(MAKE_MEM_DEFINED, [bytes.as_mut_ptr() as u64, bytes.len() as u64, 0]);
}

/// True if every byte depends on a secret.
pub(crate) fn is_hidden(bytes: &[u8]) -> bool {
    let mut bits = vec![0u8; bytes.len()];
    // The request writes to `bits`, which is as long as `bytes`.
    let done = request(GET_VBITS, [bytes.as_ptr() as u64, bits.as_mut_ptr() as u64, bytes.len() as u64]);
    // The compiler assumes that the request has not changed `bits`. `black_box` makes the compiler read the new values.
    let bits = std::hint::black_box(bits);
    done == 1 && bits.iter().all(|&bits| bits != 0)
}
