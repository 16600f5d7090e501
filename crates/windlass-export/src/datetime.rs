//! Converts dates and timestamps between the text of databases and the numbers of Arrow.

use std::io::Write as _;

use chrono::{DateTime, Datelike as _, NaiveDate, Timelike as _};

/// The first day of Arrow, 1970-01-01, in days since the year 1.
const EPOCH_DAYS: i32 = 719_163;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// The days since 1970 of a date such as `2025-01-31`. `None` for other texts, such as `infinity`.
pub(crate) fn date(text: &str) -> Option<i32> {
    let (text, before_christ) = era(text);
    day_of(text, before_christ)
}

fn day_of(text: &str, before_christ: bool) -> Option<i32> {
    let (year, rest) = text.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    if year.len() < 4 || month.len() != 2 || day.len() != 2 {
        return None;
    }
    let year = i32::try_from(number(year)?).ok()?;
    let year = if before_christ { 1 - year } else { year };
    let date = NaiveDate::from_ymd_opt(
        year,
        u32::try_from(number(month)?).ok()?,
        u32::try_from(number(day)?).ok()?,
    )?;
    Some(date.num_days_from_ce() - EPOCH_DAYS)
}

/// The microseconds since 1970 of a timestamp such as `2025-01-31 03:00:00.5+00`. A column with a time zone needs a text
/// with an offset, and the result is in UTC. A column without one refuses an offset, since that would be lost.
pub(crate) fn timestamp(text: &str, zoned: bool) -> Result<i64, &'static str> {
    const WRONG: &str = "it is not a timestamp, such as 2025-01-31 03:00:00";
    let (text, before_christ) = era(text);
    let (day, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00:00"));
    let (time, offset) = zone(time).ok_or(WRONG)?;
    match (zoned, offset) {
        (true, None) => return Err("it has no time zone, such as +00 or Z"),
        (false, Some(_)) => {
            return Err("it has a time zone and its column has none: the column's type would be \
                        `timestamp with time zone`");
        }
        _ => {}
    }
    let days = i64::from(day_of(day, before_christ).ok_or(WRONG)?);
    let micros = time_of_day(time).ok_or("its time is not HH:MM:SS with at most six decimals")?;
    let seconds = days * 86_400 - offset.unwrap_or(0);
    let total = seconds.checked_mul(MICROS_PER_SECOND).and_then(|start| start.checked_add(micros));
    total.ok_or("it is outside the range of microseconds in 64 bits")
}

/// Writes a date in ISO 8601 format. `None` if it is outside the calendar.
pub(crate) fn write_date(days: i32, out: &mut Vec<u8>) -> Option<()> {
    let date = NaiveDate::from_num_days_from_ce_opt(days.checked_add(EPOCH_DAYS)?)?;
    write_day(date, out);
    Some(())
}

/// Writes a timestamp in RFC 3339 format, with `Z` if it has a time zone. `None` if it is outside the calendar.
pub(crate) fn write_timestamp(micros: i64, zoned: bool, out: &mut Vec<u8>) -> Option<()> {
    let moment = DateTime::from_timestamp_micros(micros)?.naive_utc();
    write_day(moment.date(), out);
    let (hour, minute, second) = (moment.hour(), moment.minute(), moment.second());
    let _ = write!(out, "T{hour:02}:{minute:02}:{second:02}");
    let fraction = moment.nanosecond() / 1_000;
    if fraction > 0 {
        let _ = write!(out, ".{fraction:06}");
    }
    if zoned {
        out.push(b'Z');
    }
    Some(())
}

fn write_day(date: NaiveDate, out: &mut Vec<u8>) {
    let (year, month, day) = (date.year(), date.month(), date.day());
    // ISO 8601 requires a sign for years of more than four digits.
    let _ = match year {
        0..=9999 => write!(out, "{year:04}-{month:02}-{day:02}"),
        _ => write!(out, "{year:+05}-{month:02}-{day:02}"),
    };
}

/// PostgreSQL appends `BC` to dates before the year 1.
fn era(text: &str) -> (&str, bool) {
    match text.strip_suffix(" BC") {
        Some(text) => (text, true),
        None => (text, false),
    }
}

/// A time without its offset, and the offset in seconds.
fn zone(time: &str) -> Option<(&str, Option<i64>)> {
    if let Some(time) = time.strip_suffix(['Z', 'z']) {
        return Some((time, Some(0)));
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, None)) };
    let (time, offset) = time.split_at(at);
    let (sign, offset) = offset.split_at(1);
    let parts: Vec<&str> = match offset.len() {
        4 => vec![&offset[..2], &offset[2..]],
        _ => offset.split(':').collect(),
    };
    let mut seconds = 0;
    if parts.len() > 3 || parts.iter().any(|part| part.len() != 2) {
        return None;
    }
    for (part, unit) in parts.iter().zip([3600, 60, 1]) {
        seconds += number(part)? * unit;
    }
    Some((time, Some(if sign == "-" { -seconds } else { seconds })))
}

/// The microseconds since midnight of `03:00:00.5`.
fn time_of_day(time: &str) -> Option<i64> {
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = clock.split(':');
    let mut next = |limit: i64| -> Option<i64> {
        let part = parts.next()?;
        number(part).filter(|value| part.len() == 2 && *value < limit)
    };
    let (hours, minutes) = (next(24)?, next(60)?);
    let seconds = if clock.len() == 5 { 0 } else { next(60)? };
    if parts.next().is_some() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (kept, rest) = fraction.split_at_checked(6).unwrap_or((fraction, ""));
    if rest.bytes().any(|digit| digit != b'0') {
        return None;
    }
    let mut micros = number(kept).or(kept.is_empty().then_some(0))?;
    for _ in kept.len()..6 {
        micros *= 10;
    }
    Some((hours * 3600 + minutes * 60 + seconds) * MICROS_PER_SECOND + micros)
}

/// Parses digits. `None` if there are other characters or no digits.
fn number(digits: &str) -> Option<i64> {
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    let digit = |byte: u8| byte.is_ascii_digit().then(|| i64::from(byte - b'0'));
    digits.bytes().try_fold(0, |value, byte| Some(value * 10 + digit(byte)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_are_days_since_1970() {
        assert_eq!(date("1970-01-01"), Some(0));
        assert_eq!(date("2025-01-31"), Some(20_119));
        assert_eq!(date("1969-12-31"), Some(-1));
        assert_eq!(date("0001-12-31 BC"), date("0001-01-01").map(|day| day - 1));
        for wrong in ["", "infinity", "0000-00-00", "2025-02-29", "25-01-01", "2025-1-1", "now"] {
            assert_eq!(date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn timestamps_are_converted_to_utc() {
        let noon = Ok(1_738_324_800_000_000);
        for text in [
            "2025-01-31 12:00:00+00",
            "2025-01-31T12:00:00Z",
            "2025-01-31 13:00:00.000000+01",
            "2025-01-31 17:30:00+05:30",
            "2025-01-31 06:30:00-0530",
        ] {
            assert_eq!(timestamp(text, true), noon, "{text}");
        }
        assert_eq!(timestamp("2025-01-31 12:00:00", false), noon);
        assert_eq!(timestamp("2025-01-31 12:00", false), noon);
        assert_eq!(timestamp("1969-12-31 23:59:59.999999", false), Ok(-1));
        assert_eq!(timestamp("2025-01-31 12:00:00.500000000", false), noon.map(|at| at + 500_000));
    }

    #[test]
    fn incomplete_timestamps_are_refused() {
        assert!(timestamp("2025-01-31 12:00:00", true).is_err(), "no zone");
        assert!(timestamp("2025-01-31 12:00:00Z", false).is_err(), "a zone");
        assert!(timestamp("2025-01-31 12:00:00.0000001", false).is_err(), "nanoseconds");
        for wrong in ["", "infinity", "2025-01-31 24:00:00", "2025-01-31 12:00:60", "12:00:00"] {
            assert!(timestamp(wrong, false).is_err(), "{wrong}");
        }
    }

    #[test]
    fn years_beyond_four_digits_have_a_sign() {
        let mut out = Vec::new();
        write_date(date("12345-06-07").unwrap(), &mut out).unwrap();
        assert_eq!(out, b"+12345-06-07");
    }

    proptest! {
        #[test]
        fn timestamps_survive_a_round_trip(micros in -62_135_596_800_000_000i64..253_402_300_800_000_000) {
            for zoned in [true, false] {
                let mut out = Vec::new();
                write_timestamp(micros, zoned, &mut out).unwrap();
                let text = String::from_utf8(out).unwrap();
                prop_assert_eq!(timestamp(&text, zoned), Ok(micros), "{}", text);
            }
            let days = i32::try_from(micros.div_euclid(86_400 * MICROS_PER_SECOND)).unwrap();
            let mut out = Vec::new();
            write_date(days, &mut out).unwrap();
            prop_assert_eq!(date(std::str::from_utf8(&out).unwrap()), Some(days));
        }
    }
}
