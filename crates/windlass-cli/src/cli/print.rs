//! Output for people (tables, summaries) and for programs (JSON).

use super::escape;
use anstream::{AutoStream, ColorChoice};
use anstyle::AnsiColor;
use anyhow::Result;
use chrono::{DateTime, Utc};
use comfy_table::presets;
use serde::Serialize;
use serde_json::Value as Json;
use windlass::{ItemCounts, Job, JobStatus};

/// Prints one JSON document.
pub(super) fn json(value: &impl Serialize) -> Result<()> {
    std::println!("{}", escape::json(&serde_json::to_string_pretty(value)?));
    Ok(())
}

/// A table without borders, as `ls` and `ps` print them.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = comfy_table::Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    Table(table)
}

/// A table whose cells are escaped, so that each row stays on one line.
pub(super) struct Table(comfy_table::Table);

impl Table {
    pub(super) fn add_row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.add_row(cells.into_iter().map(|cell| escape::one_line(&cell)));
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
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

/// Seconds from the start to the end, or to now.
fn duration(job: &Job) -> Option<f64> {
    let end = job.finished_at.unwrap_or_else(Utc::now);
    Some((end - job.started_at?).as_seconds_f64())
}
