//! The file of results. Each result is a row, which is one line of JSON.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::Result;
use super::meter::Meter;

/// What a row measures.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    /// The kind of measurement, such as `resident`.
    pub(crate) what: &'static str,
    pub(crate) kernel: String,
    pub(crate) operation: String,
    /// Bits of the key; 0 for copies.
    pub(crate) bits: usize,
    pub(crate) messages: usize,
    /// Bytes of all messages.
    pub(crate) bytes: usize,
}

impl Subject {
    fn name(&self) -> String {
        let Subject { what, kernel, operation, bits, messages, bytes } = self;
        format!("{what} {kernel} {operation} {bits} {messages} {bytes}")
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name(), "what": self.what, "kernel": self.kernel, "pass": self.operation, "bits": self.bits,
            "messages": self.messages, "bytes": self.bytes,
        })
    }
}

/// The times of the calls of a measurement, in seconds.
pub(crate) struct Timing {
    begun: Instant,
    ended: Instant,
    sorted: Vec<f64>,
}

impl Timing {
    /// The quantile of the times: the fraction `part` of the calls took at most this time.
    pub(crate) fn at(&self, part: f64) -> f64 {
        self.sorted[((self.sorted.len() - 1) as f64 * part).round() as usize]
    }

    pub(crate) fn median(&self) -> f64 {
        self.at(0.5)
    }
}

/// Makes calls for this number of seconds, but at least `least` calls, and measures the time of each. One call before them is not
/// measured.
pub(crate) fn time(seconds: f64, least: usize, mut call: impl FnMut() -> Result<()>) -> Result<Timing> {
    call()?;
    let (begun, mut sorted) = (Instant::now(), Vec::new());
    while sorted.len() < least || begun.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        call()?;
        sorted.push(start.elapsed().as_secs_f64());
    }
    let ended = Instant::now();
    sorted.sort_by(f64::total_cmp);
    Ok(Timing { begun, ended, sorted })
}

/// The rows of the file. An incomplete line is ignored, because the program was interrupted while it wrote the line.
pub(crate) fn read(path: &Path) -> Result<Vec<Value>> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        text => text.map_err(|error| format!("{}: {error}", path.display()))?,
    };
    let mut rows = HashMap::new();
    let parsed = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for (number, row) in parsed.enumerate() {
        // If a measurement was repeated after a failure, only its last row is used.
        rows.insert(row["name"].as_str().unwrap_or_default().to_owned(), (number, row));
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|(number, _)| *number);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// The file to which the results are written, and the results that it contained before.
pub(crate) struct Rows {
    file: File,
    earlier: HashMap<String, Value>,
    meter: Meter,
    end: Option<Instant>,
    failures: usize,
    left: usize,
}

impl Rows {
    /// Opens the file. No measurement begins after `until` seconds.
    pub(crate) fn open(path: &Path, meter: Meter, until: Option<f64>) -> Result<Rows> {
        let earlier = read(path)?.into_iter().filter(|row| row["failed"].is_null());
        let earlier = earlier.map(|row| (row["name"].as_str().unwrap_or_default().to_owned(), row)).collect();
        let open = OpenOptions::new().create(true).append(true).open(path);
        let mut file = open.map_err(|error| format!("{}: {error}", path.display()))?;
        // The line break ends an incomplete line of an interrupted run. Otherwise it adds an empty line, which is ignored.
        file.write_all(b"\n").map_err(|error| format!("{}: {error}", path.display()))?;
        let end = until.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.max(0.0)));
        Ok(Rows { file, earlier, meter, end, failures: 0, left: 0 })
    }

    /// True if the subject is to be measured: it is not in the file yet, and there is time left.
    pub(crate) fn wants(&mut self, subject: &Subject) -> bool {
        if self.earlier.contains_key(&subject.name()) {
            return false;
        }
        let is_late = self.end.is_some_and(|end| Instant::now() >= end);
        self.left += usize::from(is_late);
        !is_late
    }

    /// Writes the outcome of a measurement as a row. `more` has further members of the JSON object.
    pub(crate) fn write(&mut self, subject: &Subject, outcome: Result<Timing>, more: Value) -> Result<()> {
        let mut row = subject.json();
        match outcome {
            Ok(timing) => {
                let rate = subject.bytes as f64 / timing.median() / 1e9;
                row["seconds"] = timing.median().into();
                row["least"] = timing.at(0.0).into();
                row["p99"] = timing.at(0.99).into();
                row["runs"] = timing.sorted.len().into();
                row["gpu"] = self.meter.during(timing.begun, timing.ended);
                eprintln!("{}: {rate:.2} GB/s, {:.1} us", subject.name(), timing.median() * 1e6);
            }
            Err(error) => {
                self.failures += 1;
                row["failed"] = error.to_string().into();
                eprintln!("FAILED: {}: {error}", subject.name());
            }
        }
        for (name, value) in more.as_object().into_iter().flatten() {
            row[name] = value.clone();
        }
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        row["at"] = at.as_secs().into();
        Ok(self.file.write_all(format!("{row}\n").as_bytes())?)
    }

    /// Writes a row that states why the subject is not measured.
    pub(crate) fn skip(&mut self, subject: &Subject, why: &str) -> Result<()> {
        let mut row = subject.json();
        row["skipped"] = why.into();
        Ok(self.file.write_all(format!("{row}\n").as_bytes())?)
    }

    /// Returns the exit code after the last measurement.
    pub(crate) fn end(self) -> ExitCode {
        if self.failures > 0 {
            eprintln!("device_speed: {} measurements failed", self.failures);
            return ExitCode::FAILURE;
        }
        if self.left > 0 {
            eprintln!("device_speed: {} measurements are left for the next run", self.left);
            return ExitCode::from(3);
        }
        ExitCode::SUCCESS
    }
}
