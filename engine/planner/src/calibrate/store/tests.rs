use super::*;
use lockstep_core::work::{FusedAead, Pass};

fn entry(operation: Operation, wide: Option<f64>) -> (Entry, Timing) {
    let point = |bytes, ns| Point { bytes, ns };
    let points = vec![point(64.0, 10.25), point(4096.0, 300.1), point(1e6, 70_000.0 / 3.0)];
    let timing = Timing::new(points, 3.5, wide).unwrap();
    let (key, place, verify) = (KeySize::Aes192, Place::Device, Verify::Full);
    (Entry { kernel: "cuda/bitslice".into(), operation, key, place, verify }, timing)
}

fn store() -> Store {
    let mac = entry(Operation::Pass(Pass::CbcMac), Some(0.125));
    Store { timings: [mac, entry(Operation::Fused(FusedAead::GcmOpen), None)].into() }
}

#[test]
fn what_is_written_is_read() {
    let text = store().text("a \"key\"\nof two lines");
    assert_eq!(Store::parse(&text, "a \"key\"\nof two lines").unwrap(), store());
    assert_eq!(Store::parse(&Store::default().text("k"), "k").unwrap(), Store::default());
}

#[test]
fn foreign_and_damaged_files_are_ignored() {
    let text = store().text("a key");
    assert!(Store::parse(&text, "another key").is_none());
    assert!(Store::parse(&text, "a").is_none());
    assert!(Store::parse(&text.replace("\"format\":3", "\"format\":4"), "a key").is_none());
    for at in 0..text.len() {
        assert!(Store::parse(&text[..at], "a key").is_none(), "cut at {at}");
    }
    for (from, to) in [
        ("10.25", "-1"),
        ("10.25", "\"10.25\""),
        ("[64.0", "[9999999"),
        (":192,", ":193,"),
        ("3.5", "1e300"),
        ("CbcMac", "CbcMc"),
    ] {
        let wrong = text.replace(from, to);
        assert_ne!(wrong, text, "{from}");
        assert!(Store::parse(&wrong, "a key").is_none(), "{to}");
    }
}
