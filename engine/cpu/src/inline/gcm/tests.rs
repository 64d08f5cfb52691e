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
