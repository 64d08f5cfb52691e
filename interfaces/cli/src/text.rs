//! Conversions between text and values.

use std::time::{Duration, SystemTime};

use humantime::format_rfc3339_seconds;
use zeroize::Zeroizing;

pub(crate) use lockstep_report::text::{bytes, count, hex, one_line, printable, time};

/// Parses hex digits of either case. Error messages do not contain the digits, since they may be a key.
pub(crate) fn parse_hex(text: &str) -> Result<Zeroizing<Vec<u8>>, String> {
    if !text.len().is_multiple_of(2) {
        return Err(format!("{} hex digits: there must be an even number, two for each byte", text.len()));
    }
    let mut bytes = Zeroizing::new(vec![0; text.len() / 2]);
    base16ct::mixed::decode(text, &mut bytes)
        .map_err(|_| "it contains a character that is not a hex digit")?;
    Ok(bytes)
}

/// Parses a number of bytes: decimal digits, with an optional K, M, G or T for powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, unit) = text.split_at(text.trim_end_matches(|c: char| !c.is_ascii_digit()).len());
    let powers = ["", "K", "M", "G", "T"];
    let power = powers.iter().position(|power| unit.eq_ignore_ascii_case(power));
    // A plus sign is refused here, because `parse` would accept it.
    let number: Option<u64> = digits.parse().ok().filter(|_| !digits.starts_with('+'));
    let size = number.zip(power).and_then(|(number, power)| number.checked_mul(1 << (10 * power)));
    size.ok_or_else(|| format!("`{text}` is not a size: give a number of bytes, or one with K, M, G or T"))
}

/// Parses `OFFSET:LENGTH`. The length is `None` for `OFFSET:`, which means all data from the offset on.
pub(crate) fn parse_range(text: &str) -> Result<(u64, Option<u64>), String> {
    let (offset, len) =
        text.split_once(':').ok_or("a range is OFFSET:LENGTH, or OFFSET: for everything from there")?;
    let len = if len.is_empty() { None } else { Some(parse_size(len)?) };
    Ok((parse_size(offset)?, len))
}

/// Bytes per second with a decimal unit, such as `4.1 GB/s`.
pub(crate) fn rate(bytes: u64, time: Duration) -> String {
    let rate = bytes as f64 / time.as_secs_f64().max(1e-9);
    match rate {
        r if r >= 1e9 => format!("{:.1} GB/s", r / 1e9),
        r if r >= 1e6 => format!("{:.1} MB/s", r / 1e6),
        r => format!("{:.1} kB/s", r / 1e3),
    }
}

/// A text with a number of bytes, the time in which they were processed, and the rate.
pub(crate) fn amount(of: u64, time: Duration) -> String {
    format!("{} in {:.2} s, {}", bytes(of), time.as_secs_f64(), rate(of, time))
}

/// The current date in UTC, in the form 2026-01-31.
pub fn today() -> String {
    now()[..10].to_owned()
}

/// The current date and time, in the form 2026-01-31 12:30 UTC.
pub(crate) fn now() -> String {
    date_and_time(SystemTime::now())
}

fn date_and_time(time: SystemTime) -> String {
    // 2026-01-31T12:30:00Z
    let text = format_rfc3339_seconds(time).to_string();
    format!("{} {} UTC", &text[..10], &text[11..16])
}

#[cfg(test)]
mod tests;
