//! Dates and times of reports, in UTC.

use jiff::Timestamp;

/// The date, as 2026-01-31.
pub fn today() -> String {
    date(Timestamp::now())
}

/// Date and time, as 2026-01-31 12:30 UTC.
pub(crate) fn now() -> String {
    date_and_time(Timestamp::now())
}

fn date(time: Timestamp) -> String {
    time.strftime("%F").to_string()
}

fn date_and_time(time: Timestamp) -> String {
    time.strftime("%F %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_in_utc() {
        let time = |seconds| Timestamp::from_second(seconds).unwrap();
        for (day, text) in
            [(0, "1970-01-01"), (58, "1970-02-28"), (11_016, "2000-02-29"), (20_778, "2026-11-21")]
        {
            assert_eq!(date(time(day * 86_400)), text);
        }
        assert_eq!(date_and_time(time(86_399)), "1970-01-01 23:59 UTC");
    }
}
