//! How numbers, times and statuses are said: the same on every page.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use chrono_tz::Tz;
use maud::{Markup, html};
use serde_json::Value as Json;
use std::time::Duration;
use windlass_core::{ChunkStatus, DeadLetterStatus, Job, JobStatus, Phase};

/// A number with its thousands apart.
pub fn number(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

/// A number and what it counts.
pub fn count(n: i64, one: &str, more: &str) -> String {
    format!("{} {}", number(n), if n == 1 { one } else { more })
}

/// A length of time in its two largest units.
pub fn span(length: TimeDelta) -> String {
    let seconds = length.num_seconds().max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) if length.num_milliseconds() < 1000 => "under 1 s".to_owned(),
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{} {hours} h", count(days, "day", "days")),
    }
}

/// The same of a length that was defined.
pub fn length(length: Duration) -> String {
    span(TimeDelta::from_std(length).unwrap_or(TimeDelta::MAX))
}

/// A length in milliseconds, as exact as is of use.
pub fn millis(millis: i64) -> String {
    match millis {
        ..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{} s", (millis / 100) as f64 / 10.0),
        _ => span(TimeDelta::milliseconds(millis)),
    }
}

/// A time, as far from now as it is and, on a closer look, as the clock shows it.
pub fn time(at: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    let rough = |length: TimeDelta| match length.num_seconds().max(0) {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..86_400 => format!("{} h", seconds / 3600),
        seconds => count(seconds / 86_400, "day", "days"),
    };
    let relative = if at > now + TimeDelta::seconds(1) {
        format!("in {}", rough(at - now))
    } else if now - at < TimeDelta::seconds(2) {
        "just now".to_owned()
    } else {
        format!("{} ago", rough(now - at))
    };
    let machine = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    html! { time datetime=(machine) title=(absolute(at)) { (relative) } }
}

/// A time both ways, where there is room.
pub fn full_time(at: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    html! { (absolute(at)) " (" (time(at, now)) ")" }
}

/// A time as the clock in UTC shows it.
pub fn absolute(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// The same, and as a clock in that zone shows it.
pub fn absolute_in(at: DateTime<Utc>, zone: Option<Tz>) -> String {
    match zone.filter(|zone| *zone != Tz::UTC) {
        Some(zone) => {
            let there = at.with_timezone(&zone).format("%Y-%m-%d %H:%M:%S %Z");
            format!("{} ({there})", absolute(at))
        }
        None => absolute(at),
    }
}

/// A number of bytes in the largest unit that it has one of.
pub fn bytes(bytes: i64) -> String {
    match bytes {
        ..1024 => count(bytes, "byte", "bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// A job's status as a mark; its word is in it, since colours alone say nothing to some.
pub fn mark(status: JobStatus) -> Markup {
    html! { span class=(format!("mark {}", class(status.as_str()))) { (word(status)) } }
}

/// A job's status in a word.
pub fn word(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Queued => "Queued",
        JobStatus::Processing => "Running",
        JobStatus::Paused => "Paused",
        JobStatus::Completed => "Completed",
        JobStatus::Failed => "Failed",
        JobStatus::Cancelled => "Cancelled",
    }
}

/// What a job is busy with.
pub fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Planning => "Loading: cutting the table into chunks",
        Phase::Working => "Working through the chunks",
        Phase::Merging => "Merging the parts into the result",
    }
}

/// A chunk's status in a word.
pub fn chunk_word(status: ChunkStatus) -> &'static str {
    match status {
        ChunkStatus::Pending => "waiting",
        ChunkStatus::Processing => "running",
        ChunkStatus::Completed => "completed",
        ChunkStatus::Failed => "failed",
        ChunkStatus::Cancelled => "cancelled",
    }
}

/// A letter's status as a mark.
pub fn letter_mark(status: DeadLetterStatus, redriving: bool) -> Markup {
    let word = match status {
        DeadLetterStatus::New if redriving => "being redriven",
        DeadLetterStatus::New => "new",
        DeadLetterStatus::Reprocessed => "reprocessed",
        DeadLetterStatus::Ignored => "ignored",
    };
    html! { span class=(format!("mark letter-{}", status.as_str())) { (word) } }
}

/// The name of a status's colour in the stylesheet.
pub fn class(status: &str) -> String {
    status.to_lowercase()
}

/// How far a job is, in percent; a hundred means all.
pub fn percent(job: &Job) -> i64 {
    match job.status {
        JobStatus::Completed => 100,
        _ => (job.items.done() * 100).checked_div(job.items.total).unwrap_or(0).clamp(0, 100),
    }
}

/// Items a second, over the whole run so far.
pub fn rate(job: &Job, now: DateTime<Utc>) -> Option<f64> {
    let seconds = (job.finished_at.unwrap_or(now) - job.started_at?).as_seconds_f64();
    (seconds > 0.0 && job.items.done() > 0).then(|| job.items.done() as f64 / seconds)
}

/// A rate in items a second, whole ones where it has any.
pub fn rate_text(rate: Option<f64>) -> String {
    match rate {
        None => "–".to_owned(),
        Some(rate) if rate < 10.0 => format!("{rate:.1}"),
        Some(rate) => number(rate as i64),
    }
}

/// How long a job has been at work.
pub fn took(job: &Job, now: DateTime<Utc>) -> String {
    let end = job.finished_at.unwrap_or(now);
    job.started_at.map_or_else(|| "–".to_owned(), |started| span(end - started))
}

/// When a running job will end as it goes; unknown before it has done anything, and while it is
/// still finding out how much there is.
pub fn end(job: &Job, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let running = job.status == JobStatus::Processing && job.phase != Some(Phase::Planning);
    (running && job.items.done() > 0).then(|| job.projected_end(now))?
}

/// A value of a record: texts as they are, the rest as JSON.
pub fn scalar(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// An id short enough for a table; its end, since the beginning is when it was made.
pub fn short(id: uuid::Uuid) -> String {
    let text = id.to_string();
    format!("…{}", &text[text.len() - 8..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lengths_read_well() {
        assert_eq!([0, 999, 1000, -1_234_567].map(number), ["0", "999", "1,000", "-1,234,567"]);
        assert_eq!(count(1, "day", "days"), "1 day");
        let lengths = [0, 59, 61, 3700, 90_000].map(|seconds| span(TimeDelta::seconds(seconds)));
        assert_eq!(lengths, ["under 1 s", "59 s", "1 min 1 s", "1 h 1 min", "1 day 1 h"]);
    }

    #[test]
    fn short_lengths_and_bytes_read_well() {
        let lengths = [0, 999, 1000, 1290, 62_000].map(millis);
        assert_eq!(lengths, ["0 ms", "999 ms", "1 s", "1.2 s", "1 min 2 s"]);
        assert_eq!([1, 2048, 5 << 20].map(bytes), ["1 byte", "2.0 KiB", "5.0 MiB"]);
    }

    #[test]
    fn a_time_is_said_in_its_zone_too() {
        let at = DateTime::from_timestamp(1_000_000, 0).unwrap();
        assert_eq!(absolute_in(at, Some(Tz::UTC)), "1970-01-12 13:46:40 UTC");
        let there = "1970-01-12 13:46:40 UTC (1970-01-12 22:46:40 JST)";
        assert_eq!(absolute_in(at, Some(Tz::Asia__Tokyo)), there);
    }

    #[test]
    fn a_time_is_said_both_ways() {
        let now = DateTime::from_timestamp(1_000_000, 0).unwrap();
        let said = |seconds| time(now + TimeDelta::seconds(seconds), now).into_string();
        assert!(
            said(-300).contains(">5 min ago<") && said(-300).contains("1970-01-12 13:41:40 UTC")
        );
        assert!(said(7300).contains(">in 2 h<"));
        assert!(said(0).contains(">just now<"));
    }
}
