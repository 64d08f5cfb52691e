//! Dates and times of reports, in UTC.

use std::time::SystemTime;

use humantime::format_rfc3339_seconds;

/// The date, as 2026-01-31.
pub fn today() -> String {
    date(SystemTime::now())
}

/// Date and time, as 2026-01-31 12:30 UTC.
pub(crate) fn now() -> String {
    date_and_time(SystemTime::now())
}

fn date(time: SystemTime) -> String {
    // 2026-01-31T12:30:00Z
    format_rfc3339_seconds(time).to_string()[..10].to_owned()
}

fn date_and_time(time: SystemTime) -> String {
    let text = format_rfc3339_seconds(time).to_string();
    format!("{} {} UTC", &text[..10], &text[11..16])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_in_utc() {
        let time = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        for (day, text) in
            [(0, "1970-01-01"), (58, "1970-02-28"), (11_016, "2000-02-29"), (20_778, "2026-11-21")]
        {
            assert_eq!(date(time(day * 86_400)), text);
        }
        assert_eq!(date_and_time(time(86_399)), "1970-01-01 23:59 UTC");
    }
}
