//! What was measured of one device, as a file of lines.
//!
//! ```text
//! lockstep calibration 1
//! cpu | AMD EPYC, 2 threads | 0.1.0
//! cpu/vaes512 Ctr 128 host off 21.5 - 64:40.1 4096:220 ...
//! sum 0123456789abcdef
//! ```
//!
//! A line has kernel, operation, key bits, place, how results are verified, nanoseconds a message and a byte of many messages
//! (`-` where that is no matter of its own), then bytes and nanoseconds of single messages.

use std::fmt::Write;

use super::Place;
use crate::timing::{Point, Timing};
use crate::verify::Verify;
use lockstep_cache::{Cache, UNFINISHED, fnv};
use lockstep_core::backend::Device;
use lockstep_core::key::KeySize;
use lockstep_core::work::Operation;

const FIRST_LINE: &str = "lockstep calibration 1";

/// All kernels, operations, key sizes, places and kinds of verification of a device fit in well.
const MOST_BYTES: u64 = 1 << 20;

/// One measurement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) kernel: String,
    pub(super) operation: Operation,
    pub(super) key: KeySize,
    pub(super) place: Place,
    pub(super) verify: Verify,
    pub(super) timing: Timing,
}

/// What was measured of one device.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Store {
    entries: Vec<Entry>,
}

/// What measurements depend on.
fn key_of(device: &dyn Device) -> String {
    let build = if cfg!(debug_assertions) { " debug" } else { "" };
    let version = env!("CARGO_PKG_VERSION");
    let text = format!("{} | {} | {version}{build}", device.id(), device.description());
    text.replace(['\n', '\r'], " ")
}

/// The name of a device's file: by kind first, so that it can be told without reading which devices there were.
fn name_of(device: &dyn Device) -> String {
    let kind = match (device.is_trusted(), device.is_simulated()) {
        (true, _) => "processor",
        (false, true) => "simulated",
        (false, false) => "device",
    };
    format!("{kind}-{}.txt", Cache::name_of(&key_of(device)))
}

pub(super) fn is_of_other_device(name: &str) -> bool {
    name.starts_with("device-") && name.ends_with(".txt")
}

pub(super) fn is_ours(name: &str) -> bool {
    ["processor-", "simulated-", "device-"].iter().any(|kind| name.starts_with(kind))
        && (name.ends_with(".txt") || name.ends_with(UNFINISHED))
}

impl Store {
    /// What is kept of a device; nothing if the file is not there, damaged, or of another device.
    pub(super) fn read(cache: &Cache, device: &dyn Device) -> Store {
        let text = cache.read(&name_of(device), MOST_BYTES).and_then(|bytes| String::from_utf8(bytes).ok());
        text.and_then(|text| Store::parse(&text, &key_of(device))).unwrap_or_default()
    }

    /// # Errors
    /// Those of the file system.
    pub(super) fn write(&self, cache: &Cache, device: &dyn Device) -> std::io::Result<()> {
        cache.write(&name_of(device), self.text(&key_of(device)).as_bytes())
    }

    pub(super) fn timing(
        &self,
        kernel: &str,
        operation: Operation,
        key: KeySize,
        place: Place,
        verify: Verify,
    ) -> Option<&Timing> {
        let is_it = |entry: &&Entry| {
            entry.kernel == kernel
                && (entry.operation, entry.key, entry.place, entry.verify) == (operation, key, place, verify)
        };
        self.entries.iter().find(is_it).map(|entry| &entry.timing)
    }

    /// In place of what was known of the same.
    pub(super) fn set(&mut self, entry: Entry) {
        let of = |e: &Entry| (e.kernel.clone(), e.operation, e.key, e.place, e.verify);
        self.entries.retain(|old| of(old) != of(&entry));
        self.entries.push(entry);
    }

    fn text(&self, key: &str) -> String {
        let mut text = format!("{FIRST_LINE}\n{key}\n");
        for Entry { kernel, operation, key, place, verify, timing } in &self.entries {
            let wide = timing.wide_ns_per_byte().map_or("-".into(), |ns| ns.to_string());
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "{kernel} {operation} {} {} {} {} {wide}",
                key.bits(),
                place.name(),
                verify.name(),
                timing.per_message_ns()
            );
            for point in timing.points() {
                let _ = write!(text, " {}:{}", point.bytes, point.ns);
            }
            text.push('\n');
        }
        let sum = sum(&text);
        let _ = writeln!(text, "sum {sum:016x}");
        text
    }

    fn parse(text: &str, key: &str) -> Option<Store> {
        let lines = text.strip_prefix(FIRST_LINE)?.strip_prefix('\n')?;
        let lines = lines.strip_prefix(key)?.strip_prefix('\n')?;
        let (content, last) = text.trim_end_matches('\n').rsplit_once('\n')?;
        let given = u64::from_str_radix(last.strip_prefix("sum ")?, 16).ok()?;
        if given != sum(&format!("{content}\n")) {
            return None;
        }
        let entries = lines.lines().filter(|line| !line.starts_with("sum ")).map(Entry::parse);
        Some(Store { entries: entries.collect::<Option<_>>()? })
    }
}

/// Against accidents: FNV-1a.
fn sum(text: &str) -> u64 {
    fnv(0xcbf2_9ce4_8422_2325, text.as_bytes())
}

impl Entry {
    fn parse(line: &str) -> Option<Entry> {
        let mut words = line.split(' ');
        let kernel = words.next()?.to_owned();
        let operation = words.next()?;
        let operation = Operation::all().find(|known| known.to_string() == operation)?;
        let bits = words.next()?;
        let key = KeySize::ALL.into_iter().find(|size| size.bits().to_string() == bits)?;
        let place = words.next()?;
        let place = [Place::Host, Place::Device].into_iter().find(|known| known.name() == place)?;
        let verify = words.next()?.parse().ok()?;
        let per_message = words.next()?.parse().ok()?;
        let wide = match words.next()? {
            "-" => None,
            ns => Some(ns.parse().ok()?),
        };
        let point = |word: &str| {
            let (bytes, ns) = word.split_once(':')?;
            Some(Point { bytes: bytes.parse().ok()?, ns: ns.parse().ok()? })
        };
        let points = words.map(point).collect::<Option<Vec<_>>>()?;
        let timing = Timing::new(points, per_message, wide)?;
        Some(Entry { kernel, operation, key, place, verify, timing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_core::work::{FusedAead, Pass};

    fn entry(operation: Operation, wide: Option<f64>) -> Entry {
        let point = |bytes, ns| Point { bytes, ns };
        let points = vec![point(64.0, 10.25), point(4096.0, 300.5), point(1e6, 70_000.0)];
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
        let text = store().text("a key");
        assert_eq!(Store::parse(&text, "a key").unwrap(), store());
        assert_eq!(Store::parse(&Store::default().text("k"), "k").unwrap(), Store::default());
    }

    #[test]
    fn what_is_newer_counts() {
        let mut store = store();
        let newer = entry(Operation::Pass(Pass::CbcMac), Some(9.0));
        store.set(newer.clone());
        assert_eq!(store.entries.len(), 2);
        let found = store.timing("cuda/bitslice", newer.operation, newer.key, newer.place, newer.verify);
        assert_eq!(found.unwrap().wide_ns_per_byte(), Some(9.0));
    }

    #[test]
    fn what_is_foreign_or_damaged_is_nothing() {
        let text = store().text("a key");
        assert!(Store::parse(&text, "another key").is_none());
        assert!(Store::parse(&text, "a").is_none());
        assert!(Store::parse("", "a key").is_none());
        for at in 0..text.len() - 1 {
            assert!(Store::parse(&text[..at], "a key").is_none(), "cut at {at}");
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            assert!(Store::parse(&String::from_utf8(bytes).unwrap(), "a key").is_none(), "flipped at {at}");
        }
        // Right sums do not make wrong numbers right.
        for (from, to) in
            [("10.25", "-1"), ("10.25", "NaN"), ("64:", "9999999:"), (" 192 ", " 193 "), ("3.5", "inf")]
        {
            let wrong = text.replace(from, to);
            let (content, _) = wrong.trim_end().rsplit_once('\n').unwrap();
            let content = format!("{content}\n");
            let wrong = format!("{content}sum {:016x}\n", sum(&content));
            assert!(wrong.contains(to) && Store::parse(&wrong, "a key").is_none(), "{to}");
        }
    }
}
