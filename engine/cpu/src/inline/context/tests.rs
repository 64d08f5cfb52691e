use super::*;
use crate::kernel::{Block, Span};
use crate::message::gcm::State;
use crate::soft::Soft;

impl<K: Kernel> Keys<K> {
    /// Sets the state in which another thread is computing all powers.
    pub(in crate::inline) fn set_in_progress(&self) {
        self.powers.store(IN_PROGRESS, Ordering::Relaxed);
    }
}

/// Encrypts a message that is long enough to need all powers, and returns its tag.
fn tag_of<K: Kernel>(keys: &mut Shared<Keys<K>>) -> Block {
    let (mut data, mut tag, mut state) = ([7; 5000], [0; 16], State::idle());
    let key = &mut message_key(keys);
    state.start(key, &[1; 12]);
    state.end_aad();
    state.update(key, true, Span::in_place(&mut data));
    state.tag(key, (0, 5000), &mut tag);
    tag
}

fn check<K: Kernel + 'static>(kernel: K) {
    let keys = || Keys::new(kernel, &[3; 16]).unwrap();
    let expected = tag_of(&mut keys());
    // While another thread computes the powers, a context neither waits for that thread nor reads its keys.
    let original = keys();
    original.set_in_progress();
    let mut copy = Keys::share(&original).unwrap();
    assert_eq!(tag_of(&mut copy), expected);
    assert_eq!(original.powers.load(Ordering::Relaxed), IN_PROGRESS);
    // In a child process after a fork, the thread that was computing the powers does not exist.
    let mut forked = original;
    assert_eq!(tag_of(&mut forked), expected);
    assert!(forked.complete());
    assert_eq!(tag_of(&mut forked), expected);
    assert_eq!(tag_of(&mut copy), expected);
}

#[test]
fn an_incomplete_computation_of_powers_does_not_block() {
    // Only one kernel of each kind is tested, because compiling GCM for all kernels a second time takes half a minute.
    check(Soft::detect().unwrap());
    #[cfg(target_arch = "x86_64")]
    if let Some(kernel) = crate::vectors::AesNi::detect() {
        const { assert!(<crate::vectors::AesNi as Kernel>::IN_PLACE && !Soft::IN_PLACE) };
        check(kernel);
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(kernel) = crate::vectors::Armv8::detect() {
        check(kernel);
    }
}
