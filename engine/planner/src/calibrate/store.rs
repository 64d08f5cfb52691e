//! The file of a device's measurements, in JSON: the version of the format, the device, and the measurements.
//!
//! ```json
//! {"device":"cpu | AMD EPYC, 2 threads | 0.1.0","format":3,"measurements":
//!  [{"kernel":"cpu/vaes512","key_bits":128,"memory":"host","ns_per_byte_of_many_messages":null,"ns_per_message":21.5,
//!    "operation":"Ctr","single_messages":[[64.0,40.1],[4096.0,220.0]],"verify":"off"}]}
//! ```
//!
//! Files are replaced as a whole, so that a file is never half written. A file that is not valid is ignored.

use std::collections::BTreeMap;

use super::Place;
use crate::timing::{Point, Timing};
use crate::verify::Verify;
use lockstep_cache::{Cache, UNFINISHED};
use lockstep_core::backend::Device;
use lockstep_core::key::KeySize;
use lockstep_core::work::Operation;
use serde_json::{Value, json};

const FORMAT: u64 = 3;

/// Longer files are not read. A file with all kernels, operations, key sizes, kinds of memory and kinds of verification has
/// less than half this length.
const MAX_BYTES: u64 = 1 << 20;

/// Identifies a measurement by its kernel, operation, key size, kind of memory and kind of verification.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) kernel: String,
    pub(super) operation: Operation,
    pub(super) key: KeySize,
    pub(super) place: Place,
    pub(super) verify: Verify,
}

/// The measurements of a device.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Store {
    pub(super) timings: BTreeMap<Entry, Timing>,
}

/// The generation of the kernels and of the verification. The value is increased when a kernel supports another operation: in old
/// measurements, this kernel has no time for the operation, so it would not be chosen. The value is also increased when the time
/// of the verification changes, because the measured times include the verification.
const GENERATION: u32 = 3;

/// A text that identifies the device, its driver, the version of this library and the build. Measurements with another
/// text are invalid.
fn key_of(device: &dyn Device) -> String {
    let build = if cfg!(debug_assertions) { " debug" } else { "" };
    let version = env!("CARGO_PKG_VERSION");
    format!("{} | {} | {version} kernels {GENERATION}{build}", device.id(), device.description())
}

/// The name of a device's file. It starts with the kind of device, so that the kind is known without reading the file.
fn name_of(device: &dyn Device) -> String {
    let kind = match (device.is_trusted(), device.properties().by_name_only) {
        (true, _) => "processor",
        (false, true) => "named",
        (false, false) => "device",
    };
    format!("{kind}-{}.json", Cache::name_of(&key_of(device)))
}

pub(super) fn is_of_other_device(name: &str) -> bool {
    name.starts_with("device-") && name.ends_with(".json")
}

/// True for the name of a file that this module has written.
pub(super) fn is_ours(name: &str) -> bool {
    ["processor-", "named-", "device-"].iter().any(|kind| name.starts_with(kind))
        && [".json", UNFINISHED].iter().any(|end| name.ends_with(end))
}

impl Store {
    /// The measurements of a device. There are none if the file is missing or damaged, or belongs to another device or
    /// format.
    pub(super) fn read(cache: &Cache, device: &dyn Device) -> Store {
        let text = cache.read(&name_of(device), MAX_BYTES).and_then(|bytes| String::from_utf8(bytes).ok());
        text.and_then(|text| Store::parse(&text, &key_of(device))).unwrap_or_default()
    }

    /// Replaces the file of the device.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(super) fn write(&self, cache: &Cache, device: &dyn Device) -> std::io::Result<()> {
        cache.write(&name_of(device), self.text(&key_of(device)).as_bytes())
    }

    fn text(&self, key: &str) -> String {
        let measurements: Vec<_> = self.timings.iter().map(Entry::json).collect();
        json!({ "format": FORMAT, "device": key, "measurements": measurements }).to_string()
    }

    /// `None` if the file is damaged or belongs to another device.
    fn parse(text: &str, key: &str) -> Option<Store> {
        let json: Value = serde_json::from_str(text).ok()?;
        let is_valid = json["format"] == FORMAT && json["device"] == key;
        let entries = json["measurements"].as_array().filter(|_| is_valid)?;
        Some(Store { timings: entries.iter().map(Entry::parse).collect::<Option<_>>()? })
    }
}

impl Entry {
    fn json((entry, timing): (&Entry, &Timing)) -> Value {
        let Entry { kernel, operation, key, place, verify } = entry;
        let points: Vec<_> = timing.points().iter().map(|point| json!([point.bytes, point.ns])).collect();
        json!({
            "kernel": kernel,
            "operation": operation.to_string(),
            "key_bits": key.bits(),
            "memory": place.name(),
            "verify": verify.name(),
            "ns_per_message": timing.per_message_ns(),
            "ns_per_byte_of_many_messages": timing.wide_ns_per_byte(),
            "single_messages": points,
        })
    }

    fn parse(json: &Value) -> Option<(Entry, Timing)> {
        let text = |name: &str| json[name].as_str();
        let point = |point: &Value| Some(Point { bytes: point[0].as_f64()?, ns: point[1].as_f64()? });
        let points = json["single_messages"].as_array()?.iter().map(point).collect::<Option<_>>()?;
        let wide = match &json["ns_per_byte_of_many_messages"] {
            Value::Null => None,
            ns => Some(ns.as_f64()?),
        };
        let operation = text("operation")?;
        let place = text("memory")?;
        let entry = Entry {
            kernel: text("kernel")?.into(),
            operation: Operation::all().find(|known| known.to_string() == operation)?,
            key: KeySize::ALL.into_iter().find(|size| json["key_bits"] == size.bits())?,
            place: Place::ALL.into_iter().find(|known| known.name() == place)?,
            verify: text("verify")?.parse().ok()?,
        };
        Some((entry, Timing::new(points, json["ns_per_message"].as_f64()?, wide)?))
    }
}

#[cfg(test)]
mod tests;
