
use super::*;

#[test]
fn each_code_has_its_text() {
    for text in &TEXTS[1..] {
        let text = text.to_str().unwrap();
        assert!(text.contains(": "), "no remedy: {text}");
    }
    for (code, part) in [
        (LOCKSTEP_OK, "success"),
        (LOCKSTEP_ERROR_OVERLAP, "memory overlaps"),
        (LOCKSTEP_ERROR_ORDER, "not permitted now"),
        (LOCKSTEP_ERROR_OUT_OF_REACH, "cannot access the memory"),
        (LOCKSTEP_ERROR_NOT_SEALED, "did not encrypt"),
        (LOCKSTEP_ERROR_CANCELLED, "cancelled"),
        (LOCKSTEP_ERROR_OTHER, "without a code"),
        (LOCKSTEP_ERROR_MISSING_KEY, "no key"),
    ] {
        assert!(text(code).unwrap().to_str().unwrap().contains(part), "{code}");
    }
    assert_eq!((text(-1), text(TEXTS.len() as c_int)), (None, None));
}

#[test]
fn the_message_of_a_thread_is_that_of_its_last_failure() {
    let message = || {
        // SAFETY: the function returns a string that ends with a null byte.
        unsafe { CStr::from_ptr(lockstep_last_error_message()) }.to_str().unwrap().to_owned()
    };
    assert_eq!(Failure::new(6, "one\0 two").report(), 6);
    assert_eq!(message(), "one two");
    std::thread::spawn(move || assert_eq!(message(), "")).join().unwrap();
    Failure::from(CoreError::AuthenticationFailed).report();
    assert!(message().contains("use the right key"));
}
