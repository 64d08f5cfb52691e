//! Functions that write a key directly to its destination leave no copy of the key on the stack.

use std::arch::asm;
use std::collections::HashSet;

use lockstep_core::stack;

use super::*;
use lockstep_cpu::kernel::Kernel;
use lockstep_cpu::vectors::{AesNi, Vaes256, Vaes512};

/// The search covers this number of bytes of the stack below the caller's frame.
const DEPTH: usize = 12 << 10;

/// Copies bytes with a machine instruction, because Rust does not allow reads of padding and of the stack below a function.
fn copy(from: *const u8, to: &mut [u8]) {
    // SAFETY: the callers pass `to.len()` mapped bytes. The direction flag is clear at function boundaries.
    unsafe {
        asm!(
            "rep movsb",
            inout("rsi") from => _,
            inout("rdi") to.as_mut_ptr() => _,
            inout("rcx") to.len() => _,
            options(nostack, preserves_flags)
        );
    }
}

/// Copies the part of the stack below the caller's frame.
#[inline(never)]
fn below(to: &mut [u8; DEPTH]) {
    let here = 0u8;
    copy((&raw const here).wrapping_sub(DEPTH), to);
}

#[inline(never)]
fn in_own_frame<T>(call: impl FnOnce() -> T) -> T {
    call()
}

/// The number of different blocks of a value that a call leaves on the stack. Blocks that are mostly zeros are not counted, since
/// they are not parts of a key.
fn left<T>(stack: &mut [u8; DEPTH], value: &mut T, call: impl FnOnce(&mut T)) -> usize {
    // This call wipes the stack, and makes the operating system map its memory.
    stack::wipe_below();
    in_own_frame(|| call(value));
    below(stack);
    let mut bytes = vec![0; size_of::<T>()];
    copy((&raw const *value).cast(), &mut bytes);
    let blocks: HashSet<&[u8; 16]> = bytes.as_chunks().0.iter().collect();
    let is_secret = |block: &&&[u8; 16]| block.iter().filter(|byte| **byte != 0).count() > 8;
    let is_found = |block: &&&[u8; 16]| stack.windows(16).any(|window| window == **block);
    let found = blocks.iter().filter(is_secret).filter(is_found).count();
    assert!(blocks.iter().filter(is_secret).count() > 0, "the value has been set");
    found
}

fn check<K: Kernel>(kernel: Option<K>) {
    let Some(kernel) = kernel else { return };
    let stack = &mut *Box::new([0; DEPTH]);
    let blank = || Box::new((kernel.blank_schedule().unwrap(), kernel.blank_hash_key().unwrap()));
    let (mut keys, mut copy) = (blank(), blank());
    let keys = &mut *keys;
    for len in KEY_LENGTHS {
        let name = |function: &str| format!("{}, {len} bytes: {function}", K::NAME);
        let key = bytes(len, len);
        let found = left(stack, keys, |(schedule, hash)| kernel.gcm_key_into(&key, schedule, hash));
        assert_eq!(found, 0, "{}", name("gcm_key_into"));
        let found = left(stack, &mut copy.0, |place| kernel.expand_into(&key, place));
        assert_eq!(found, 0, "{}", name("expand_into"));
        let found = left(stack, &mut copy.0, |place| kernel.expand_to_encrypt_into(&key, place));
        assert_eq!(found, 0, "{}", name("expand_to_encrypt_into"));
        let found = left(stack, &mut copy.0, |place| kernel.copy_schedule(&keys.0, place));
        assert_eq!(found, 0, "{}", name("copy_schedule"));
        let mut h = [0; 16];
        kernel.encrypt_block(&keys.0, &mut h);
        let found = left(stack, &mut keys.1, |hash| kernel.hash_keys_into(&[h], std::slice::from_mut(hash)));
        assert_eq!(found, 0, "{}", name("hash_keys_into"));
        let found = left(stack, &mut keys.1, |hash| kernel.ensure_powers(hash, usize::MAX));
        assert_eq!(found, 0, "{}", name("ensure_powers"));
        // The control: keys that are moved leave a copy, which the search must find.
        let found = left(stack, &mut keys.1, |hash| *hash = kernel.hash_key(&h));
        assert!(found > 0, "{}", name("a key that is moved is not found"));
    }
}

#[test]
fn keys_are_written_to_their_place() {
    check(AesNi::detect());
    check(Vaes256::detect());
    check(Vaes512::detect());
}
