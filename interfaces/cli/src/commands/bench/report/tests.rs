
use super::*;

#[test]
fn values_have_their_units() {
    assert_eq!(rate(Rate { median: 20e9, least: 19e9, most: 21e9 }), "20.0 ±5 %");
    assert_eq!(
        [digits(123.4), digits(1.234), digits(0.1234), digits(0.01234)],
        ["123", "1.23", "0.123", "0.0123"]
    );
    assert_eq!([size(16), size(16384), size(3 << 20), size(1500)], ["16 B", "16 KiB", "3 MiB", "1500 B"]);
}
