use super::*;

#[test]
fn hex() {
    assert_eq!(**parse_hex("00ffA0").unwrap(), [0, 0xff, 0xa0]);
    assert!(parse_hex("").unwrap().is_empty());
    for bad in ["0", "0g", "+1", "0x00", "é"] {
        let message = parse_hex(bad).unwrap_err();
        assert!(!message.contains('g') || !message.contains("0g"), "{message}");
    }
}

#[test]
fn sizes() {
    assert_eq!(parse_size("0"), Ok(0));
    assert_eq!(parse_size("16384"), Ok(16384));
    assert_eq!(parse_size("2k"), Ok(2048));
    assert_eq!(parse_size("1G"), Ok(1 << 30));
    assert_eq!(parse_size("18446744073709551615"), Ok(u64::MAX));
    for bad in ["", "K", "-1", "+1", "1.5M", "1 M", "1Q", "18446744073709551616", "99999999999T", "1é"] {
        assert!(parse_size(bad).is_err(), "{bad}");
    }
}

#[test]
fn ranges() {
    assert_eq!(parse_range("5:10"), Ok((5, Some(10))));
    assert_eq!(parse_range("1M:"), Ok((1 << 20, None)));
    for bad in ["", "5", ":", ":5", "5-10", "1:2:3"] {
        assert!(parse_range(bad).is_err(), "{bad}");
    }
}

#[test]
fn rates_have_a_unit() {
    assert_eq!(rate(4_100_000_000, Duration::from_secs(1)), "4.1 GB/s");
}

#[test]
fn dates_are_in_utc() {
    let time = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    for (day, text) in [(0, "1970-01-01"), (58, "1970-02-28"), (11_016, "2000-02-29"), (20_778, "2026-11-21")]
    {
        assert_eq!(date_and_time(time(day * 86_400)), format!("{text} 00:00 UTC"));
    }
    assert_eq!(date_and_time(time(86_399)), "1970-01-01 23:59 UTC");
}
