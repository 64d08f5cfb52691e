//! Execution of a word by the processor, or by QEMU.

use std::arch::{global_asm, is_aarch64_feature_detected};
use std::mem::offset_of;
use std::ptr;

use lockstep_proof::decoder::{self, Opcode};

use super::state::{State, Values, execute, machine, read};
use super::{STATES, words};

// A function with the argument State*. It saves the registers of its caller, sets the stack pointer to the state, sets all other
// registers and the flags from the state, executes the word in the slot, stores all registers to the state, and returns. A copy of
// the code is executed.
global_asm!(
    ".global lockstep_proof_arm_start",
    "lockstep_proof_arm_start:",
    "sub sp, sp, #160",
    "stp x19, x20, [sp]", "stp x21, x22, [sp, #16]", "stp x23, x24, [sp, #32]",
    "stp x25, x26, [sp, #48]", "stp x27, x28, [sp, #64]", "stp x29, x30, [sp, #80]",
    "stp d8, d9, [sp, #96]", "stp d10, d11, [sp, #112]", "stp d12, d13, [sp, #128]", "stp d14, d15, [sp, #144]",
    "mov x9, sp",
    "str x9, [x0, #{stack}]",
    "mov sp, x0",
    "ldr x9, [sp, #{flags}]",
    "msr nzcv, x9",
    "add x9, sp, #{vectors}",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
    "ldr q\\n, [x9], #16",
    ".endr",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30",
    "ldr x\\n, [sp, #8 * \\n]",
    ".endr",
    ".global lockstep_proof_arm_slot",
    "lockstep_proof_arm_slot:",
    "nop",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30",
    "str x\\n, [sp, #8 * \\n]",
    ".endr",
    "mrs x9, nzcv",
    "str x9, [sp, #{flags}]",
    "add x9, sp, #{vectors}",
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
    "str q\\n, [x9], #16",
    ".endr",
    "ldr x9, [sp, #{stack}]",
    "mov sp, x9",
    "ldp x19, x20, [sp]", "ldp x21, x22, [sp, #16]", "ldp x23, x24, [sp, #32]",
    "ldp x25, x26, [sp, #48]", "ldp x27, x28, [sp, #64]", "ldp x29, x30, [sp, #80]",
    "ldp d8, d9, [sp, #96]", "ldp d10, d11, [sp, #112]", "ldp d12, d13, [sp, #128]", "ldp d14, d15, [sp, #144]",
    "add sp, sp, #160",
    "ret",
    ".global lockstep_proof_arm_end",
    "lockstep_proof_arm_end:",
    stack = const offset_of!(State, stack),
    flags = const offset_of!(State, flags),
    vectors = const offset_of!(State, vectors),
);

unsafe extern "C" {
    static lockstep_proof_arm_start: u8;
    static lockstep_proof_arm_slot: u8;
    static lockstep_proof_arm_end: u8;
    fn mmap(at: *mut u8, len: usize, protection: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
    fn __clear_cache(start: *mut u8, end: *mut u8);
}

/// A page with the code, and the place of the word in it.
struct Page {
    code: *mut u8,
    len: usize,
    slot: usize,
}

impl Page {
    fn new() -> Page {
        const READ_WRITE_EXECUTE: i32 = 7;
        const PRIVATE_ANONYMOUS: i32 = 0x22;
        // SAFETY: a new mapping affects no other memory. The three symbols are places in one piece of code.
        unsafe {
            let start = &raw const lockstep_proof_arm_start;
            let len = (&raw const lockstep_proof_arm_end).offset_from_unsigned(start);
            let slot = (&raw const lockstep_proof_arm_slot).offset_from_unsigned(start);
            let code = mmap(ptr::null_mut(), 4096, READ_WRITE_EXECUTE, PRIVATE_ANONYMOUS, -1, 0);
            assert!(code.addr() as isize != -1 && len <= 4096, "no memory for code");
            ptr::copy_nonoverlapping(start, code, len);
            Page { code, len, slot }
        }
    }

    /// Executes a word, which changes no register but those of the state, and accesses only the memory of the state.
    fn execute(&self, word: u32, state: &mut State) {
        // SAFETY: the slot is inside of the page, whose code saves what its caller needs. The words of the list have the stated property.
        unsafe {
            self.code.add(self.slot).cast::<u32>().write(word);
            __clear_cache(self.code, self.code.add(self.len));
            let function: unsafe extern "C" fn(*mut State) = std::mem::transmute(self.code);
            function(state);
        }
    }
}

/// True if the processor has an instruction. `tools/arm64/test.sh` sets LOCKSTEP_ARM64_TEST, which demands all of them.
fn is_present(opcode: Opcode) -> bool {
    use Opcode::{AESD, AESE, AESIMC, AESMC, EOR3, PMULL, PMULL2};
    let has_feature = match opcode {
        // The words with PMULL and PMULL2 multiply elements of 64 bits (FEAT_PMULL).
        AESD | AESE | AESIMC | AESMC | PMULL | PMULL2 => is_aarch64_feature_detected!("aes"),
        EOR3 => is_aarch64_feature_detected!("sha3"),
        _ => true,
    };
    has_feature || std::env::var_os("LOCKSTEP_ARM64_TEST").is_some()
}

#[test]
fn every_word_has_the_effect_that_the_processor_has() {
    let (mut random, page) = (Values(3), Page::new());
    let (mut compared, mut skipped) = (0, 0);
    for word in words() {
        let i = decoder::decode(&word.to_le_bytes()).expect("an instruction");
        if !is_present(i.opcode) {
            skipped += 1;
            continue;
        }
        let machine = machine(word);
        for _ in 0..STATES {
            let mut state = Box::new(random.state());
            let memory = state.memory_address();
            state.point_to_memory(&i, memory, &mut random);
            let after = execute(&machine, &state, &State::ZERO, memory).expect("the table has the word");
            let (expected, _) = read(&after, memory);
            page.execute(word, &mut state);
            state.stack = 0;
            assert!(
                *state == expected,
                "{word:08x} `{i}`: the processor has {state:x?}, the table {expected:x?}"
            );
            compared += 1;
        }
    }
    println!("{compared} states compared with the processor; it lacks {skipped} of {} words", words().len());
}
