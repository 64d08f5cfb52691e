
use super::*;

#[test]
fn meminfo_is_read() {
    let text = "MemTotal:  9 kB\nMemFree: 1 kB\nMemAvailable:   2000 kB\nSwapFree:  48 kB\n";
    assert_eq!(free_of_machine(text), Some(2048 << 10));
    assert_eq!(free_of_machine("MemTotal: 9 kB\n"), None);
}

#[test]
fn more_than_any_machine_has_is_an_error() {
    let mut buffer = Vec::new();
    for bytes in [u64::MAX, 1 << 62, 1 << 48] {
        let error = reserve(&mut buffer, bytes, "to hold the test").unwrap_err();
        assert!(error.to_string().contains("not enough memory"), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
    reserve(&mut buffer, 1000, "to hold the test").unwrap();
    assert!(buffer.capacity() >= 1000);
}
