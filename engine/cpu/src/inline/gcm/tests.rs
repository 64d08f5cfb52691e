use super::*;

#[test]
fn messages_have_a_maximum_length() {
    // Any kernel serves for this test.
    let mut gcm = InlineGcm::new(InlineKernel::best(), &[7; 16]).unwrap();
    assert!(gcm.start(true, &[0; 12]));
    // Setting `gcm.data` simulates a long message.
    let mut data = [0; 64];
    assert!(gcm.update(Span::in_place(&mut data[..32])));
    gcm.0.data = (1 << 36) - 32 - 33;
    assert!(!gcm.update(Span::in_place(&mut data[..34])));
    assert!(gcm.update(Span::in_place(&mut data[..33])));
    assert!(!gcm.update(Span::in_place(&mut data[..1])));
    assert!(gcm.update(Span::in_place(&mut [])));
    // This span is invalid, but `update` refuses its length before reading it.
    assert!(gcm.start(true, &[0; 12]));
    let place = data.as_mut_ptr();
    // SAFETY: the span is refused, so it is never read or written.
    assert!(!gcm.update(unsafe { Span::from_raw(place, place, (1 << 36) - 31) }));
}

#[test]
fn a_shared_message_does_not_change_the_message_in_progress() {
    let mut gcm = InlineGcm::new(InlineKernel::best(), &[3; 16]).unwrap();
    let (mut whole, mut expected) = ([7; 5000], [0; 16]);
    gcm.message(&[1; 12], &[5], Span::in_place(&mut whole), &mut Tag::Write(&mut expected)).unwrap();
    let mut pieces = [7; 5000];
    assert!(gcm.start(true, &[1; 12]) && gcm.aad(&[5]) && gcm.update(Span::in_place(&mut pieces[..20])));
    let (mut shared, mut tag) = ([7; 5000], [0; 16]);
    let done = gcm.shared_message(&[1; 12], &[5], Span::in_place(&mut shared), &mut Tag::Write(&mut tag));
    assert_eq!((done, tag), (Some(true), expected));
    assert!(gcm.update(Span::in_place(&mut pieces[20..])));
    assert_eq!(gcm.finish_seal(), Some(expected));
    assert!(shared == whole && pieces == whole);
    // A wrong tag and wrong lengths.
    tag[15] ^= 1;
    let opened = gcm.shared_message(&[1; 12], &[5], Span::in_place(&mut shared), &mut Tag::Expect(&tag));
    assert_eq!(opened, Some(false));
    assert_eq!(gcm.shared_message(&[], &[], Span::in_place(&mut []), &mut Tag::Write(&mut tag)), None);
}

#[test]
fn a_shared_message_does_not_wait_for_the_powers_of_another_thread() {
    for kernel in InlineKernel::all() {
        let mut gcm = InlineGcm::new(kernel, &[3; 16]).unwrap();
        let (mut expected, mut expected_tag) = ([7; 5000], [0; 16]);
        let data = Span::in_place(&mut expected);
        gcm.message(&[1; 12], &[5], data, &mut Tag::Write(&mut expected_tag)).unwrap();
        let gcm = InlineGcm::new(kernel, &[3; 16]).unwrap();
        with_any!(&gcm.0.keys, keys => keys.set_in_progress());
        for _ in 0..2 {
            let (mut data, mut tag) = ([7; 5000], [0; 16]);
            let mut write = Tag::Write(&mut tag);
            let done = gcm.shared_message(&[1; 12], &[5], Span::in_place(&mut data), &mut write);
            assert_eq!((done, tag), (Some(true), expected_tag), "{}", kernel.name());
            assert!(data == expected, "{}", kernel.name());
        }
        assert!(
            with_any!(&gcm.0.keys, keys => keys.complete_key().is_none()),
            "the powers of the key are not used"
        );
    }
}
