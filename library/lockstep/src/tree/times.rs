//! What the times of an input and of its output show about changes of the input.

use std::cmp::Ordering;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The times of an output, compared with those of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    /// The output has the modification time of the input.
    pub(super) is_same: bool,
    /// The last change of the input's status, compared with the creation of the output. Each change of the content or
    /// of the modification time also changes the status, and programs cannot set the time of this change.
    pub(super) changed: Ordering,
}

impl Times {
    pub(super) fn compare(input: &Metadata, output: &Metadata) -> io::Result<Times> {
        let is_same = is_same_time(input.modified()?, output.modified()?);
        Ok(Times { is_same, changed: status_time(input).cmp(&creation(output)) })
    }
}

/// True if a file has not changed between two looks at it.
pub(super) fn is_unchanged(before: &Metadata, after: &Metadata) -> bool {
    let state = |file: &Metadata| (file.len(), file.mtime(), file.mtime_nsec(), status_time(file));
    state(before) == state(after)
}

/// The time of the last change of the status (ctime), in seconds and nanoseconds since 1970.
fn status_time(file: &Metadata) -> (i64, i64) {
    (file.ctime(), file.ctime_nsec())
}

/// The time at which the file was created: the output was created before its input was read. File systems without this
/// time have that of the last change of the status, which is later. macOS sets the time of creation back together with
/// the modification time, so it is not used there.
fn creation(file: &Metadata) -> (i64, i64) {
    let created = if cfg!(target_vendor = "apple") { None } else { file.created().ok() };
    let since = created.and_then(|created| created.duration_since(UNIX_EPOCH).ok());
    since.map_or(status_time(file), |since| (since.as_secs().cast_signed(), since.subsec_nanos().into()))
}

/// True if the output has the modification time of the input. Some file systems store times only as whole seconds,
/// others only in units of two seconds.
fn is_same_time(input: SystemTime, output: SystemTime) -> bool {
    let has_whole_seconds = output.duration_since(UNIX_EPOCH).is_ok_and(|time| time.subsec_nanos() == 0);
    let difference = input.duration_since(output).unwrap_or_else(|error| error.duration());
    difference.is_zero() || has_whole_seconds && difference < Duration::from_secs(2)
}

#[cfg(test)]
mod tests {
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
}
