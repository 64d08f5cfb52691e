
use super::*;

#[test]
fn times_are_compared_at_the_resolution_of_file_systems() {
    let at = |seconds, nanos| UNIX_EPOCH + Duration::new(seconds, nanos);
    assert!(is_same_time(at(1000, 5), at(1000, 5)));
    assert!(!is_same_time(at(1000, 5), at(1000, 6)));
    assert!(!is_same_time(at(1001, 5), at(1000, 5)));
    // FAT stores times in units of two seconds.
    assert!(is_same_time(at(1001, 999), at(1000, 0)));
    assert!(!is_same_time(at(1002, 0), at(1000, 0)));
}
