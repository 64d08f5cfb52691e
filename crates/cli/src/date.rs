//! Days and times, in Greenwich.

use std::time::{SystemTime, UNIX_EPOCH};

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// The day, as 2026-01-31.
pub(crate) fn today() -> String {
    let (year, month, day) = civil(seconds() / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Day and time, as 2026-01-31 12:30 UTC.
pub(crate) fn now() -> String {
    let minutes = seconds() / 60;
    format!("{} {:02}:{:02} UTC", today(), minutes / 60 % 24, minutes % 60)
}

/// Year, month and day of a day after 1970-01-01, in the Gregorian calendar.
fn civil(mut days: u64) -> (u64, usize, u64) {
    let mut year = 1970;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 0;
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days() {
        for (days, date) in
            [(0, (1970, 1, 1)), (58, (1970, 2, 28)), (11_016, (2000, 2, 29)), (20_778, (2026, 11, 21))]
        {
            assert_eq!(civil(days), date);
        }
    }
}
