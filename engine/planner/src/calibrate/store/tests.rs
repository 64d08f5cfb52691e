
use super::*;
use lockstep_core::work::{FusedAead, Pass};

fn entry(operation: Operation, wide: Option<f64>) -> Entry {
    let point = |bytes, ns| Point { bytes, ns };
    let points = vec![point(64.0, 10.25), point(4096.0, 300.1), point(1e6, 70_000.0 / 3.0)];
    let timing = Timing::new(points, 3.5, wide).unwrap();
    let (key, place, verify) = (KeySize::Aes192, Place::Device, Verify::Full);
    Entry { kernel: "cuda/bitslice".into(), operation, key, place, verify, timing }
}

fn store() -> Store {
    let mut store = Store::default();
    store.set(entry(Operation::Pass(Pass::CbcMac), Some(0.125)));
    store.set(entry(Operation::Fused(FusedAead::GcmOpen), None));
    store
}

#[test]
fn what_is_written_is_read() {
    let text = store().text("a \"key\"\nof two lines");
    assert_eq!(Store::parse(&text, "a \"key\"\nof two lines").unwrap(), store());
    assert_eq!(Store::parse(&Store::default().text("k"), "k").unwrap(), Store::default());
}

#[test]
fn newer_measurements_replace_older_ones() {
    let mut store = store();
    let newer = entry(Operation::Pass(Pass::CbcMac), Some(9.0));
    store.set(newer.clone());
    assert_eq!(store.entries.len(), 2);
    let found = store.timing("cuda/bitslice", newer.operation, newer.key, newer.place, newer.verify);
    assert_eq!(found.unwrap().wide_ns_per_byte(), Some(9.0));
}

#[test]
fn foreign_and_damaged_files_are_ignored() {
    let text = store().text("a key");
    assert!(Store::parse(&text, "another key").is_none());
    assert!(Store::parse(&text, "a").is_none());
    assert!(Store::parse(&text.replace("\"format\":2", "\"format\":3"), "a key").is_none());
    for at in 0..text.len() - 1 {
        assert!(Store::parse(&text[..at], "a key").is_none(), "cut at {at}");
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        assert!(Store::parse(&String::from_utf8(bytes).unwrap(), "a key").is_none(), "flipped at {at}");
    }
    // A correct checksum does not make wrong numbers valid.
    let (_, entries) = text.trim_end().split_once('\n').unwrap();
    for (from, to) in [
        ("10.25", "-1"),
        ("10.25", "\"10.25\""),
        ("[64.0", "[9999999"),
        (":192,", ":193,"),
        ("3.5", "1e300"),
        ("CbcMac", "CbcMc"),
    ] {
        let wrong = entries.replace(from, to);
        assert_ne!(wrong, entries, "{from}");
        let header = json!({ "format": FORMAT, "device": "a key", "sum": sum(&wrong) });
        assert!(Store::parse(&format!("{header}\n{wrong}\n"), "a key").is_none(), "{to}");
    }
}
