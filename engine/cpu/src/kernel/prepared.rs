//! The expanded forms that a [`Key`] caches for a kernel.

use lockstep_core::key::Key;
use zeroize::Zeroizing;

use super::Kernel;
use super::rfc8452::ghash_key_of_polyval_key;
use super::wiped::Wiped;

/// The round keys and the GHASH key of an AES key, in the format of one kernel. GCM finds both by one search.
pub(crate) struct GcmForm<K: Kernel> {
    pub(crate) schedule: K::Schedule,
    /// With all powers.
    pub(crate) hash_key: K::HashKey,
}

#[inline]
pub(crate) fn schedule<K: Kernel>(kernel: K, key: &Key) -> &K::Schedule {
    key.prepared(|key| kernel.expand(key.bytes()))
}

#[inline]
pub(crate) fn gcm_form<K: Kernel>(kernel: K, key: &Key) -> &GcmForm<K> {
    key.prepared(|key| {
        let (schedule, mut h) = (kernel.expand(key.bytes()), Wiped::<1>::zero());
        kernel.encrypt_block(&schedule, &mut h[0]);
        GcmForm { schedule, hash_key: kernel.hash_key(&h[0]) }
    })
}

/// A POLYVAL key, in the format of one kernel.
struct PolyvalForm<K: Kernel>(K::HashKey);

#[inline]
pub(crate) fn polyval_key<K: Kernel>(kernel: K, key: &Key) -> &K::HashKey {
    let form = key.prepared(|key| {
        let h = Zeroizing::new(key.bytes().try_into().expect("checked by the caller"));
        PolyvalForm::<K>(kernel.hash_key(&ghash_key_of_polyval_key(&h)))
    });
    &form.0
}
