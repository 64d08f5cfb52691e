//! Public calls leave no secret in the vector registers and in the general registers that a function need not preserve.

use std::arch::asm;
use std::collections::HashSet;
use std::hint::black_box;

use lockstep_core::Key;
use lockstep_core::backend::{Device, kernel_by_name};
use lockstep_core::data::Data;
use lockstep_core::work::{AeadMessage, FusedAead, Status, Tag, Task};
use lockstep_reference::Aes;

use super::*;
use lockstep_cpu::kernel::Kernel;
use lockstep_cpu::vectors::{AesNi, Vaes256, Vaes512};
use lockstep_cpu::{Cpu, CpuOptions};

/// The size of 32 vector registers of 64 bytes, the largest number of vector registers, and of nine general registers.
const BYTES: usize = 32 * 64 + 9 * 8;

/// Stores registers to consecutive places.
macro_rules! store {
    ($to:ident, $instruction:literal, $register:literal, $size:literal, $($number:literal)*) => {
        asm!(
            $(concat!($instruction, " [{to} + ", $size, " * ", $number, "], ", $register, $number),)*
            to = in(reg) $to,
            options(nostack, preserves_flags)
        )
    };
}

/// Calls a function with vector registers that are zero, and returns the contents of the registers after it. Before the call, the test
/// has copied secrets by the C library's `memcpy`, which leaves them in vector registers.
#[inline(never)]
fn registers_after(call: &mut dyn FnMut()) -> Vec<u8> {
    let (is_zmm, is_ymm) = (is_x86_feature_detected!("avx512f"), is_x86_feature_detected!("avx"));
    let mut bytes = vec![0u8; BYTES];
    let to = bytes.as_mut_ptr();
    let general = to.wrapping_add(32 * 64);
    // SAFETY: the processor has the instructions, and the registers are declared as written by the clobbers of the C convention.
    unsafe {
        if is_zmm {
            asm!(
                "vpxord zmm16, zmm16, zmm16",
                "vpxord zmm17, zmm17, zmm17",
                "vpxord zmm18, zmm18, zmm18",
                "vpxord zmm19, zmm19, zmm19",
                "vpxord zmm20, zmm20, zmm20",
                "vpxord zmm21, zmm21, zmm21",
                "vpxord zmm22, zmm22, zmm22",
                "vpxord zmm23, zmm23, zmm23",
                "vpxord zmm24, zmm24, zmm24",
                "vpxord zmm25, zmm25, zmm25",
                "vpxord zmm26, zmm26, zmm26",
                "vpxord zmm27, zmm27, zmm27",
                "vpxord zmm28, zmm28, zmm28",
                "vpxord zmm29, zmm29, zmm29",
                "vpxord zmm30, zmm30, zmm30",
                "vpxord zmm31, zmm31, zmm31",
                "vzeroall",
                clobber_abi("C"),
                options(nomem, nostack, preserves_flags)
            );
        } else if is_ymm {
            asm!("vzeroall", clobber_abi("C"), options(nomem, nostack, preserves_flags));
        }
    }
    call();
    // SAFETY: there is memory for the registers. A function preserves R12, so that the address does not change the others.
    unsafe {
        asm!(
            "mov [r12], rax",
            "mov [r12 + 8], rcx",
            "mov [r12 + 16], rdx",
            "mov [r12 + 24], rsi",
            "mov [r12 + 32], rdi",
            "mov [r12 + 40], r8",
            "mov [r12 + 48], r9",
            "mov [r12 + 56], r10",
            "mov [r12 + 64], r11",
            in("r12") general,
            options(nostack, preserves_flags)
        );
    }
    // SAFETY: the processor has the instructions, and there is memory for all registers.
    unsafe {
        if is_zmm {
            store!(to, "vmovdqu64", "zmm", 64, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29
                30 31);
        } else if is_ymm {
            store!(to, "vmovdqu", "ymm", 32, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        } else {
            store!(to, "movdqu", "xmm", 16, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        }
    }
    bytes
}

const KEY: [u8; 16] = *b"\x93\x1c\x7e\xd0\x55\xa8\x2b\xf6\x41\x0d\xbb\x68\xc4\x3a\x97\xe2";
const LEN: usize = 16 * 80;

fn plaintext() -> Vec<u8> {
    bytes(7, LEN)
}

/// The secrets, in halves of 8 bytes: the round keys, H, the plaintext, and the plaintext XORed with the first and with the last round key.
/// The set also contains the halves of each block with its bytes in reverse order.
fn secrets() -> HashSet<[u8; 8]> {
    let key = Key::new(&KEY).unwrap();
    let keys = key.round_keys().as_blocks();
    let mut blocks = keys.to_vec();
    blocks.push(Aes::new(&KEY).encrypt([0; 16]));
    for text in plaintext().as_chunks::<16>().0 {
        blocks.push(*text);
        blocks.extend([keys[0], keys[10]].map(|key| std::array::from_fn(|i| key[i] ^ text[i])));
    }
    let reversed: Vec<_> = blocks.iter().map(|block| u128::from_le_bytes(*block).to_be_bytes()).collect();
    blocks.into_iter().chain(reversed).flat_map(|block| block.as_chunks::<8>().0.to_vec()).collect()
}

struct Search(HashSet<[u8; 8]>);

impl Search {
    /// True if a call leaves a secret.
    fn finds(&self, call: &mut dyn FnMut()) -> bool {
        let registers = registers_after(call);
        registers.as_chunks::<8>().0.iter().any(|word| self.0.contains(word))
    }

    fn check(&self, kernel: InlineKernel, what: &str, mut call: impl FnMut()) {
        assert!(!self.finds(&mut call), "{}: {what}", kernel.name());
    }
}

/// The control: a kernel's own function clears no registers.
fn check_search<K: Kernel>(kernel: Option<K>) {
    let Some(kernel) = kernel else { return };
    let (schedule, mut data) = (kernel.expand(&KEY), plaintext());
    let found = Search(secrets()).finds(&mut || {
        kernel.ctr32(&schedule, &mut [9; 16], Span::in_place(&mut data));
    });
    assert!(found, "{}", K::NAME);
}

#[test]
fn the_search_finds_what_a_kernel_leaves() {
    check_search(AesNi::detect());
    check_search(Vaes256::detect());
    check_search(Vaes512::detect());
}

#[test]
fn keys_and_modes_leave_nothing() {
    let search = Search(secrets());
    for kernel in InlineKernel::all() {
        let key = InlineKey::new(kernel, &KEY).unwrap();
        for len in [16, 64, LEN] {
            let mut data = plaintext();
            let mut check = |what, mode: &dyn Fn(&mut Block, Span<'_>)| {
                data.copy_from_slice(&plaintext());
                let mut register = [9; 16];
                search
                    .check(kernel, what, || mode(black_box(&mut register), Span::in_place(&mut data[..len])));
            };
            check("encrypt_block", &|register, _| key.encrypt_block(register));
            check("ecb_encrypt", &|_, data| key.ecb_encrypt(data));
            check("ecb_decrypt", &|_, data| key.ecb_decrypt(data));
            check("cbc_encrypt", &|register, data| key.cbc_encrypt(register, data));
            check("cbc_decrypt", &|register, data| key.cbc_decrypt(register, data));
            check("cfb128_encrypt", &|register, data| {
                key.serial(Pass::Cfb128Encrypt, register, 8 * len, data)
            });
            check("cfb128_decrypt", &|register, data| key.cfb128_decrypt(register, data));
            check("cfb8_encrypt", &|register, data| key.serial(Pass::Cfb8Encrypt, register, 8 * len, data));
            check("cfb1_encrypt", &|register, data| key.serial(Pass::Cfb1Encrypt, register, 8, data));
            check("ofb", &|register, data| key.serial(Pass::Ofb, register, 8 * len, data));
            check("ctr", &|register, data| key.ctr(register, data));
            check("ctr32", &|register, data| key.ctr32(register, data));
            check("xts_encrypt", &|register, data| key.xts_encrypt(register, data));
            check("xts_unit", &|register, data| key.xts_unit(&key, true, register, None, data));
        }
        for len in [13, 16, 64, 77, LEN] {
            for (what, encrypts) in [("ccm", true), ("ccm opened", false)] {
                let (mut data, mut register) = (plaintext(), [9; 16]);
                search.check(kernel, what, || {
                    key.ccm(encrypts, black_box(&mut register), &[7; 16], Span::in_place(&mut data[..len]));
                });
            }
        }
    }
}

#[test]
fn gcm_and_ocb_leave_nothing() {
    let search = Search(secrets());
    for kernel in InlineKernel::all() {
        let (mut gcm, mut copy) = (None, None);
        search.check(kernel, "InlineGcm::new", || gcm = InlineGcm::new(kernel, &KEY));
        let mut gcm = gcm.unwrap();
        let mut ocb = InlineOcb::new(kernel, &KEY).unwrap();
        search.check(kernel, "InlineGcm::set_key", || assert!(gcm.set_key(&KEY)));
        for len in [5, 16, 64, 500, LEN] {
            let mut data = plaintext();
            search.check(kernel, "InlineGcm::start", || assert!(gcm.start(true, &[7; 12])));
            // After 20 bytes, short data wait to be hashed; after 100 bytes, they do not.
            let aad = &[8; 100][..if len == 16 || len == 64 { 20 } else { 100 }];
            search.check(kernel, "InlineGcm::aad", || assert!(gcm.aad(aad)));
            search
                .check(kernel, "InlineGcm::update", || assert!(gcm.update(Span::in_place(&mut data[..len]))));
            search.check(kernel, "InlineGcm::duplicate", || copy = gcm.duplicate());
            let tag = copy.as_mut().and_then(InlineGcm::finish_seal).unwrap();
            search.check(kernel, "InlineGcm::finish_seal", || {
                assert!(black_box(gcm.finish_seal()).is_some());
            });
            // The message is forged, so its right tag is a secret, which `finish_open` must not leave in registers.
            assert!(gcm.start(false, &[7; 12]) && gcm.aad(aad));
            assert!(gcm.update(Span::in_place(&mut data[..len])));
            let search_tag = Search(tag.as_chunks::<8>().0.iter().copied().collect());
            search_tag.check(kernel, "InlineGcm::finish_open", || {
                assert!(!gcm.finish_open(black_box(&[0; 16])));
            });
            let mut data = plaintext();
            search.check(kernel, "InlineOcb::start", || ocb.start(true, &[7; 12], 16));
            search.check(kernel, "InlineOcb::aad", || ocb.aad(&[8; 100]));
            search.check(kernel, "InlineOcb::blocks", || ocb.blocks(Span::in_place(&mut data[..len & !15])));
            search.check(kernel, "InlineOcb::finish_open", || assert!(!ocb.finish_open(black_box(&[0; 16]))));
        }
    }
}

#[test]
fn tasks_leave_nothing() {
    let search = Search(secrets());
    let cpu = Cpu::new(&CpuOptions { threads: Some(1) });
    for kernel in InlineKernel::all() {
        let id = kernel_by_name(&cpu, kernel.name()).unwrap();
        for fused in [FusedAead::GcmSeal, FusedAead::GcmSivSeal, FusedAead::OcbSeal] {
            let (key, mut data, mut tag) = (Key::new(&KEY).unwrap(), plaintext(), [0; 16]);
            let (data, tag) = (Data::in_place(&mut data), Tag::Write(&mut tag));
            let mut message = [AeadMessage {
                key: &key,
                nonce: &[7; 12],
                aad: &[8; 20],
                data,
                tag,
                status: Status::Pending,
            }];
            search.check(kernel, &format!("{fused:?}"), || {
                drop(cpu.submit(id, Task::Fused(fused, &mut message).into()));
            });
        }
    }
}
