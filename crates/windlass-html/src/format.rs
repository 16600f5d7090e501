//! Formats numbers, times and statuses in the same way on every page.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use chrono_tz::Tz;
use maud::{Markup, html};
use serde_json::Value as Json;
use std::time::Duration;
use windlass_core::{ChunkStatus, DeadLetterStatus, Job, JobStatus, Phase};

/// A number with thousands separators.
pub fn number(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

/// A number with its noun: `1 row`, `2 rows`.
pub fn count(n: i64, one: &str, many: &str) -> String {
    format!("{} {}", number(n), plural(n, one, many))
}

/// The form of a noun for a number.
pub fn plural<'a>(n: i64, one: &'a str, many: &'a str) -> &'a str {
    if n == 1 { one } else { many }
}

/// A duration in its two largest units.
pub fn duration(duration: TimeDelta) -> String {
    let seconds = duration.num_seconds().max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) if duration.num_milliseconds() < 1000 => "under 1 s".to_owned(),
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{} {hours} h", count(days, "day", "days")),
    }
}

/// A [`std::time::Duration`] in its two largest units.
pub fn std_duration(length: Duration) -> String {
    duration(TimeDelta::from_std(length).unwrap_or(TimeDelta::MAX))
}

/// A duration in milliseconds: exact below one second, with one decimal below one minute.
pub fn millis(millis: i64) -> String {
    match millis {
        ..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{} s", (millis / 100) as f64 / 10.0),
        _ => duration(TimeDelta::milliseconds(millis)),
    }
}

/// A time relative to now, with the absolute time in the tooltip.
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
    html! { time datetime=(machine_time(at)) title=(absolute(at)) { (relative) } }
}

/// A time, both absolute and relative.
pub fn full_time(at: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    html! { (time_at(at, TimeStyle::Full)) " (" (time(at, now)) ")" }
}

/// How precisely a time is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeStyle {
    /// `2026-01-31 03:12:07`
    Full,
    /// `31 Jan`
    Day,
    /// `Sat 31 Jan 03:12`
    DayMinute,
    /// `03:12`
    Minute,
    /// `03:12:07`
    Second,
    /// `03:12:07.125`
    Millisecond,
}

impl TimeStyle {
    /// The name that the script of the dashboard knows.
    pub fn as_str(self) -> &'static str {
        match self {
            TimeStyle::Full => "full",
            TimeStyle::Day => "day",
            TimeStyle::DayMinute => "day-minute",
            TimeStyle::Minute => "minute",
            TimeStyle::Second => "second",
            TimeStyle::Millisecond => "millisecond",
        }
    }

    /// The time in UTC, without the name of the zone.
    pub fn utc(self, at: DateTime<Utc>) -> String {
        let format = match self {
            TimeStyle::Full => "%Y-%m-%d %H:%M:%S",
            TimeStyle::Day => "%d %b",
            TimeStyle::DayMinute => "%a %d %b %H:%M",
            TimeStyle::Minute => "%H:%M",
            TimeStyle::Second => "%H:%M:%S",
            TimeStyle::Millisecond => "%H:%M:%S%.3f",
        };
        at.format(format).to_string()
    }
}

/// A time in UTC. The script of the dashboard shows it in the time zone of the viewer, and UTC in the
/// tooltip.
pub fn time_at(at: DateTime<Utc>, style: TimeStyle) -> Markup {
    html! {
        time datetime=(machine_time(at)) title=(absolute(at)) data-style=(style.as_str()) { (style.utc(at)) " UTC" }
    }
}

/// The time zone of the times on a page. The script of the dashboard names the one of the viewer.
pub fn time_zone_note() -> Markup {
    html! { span data-zone { "Times are UTC." } }
}

/// A time as programs read it.
pub fn machine_time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// An absolute time in UTC.
pub fn absolute(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// An absolute time in UTC, and in another time zone in brackets.
pub fn absolute_in(at: DateTime<Utc>, zone: Option<Tz>) -> String {
    match zone.filter(|zone| *zone != Tz::UTC) {
        Some(zone) => {
            let local = at.with_timezone(&zone).format("%Y-%m-%d %H:%M:%S %Z");
            format!("{} ({local})", absolute(at))
        }
        None => absolute(at),
    }
}

/// A size in bytes, KiB or MiB.
pub fn bytes(bytes: i64) -> String {
    match bytes {
        ..1024 => count(bytes, "byte", "bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// A job's status as a coloured badge. The label makes it readable without colours.
pub fn status_badge(status: JobStatus) -> Markup {
    html! { span class=(format!("badge {}", class(status.as_str()))) { (status_label(status)) } }
}

/// The label of a job's status.
pub fn status_label(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Queued => "Queued",
        JobStatus::Processing => "Running",
        JobStatus::Paused => "Paused",
        JobStatus::Completed => "Completed",
        JobStatus::Failed => "Failed",
        JobStatus::Cancelled => "Cancelled",
    }
}

/// The label of a running job's phase.
pub fn phase_label(phase: Phase) -> &'static str {
    match phase {
        Phase::Planning => "Planning: splitting the source into chunks",
        Phase::Working => "Processing chunks",
        Phase::Merging => "Merging the parts into the result",
    }
}

/// The label of a chunk's status.
pub fn chunk_status_label(status: ChunkStatus) -> &'static str {
    match status {
        ChunkStatus::Pending => "pending",
        ChunkStatus::Processing => "running",
        ChunkStatus::Completed => "completed",
        ChunkStatus::Failed => "failed",
        ChunkStatus::Cancelled => "cancelled",
    }
}

/// A dead letter's status as a coloured badge.
pub fn dead_letter_badge(status: DeadLetterStatus, redriving: bool) -> Markup {
    let label = match status {
        DeadLetterStatus::New if redriving => "being redriven",
        DeadLetterStatus::New => "new",
        DeadLetterStatus::Reprocessed => "reprocessed",
        DeadLetterStatus::Ignored => "ignored",
    };
    html! { span class=(format!("badge letter-{}", status.as_str())) { (label) } }
}

/// The CSS class of a status.
pub fn class(status: &str) -> String {
    status.to_lowercase()
}

/// The progress of a job in percent.
pub fn percent(job: &Job) -> i64 {
    match job.status {
        JobStatus::Completed => 100,
        _ => {
            let (done, total) = (i128::from(job.items.done()), i128::from(job.items.total));
            (done * 100).checked_div(total).unwrap_or(0).clamp(0, 100) as i64
        }
    }
}

/// The average rate of a job in items per second, while it was not paused.
pub fn rate(job: &Job, now: DateTime<Utc>) -> Option<f64> {
    let seconds = job.working_time(now)?.as_seconds_f64();
    (seconds > 0.0 && job.items.done() > 0).then(|| job.items.done() as f64 / seconds)
}

/// A rate, with one decimal if it is small.
pub fn rate_text(rate: Option<f64>) -> String {
    match rate {
        None => "–".to_owned(),
        Some(rate) if rate < 10.0 => format!("{rate:.1}"),
        Some(rate) => number(rate as i64),
    }
}

/// The duration of a job so far.
pub fn elapsed(job: &Job, now: DateTime<Utc>) -> String {
    let end = job.finished_at.unwrap_or(now);
    job.started_at.map_or_else(|| "–".to_owned(), |started| duration(end - started))
}

/// The projected end of a running job. Unknown before the first item is finished, and while segments are
/// still being planned or the job waits for something.
pub fn projected_end(job: &Job, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let proceeds = matches!(job.waits_for.as_deref(), None | Some("rate" | "health"));
    let running =
        job.status == JobStatus::Processing && job.phase != Some(Phase::Planning) && proceeds;
    (running && job.items.done() > 0).then(|| job.projected_end(now))?
}

/// A value of a record: strings without quotes, other values as JSON.
pub fn scalar(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The last eight characters of an id. Its beginning is a timestamp, which many ids share.
pub fn short_id(id: uuid::Uuid) -> String {
    let text = id.to_string();
    format!("…{}", &text[text.len() - 8..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_durations_are_formatted() {
        assert_eq!([0, 999, 1000, -1_234_567].map(number), ["0", "999", "1,000", "-1,234,567"]);
        assert_eq!(count(1, "day", "days"), "1 day");
        assert_eq!(count(2000, "day", "days"), "2,000 days");
        let lengths =
            [0, 59, 61, 3700, 90_000].map(|seconds| duration(TimeDelta::seconds(seconds)));
        assert_eq!(lengths, ["under 1 s", "59 s", "1 min 1 s", "1 h 1 min", "1 day 1 h"]);
    }

    #[test]
    fn short_durations_and_sizes_are_formatted() {
        let lengths = [0, 999, 1000, 1290, 62_000].map(millis);
        assert_eq!(lengths, ["0 ms", "999 ms", "1 s", "1.2 s", "1 min 2 s"]);
        assert_eq!([1, 2048, 5 << 20].map(bytes), ["1 byte", "2.0 KiB", "5.0 MiB"]);
    }

    #[test]
    fn a_time_is_shown_in_utc_and_in_its_zone() {
        let at = DateTime::from_timestamp(1_000_000, 0).unwrap();
        assert_eq!(absolute_in(at, Some(Tz::UTC)), "1970-01-12 13:46:40 UTC");
        let expected = "1970-01-12 13:46:40 UTC (1970-01-12 22:46:40 JST)";
        assert_eq!(absolute_in(at, Some(Tz::Asia__Tokyo)), expected);
    }

    #[test]
    fn a_relative_time_has_the_absolute_time_as_tooltip() {
        let now = DateTime::from_timestamp(1_000_000, 0).unwrap();
        let shown = |seconds| time(now + TimeDelta::seconds(seconds), now).into_string();
        assert!(
            shown(-300).contains(">5 min ago<") && shown(-300).contains("1970-01-12 13:41:40 UTC")
        );
        assert!(shown(7300).contains(">in 2 h<"));
        assert!(shown(0).contains(">just now<"));
    }
}
