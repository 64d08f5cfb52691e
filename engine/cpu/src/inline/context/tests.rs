use super::*;
use crate::soft::Soft;

/// Encrypts a message that is long enough to need all powers, and returns its tag.
fn tag_of(context: &mut dyn Context) -> Block {
    let mut data = [7; 5000];
    context.start(&[1; 12]);
    context.update(true, true, Span::in_place(&mut data), None);
    context.tag(0, 5000)
}

/// The same for a message at once, whose context is not changed.
fn shared_tag_of(context: &dyn Context) -> Block {
    let (mut data, mut tag) = ([7; 5000], [0; 16]);
    let done = context.shared_message(&[1; 12], &[], Span::in_place(&mut data), &mut Tag::Write(&mut tag));
    assert_eq!(done, Some(true));
    tag
}

fn check<K: Kernel + 'static>(kernel: K) {
    let context = || Gcm { keys: Keys::new(kernel, &[3; 16]).unwrap(), state: State::idle() };
    let expected = tag_of(&mut context());
    // While another thread computes the powers, a context neither waits for that thread nor reads its keys.
    let original = context();
    original.keys.powers.store(IN_PROGRESS, Ordering::Relaxed);
    let mut copy = original.duplicate().unwrap();
    assert_eq!(tag_of(&mut *copy), expected);
    assert_eq!(shared_tag_of(&original), expected);
    assert_eq!(original.keys.powers.load(Ordering::Relaxed), IN_PROGRESS);
    // In a child process after a fork, the thread that was computing the powers does not exist.
    let mut forked = original;
    assert_eq!(tag_of(&mut forked), expected);
    assert!(forked.keys.complete());
    assert_eq!(tag_of(&mut forked), expected);
    assert_eq!(tag_of(&mut *copy), expected);
    // A message at once does not disturb the message that is in progress.
    let mut context = context();
    let mut data = [7; 5000];
    context.start(&[1; 12]);
    context.update(true, true, Span::in_place(&mut data[..20]), None);
    assert_eq!(shared_tag_of(&context), expected);
    context.update(false, true, Span::in_place(&mut data[20..]), None);
    assert_eq!(context.tag(0, 5000), expected);
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
