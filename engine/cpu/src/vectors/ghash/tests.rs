use std::mem::ManuallyDrop;
use std::ptr::from_mut;

use super::*;
use crate::kernel::Kernel;

/// The bytes of all powers of a hash key except the vector of the lowest powers, and the sums of all vectors except that of the lowest
/// powers.
fn higher_powers<P>(key: &HashKey<P>) -> Vec<u8> {
    // SAFETY: both ranges lie inside the key, whose fields are initialised.
    unsafe {
        let powers = std::slice::from_raw_parts((&raw const key.powers).cast::<u8>(), size_of::<P>() / 8 * 7);
        let sums = std::slice::from_raw_parts(key.sums.as_ptr().cast::<u8>(), 16 * 7);
        [powers, sums].concat()
    }
}

/// The hash key of a child process that was forked while another thread of the parent computed the second half of the powers: only
/// one vector of this half has been written.
fn interrupted<P, K: Kernel<HashKey = HashKey<P>>>(kernel: K) -> ManuallyDrop<HashKey<P>> {
    let mut key = ManuallyDrop::new(kernel.hash_key(&[5; 16]));
    assert_eq!(key.made, 8);
    // SAFETY: the first three vectors of the highest powers lie inside the key.
    unsafe { from_mut(&mut key.powers).cast::<u8>().write_bytes(0, size_of::<P>() / 8 * 3) };
    assert!(higher_powers(&key).iter().any(|byte| *byte != 0));
    key
}

fn check<P, K: Kernel<HashKey = HashKey<P>>>(kernel: Option<K>) {
    let Some(kernel) = kernel else { return };
    let mut replaced = interrupted(kernel);
    kernel.hash_keys_into(&[[9; 16]], std::slice::from_mut(&mut *replaced));
    assert_eq!(replaced.made, 1);
    assert!(higher_powers(&replaced).iter().all(|byte| *byte == 0), "{}", K::NAME);
    kernel.ensure_powers(&mut replaced, usize::MAX);
    assert!(higher_powers(&replaced) == higher_powers(&kernel.hash_key(&[9; 16])), "{}", K::NAME);

    let mut dropped = interrupted(kernel);
    // SAFETY: the key is not dropped again.
    unsafe { ManuallyDrop::drop(&mut dropped) };
    // SAFETY: the memory still belongs to `dropped`, and all its values are plain numbers.
    let bytes = unsafe {
        let len = std::mem::offset_of!(HashKey<P>, made);
        std::slice::from_raw_parts((&raw const dropped).cast::<u8>(), len)
    };
    assert!(bytes.iter().all(|byte| *byte == 0), "{}", K::NAME);
}

/// The key counts a vector of powers before it writes the vector. In builds with debug assertions, a write to a vector that is not
/// counted panics.
#[test]
fn an_incomplete_key_is_erased() {
    #[cfg(target_arch = "aarch64")]
    check(crate::vectors::Armv8::detect());
    #[cfg(target_arch = "x86_64")]
    {
        check(crate::vectors::AesNi::detect());
        check(crate::vectors::Vaes256::detect());
        check(crate::vectors::Vaes512::detect());
    }
}
