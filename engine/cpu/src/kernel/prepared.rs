//! The expanded forms that a [`Key`] caches for a kernel.

use lockstep_core::key::Key;
use zeroize::Zeroizing;

use super::Kernel;
use super::rfc8452::ghash_key_of_polyval_key;
use super::wiped::Wiped;

/// The GHASH key of an AES key, or the POLYVAL key that the bytes of a key are, in the format of one kernel.
struct HashForm<K: Kernel, const GHASH: bool>(K::HashKey);

#[inline]
pub(crate) fn schedule<K: Kernel>(kernel: K, key: &Key) -> &K::Schedule {
    key.prepared(|key| kernel.expand(key.bytes()))
}

/// The hash key of an AES key with all powers.
#[inline]
pub(crate) fn hash_key<K: Kernel>(kernel: K, key: &Key) -> &K::HashKey {
    &key.prepared(|key| {
        let mut h = Wiped::<1>::zero();
        kernel.encrypt_block(schedule(kernel, key), &mut h[0]);
        HashForm::<K, true>(kernel.hash_key(&h[0]))
    })
    .0
}

#[inline]
pub(crate) fn polyval_key<K: Kernel>(kernel: K, key: &Key) -> &K::HashKey {
    &key.prepared(|key| {
        let h = Zeroizing::new(key.bytes().try_into().expect("checked by the caller"));
        HashForm::<K, false>(kernel.hash_key(&ghash_key_of_polyval_key(&h)))
    })
    .0
}

/// True if the forms of [`schedule`] and [`hash_key`] have been made.
#[inline]
pub(crate) fn is_prepared<K: Kernel>(key: &Key) -> bool {
    key.already_prepared::<HashForm<K, true>>().is_some()
}
