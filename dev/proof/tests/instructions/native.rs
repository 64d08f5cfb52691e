//! Execution of one instruction by the processor.

use std::arch::global_asm;
use std::ffi::c_void;
use std::is_x86_feature_detected;

use iced_x86::{Code, CpuidFeature};

use crate::state::State;

/// Defines fn(state: *mut State, code: *const u8) for vectors of one size, with the moves of vectors and masks. The offsets are those of
/// `State`.
macro_rules! execute {
    ($name:literal, $vector:literal, $store_vector:literal, [$($load:literal)?], [$($store:literal)?]) => {
        global_asm!(
    concat!($name, ":"),
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "push rdi",
    "push rsi",
    ".irp reg, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
    concat!($vector, "\\reg, [rdi + 128 + 64 * \\reg]"),
    ".endr",
    $(".irp reg, 0, 1, 2, 3, 4, 5, 6, 7", $load, ".endr",)?
    "push qword ptr [rdi + 1280]",
    "popfq",
    "mov rax, [rdi]",
    "mov rcx, [rdi + 8]",
    "mov rdx, [rdi + 16]",
    "mov rbx, [rdi + 24]",
    "mov rbp, [rdi + 40]",
    "mov rsi, [rdi + 48]",
    "mov r8, [rdi + 64]",
    "mov r9, [rdi + 72]",
    "mov r10, [rdi + 80]",
    "mov r11, [rdi + 88]",
    "mov r12, [rdi + 96]",
    "mov r13, [rdi + 104]",
    "mov r14, [rdi + 112]",
    "mov r15, [rdi + 120]",
    "mov rdi, [rdi + 56]",
    "call [rsp]",
    "pushfq",
    "push rax",
    "mov rax, [rsp + 24]",
    "mov [rax + 8], rcx",
    "mov [rax + 16], rdx",
    "mov [rax + 24], rbx",
    "mov [rax + 40], rbp",
    "mov [rax + 48], rsi",
    "mov [rax + 56], rdi",
    "mov [rax + 64], r8",
    "mov [rax + 72], r9",
    "mov [rax + 80], r10",
    "mov [rax + 88], r11",
    "mov [rax + 96], r12",
    "mov [rax + 104], r13",
    "mov [rax + 112], r14",
    "mov [rax + 120], r15",
    "pop rcx",
    "mov [rax], rcx",
    "pop rcx",
    "mov [rax + 1280], rcx",
    ".irp reg, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
    concat!($store_vector, "\\reg"),
    ".endr",
    $(".irp reg, 0, 1, 2, 3, 4, 5, 6, 7", $store, ".endr",)?
    "vzeroupper",
    "cld",
    "pop rsi",
    "pop rdi",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
        );
    };
}

execute!("lockstep_proof_execute", "vmovdqu ymm", "vmovdqu [rax + 128 + 64 * \\reg], ymm", [], []);
execute!(
    "lockstep_proof_execute_wide",
    "vmovdqu64 zmm",
    "vmovdqu64 [rax + 128 + 64 * \\reg], zmm",
    ["kmovq k\\reg, [rdi + 1216 + 8 * \\reg]"],
    ["kmovq [rax + 1216 + 8 * \\reg], k\\reg"]
);

unsafe extern "C" {
    fn lockstep_proof_execute(state: *mut State, code: *const u8);
    fn lockstep_proof_execute_wide(state: *mut State, code: *const u8);
    fn mmap(
        address: *mut c_void,
        len: usize,
        protection: i32,
        flags: i32,
        file: i32,
        offset: i64,
    ) -> *mut c_void;
}

/// A page for code.
pub(crate) struct Page(*mut u8);

impl Page {
    pub(crate) fn new() -> Page {
        const READ_WRITE_EXECUTE: i32 = 7;
        const PRIVATE_ANONYMOUS: i32 = 0x22;
        // SAFETY: the call makes new pages.
        let page = unsafe { mmap(std::ptr::null_mut(), 4096, READ_WRITE_EXECUTE, PRIVATE_ANONYMOUS, -1, 0) };
        assert!(page as isize != -1, "no page for code");
        Page(page.cast())
    }

    /// Executes an instruction on the state. The instruction may change the registers and the memory of the state.
    pub(crate) fn execute(&self, code: &[u8], state: &mut State) {
        const RET: u8 = 0xc3;
        // SAFETY: the page has 4096 bytes, and nothing else uses it.
        unsafe {
            std::ptr::copy_nonoverlapping(code.as_ptr(), self.0, code.len());
            self.0.add(code.len()).write(RET);
            if is_wide() {
                lockstep_proof_execute_wide(state, self.0)
            } else {
                lockstep_proof_execute(state, self.0)
            }
        }
    }
}

/// True if the processor has vectors of 512 bits and masks. Otherwise, the upper halves of vectors and the masks are neither loaded nor
/// stored.
pub(crate) fn is_wide() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
}

/// True if the processor has the instruction. Features that are not in this list count as missing.
pub(crate) fn has(code: Code) -> bool {
    code.cpuid_features().iter().all(|feature| match feature {
        CpuidFeature::INTEL8086
        | CpuidFeature::INTEL186
        | CpuidFeature::INTEL386
        | CpuidFeature::INTEL486
        | CpuidFeature::X64
        | CpuidFeature::CMOV
        | CpuidFeature::MULTIBYTENOP
        | CpuidFeature::SSE
        | CpuidFeature::SSE2 => true,
        CpuidFeature::SSE3 => is_x86_feature_detected!("sse3"),
        CpuidFeature::SSSE3 => is_x86_feature_detected!("ssse3"),
        CpuidFeature::SSE4_1 => is_x86_feature_detected!("sse4.1"),
        CpuidFeature::SSE4_2 => is_x86_feature_detected!("sse4.2"),
        CpuidFeature::AVX => is_x86_feature_detected!("avx"),
        CpuidFeature::AVX2 => is_x86_feature_detected!("avx2"),
        CpuidFeature::AES => is_x86_feature_detected!("aes"),
        CpuidFeature::PCLMULQDQ => is_x86_feature_detected!("pclmulqdq"),
        CpuidFeature::VAES => is_x86_feature_detected!("vaes"),
        CpuidFeature::VPCLMULQDQ => is_x86_feature_detected!("vpclmulqdq"),
        CpuidFeature::BMI1 => is_x86_feature_detected!("bmi1"),
        CpuidFeature::BMI2 => is_x86_feature_detected!("bmi2"),
        CpuidFeature::LZCNT => is_x86_feature_detected!("lzcnt"),
        CpuidFeature::POPCNT => is_x86_feature_detected!("popcnt"),
        CpuidFeature::AVX512F => is_wide(),
        CpuidFeature::AVX512BW => is_wide(),
        CpuidFeature::AVX512VL => is_x86_feature_detected!("avx512vl"),
        CpuidFeature::AVX512DQ => is_x86_feature_detected!("avx512dq"),
        CpuidFeature::MOVBE => is_x86_feature_detected!("movbe"),
        _ => false,
    })
}
