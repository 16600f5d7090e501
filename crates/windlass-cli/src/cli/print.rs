//! Output for people (tables, summaries) and for programs (JSON).

use super::escape;
use super::table::Table;
use anstream::{AutoStream, ColorChoice};
use anstyle::AnsiColor;
use anyhow::Result;
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value as Json;
use std::io::IsTerminal;
use uuid::Uuid;
use windlass::{ItemCounts, Job, JobStatus};
use windlass_core::OutputKind;

/// Prints one JSON document.
pub(super) fn json(value: &impl Serialize) -> Result<()> {
    std::println!("{}", escape::json(&serde_json::to_string_pretty(value)?));
    Ok(())
}

/// A table with these columns.
pub(super) fn table(header: &[&str]) -> Table {
    Table::new(header)
}

/// An id: its last eight characters on a terminal, which every command accepts, and the whole elsewhere.
pub(super) fn id(id: Uuid) -> String {
    let text = id.to_string();
    match std::io::stdout().is_terminal() {
        true => text[text.len() - 8..].to_owned(),
        false => text,
    }
}

/// A number with thousands separators.
pub(super) fn number(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut out = String::from(if number < 0 { "-" } else { "" });
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with its noun: `1 chunk`, `2,000 chunks`.
pub(super) fn count(count: i64, noun: &str) -> String {
    format!("{} {noun}{}", number(count), if count == 1 { "" } else { "s" })
}

/// A value on one line: text without quotes, everything else as JSON.
pub(super) fn scalar(value: &Json) -> String {
    escape::one_line(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// A text cut to at most `most` characters.
pub(super) fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The line of an error that says most: the last one of a traceback, otherwise the first.
pub(super) fn headline(error: &str) -> String {
    let mut lines = error.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    match error.contains("Traceback (most recent call last)") {
        true => lines.next_back().unwrap_or(first).to_owned(),
        false => first.to_owned(),
    }
}

/// A time in a table: without the year and the seconds on a terminal.
pub(super) fn short_time(time: DateTime<Utc>) -> String {
    match std::io::stdout().is_terminal() {
        true => time.format("%m-%d %H:%MZ").to_string(),
        false => self::time(time),
    }
}

/// A time in UTC.
pub(super) fn time(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// The percentage of ended items that are not dead letters, rounded down: 100.00 means all of them.
fn success(items: &ItemCounts) -> Option<String> {
    let hundredths = ((items.processed + items.skipped) * 10_000).checked_div(items.done())?;
    Some(format!("{}.{:02}", hundredths / 100, hundredths % 100))
}

/// A status, coloured on a terminal.
pub(super) fn status(status: JobStatus) -> String {
    if AutoStream::choice(&std::io::stdout()) == ColorChoice::Never {
        return status.as_str().to_owned();
    }
    let colour = match status {
        JobStatus::Completed => AnsiColor::Green,
        JobStatus::Failed => AnsiColor::Red,
        JobStatus::Paused | JobStatus::Cancelled => AnsiColor::Yellow,
        JobStatus::Queued | JobStatus::Processing => AnsiColor::Cyan,
    };
    let style = colour.on_default();
    format!("{style}{status}{style:#}")
}

/// The coloured status at the start of a text.
pub(super) fn leading_status(text: &str) -> Option<String> {
    let mut coloured = JobStatus::ALL.iter().map(|each| status(*each));
    coloured.find(|word| word.starts_with('\u{1b}') && text.starts_with(word.as_str()))
}

/// A job in a few lines, with the next command.
pub(super) fn summary(job: &Job) {
    let Job { id, items, chunks, .. } = job;
    println!("{}  {}  {id}", status(job.status), job.job_type);
    let seconds = duration(job);
    let rate = match seconds {
        Some(seconds) if seconds > 0.0 => {
            format!(" in {seconds:.1} s ({}/s)", number((items.done() as f64 / seconds) as i64))
        }
        _ => String::new(),
    };
    println!(
        "  items   {} of {}{rate}: {} processed, {} skipped, {}",
        number(items.done()),
        number(items.total),
        number(items.processed),
        number(items.skipped),
        count(items.dead, "dead letter")
    );
    if let Some(rate) = success(items) {
        println!("  success {rate} % after retries");
    }
    if items.conflicts > 0 {
        println!(
            "          {} found, none overwritten",
            count(items.conflicts, "concurrent write")
        );
    }
    println!(
        "  chunks  {} of {} completed{}",
        number(chunks.completed),
        number(chunks.total),
        other_statuses(job)
    );
    for (place, output) in job.outputs.iter().enumerate() {
        let rows = output.rows.map(|rows| format!("{} in ", count(rows, "row")));
        let rows = rows.filter(|_| output.kind != OutputKind::Table).unwrap_or_default();
        let changed = match (output.kind, output.rows) {
            (OutputKind::Table, Some(rows)) => format!("{} of table ", count(rows, "row")),
            (OutputKind::Load, _) => "table ".to_owned(),
            _ => String::new(),
        };
        let label = if place == 0 { "wrote" } else { "" };
        let to = escape::one_line(output.to.strip_prefix("file:").unwrap_or(&output.to));
        println!("  {label:<7} {rows}{changed}{to}");
    }
    if let Some(waiting) = job.waiting() {
        println!("  waits   {}", escape::one_line(waiting.trim_start_matches("waits ")));
    }
    if let Some(error) = &job.error {
        println!("  error   {}", escape::indented(error, 10));
    }
    if items.dead > 0 {
        println!("  errors  windlass dead list --job {id}");
    }
    match job.status {
        JobStatus::Completed => println!("  audit   windlass audit {id}"),
        JobStatus::Paused => {
            println!("  resume  windlass resume {id} && windlass worker --job {id}")
        }
        JobStatus::Failed => {
            println!("  retry   windlass retry {id} && windlass worker --job {id}")
        }
        _ => {}
    }
}

/// The chunks that are not completed, by status.
fn other_statuses(job: &Job) -> String {
    let counts = [
        ("pending", job.chunks.pending),
        ("processing", job.chunks.processing),
        ("failed", job.chunks.failed),
        ("cancelled", job.chunks.cancelled),
    ];
    counts
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| format!(", {} {name}", number(*n)))
        .collect()
}

/// Seconds from the start to the end, or to now, without pauses.
fn duration(job: &Job) -> Option<f64> {
    Some(job.working_time(Utc::now())?.as_seconds_f64())
}
