//! Limits repeated warnings and errors: many chunks or connections often fail for the same reason.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use windlass_core::error_fingerprint;

/// Equal lines within [`WINDOW`] beyond this number are not written.
const MAX_EQUAL_LINES: u32 = 5;
const WINDOW: Duration = Duration::from_secs(10);
/// The most kinds of lines that are remembered.
const MAX_KINDS: usize = 1000;

/// Writes events in the format that it wraps, without repeated warnings and errors. Lines are equal if they
/// come from the same place and their message and error differ only in numbers and quoted texts.
pub(super) struct LimitedFormat<F> {
    format: F,
    /// How the line about omitted lines is written.
    as_json: bool,
    seen: Mutex<HashMap<String, Kind>>,
}

/// Equal lines.
struct Kind {
    since: Instant,
    lines: u32,
}

impl<F> LimitedFormat<F> {
    pub(super) fn new(format: F, as_json: bool) -> LimitedFormat<F> {
        LimitedFormat { format, as_json, seen: Mutex::default() }
    }

    /// Counts a line. Returns whether to write it, and how many equal lines were omitted before it.
    fn admit(&self, kind: String, now: Instant) -> Option<u32> {
        let mut seen = self.seen.lock();
        if seen.len() >= MAX_KINDS {
            seen.clear();
        }
        let kind = seen.entry(kind).or_insert(Kind { since: now, lines: 0 });
        if now.duration_since(kind.since) < WINDOW {
            kind.lines += 1;
            return (kind.lines <= MAX_EQUAL_LINES).then_some(0);
        }
        let omitted = kind.lines.saturating_sub(MAX_EQUAL_LINES);
        *kind = Kind { since: now, lines: 1 };
        Some(omitted)
    }
}

impl<S, N, F> FormatEvent<S, N> for LimitedFormat<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = *event.metadata().level();
        if level > Level::WARN {
            return self.format.format_event(context, writer, event);
        }
        match self.admit(kind_of(event), Instant::now()) {
            None => Ok(()),
            Some(omitted) => {
                if omitted > 0 && self.as_json {
                    writeln!(
                        writer,
                        r#"{{"level":"{level}","message":"omitted lines like the next one","lines":{omitted}}}"#
                    )?;
                } else if omitted > 0 {
                    writeln!(writer, "{level:>5} omitted {omitted} lines like the next one")?;
                }
                self.format.format_event(context, writer, event)
            }
        }
    }
}

/// The place of an event, its message and its error, without the values in them.
fn kind_of(event: &Event<'_>) -> String {
    let mut texts = Texts(String::new());
    event.record(&mut texts);
    let metadata = event.metadata();
    let place = (metadata.file().unwrap_or_default(), metadata.line().unwrap_or_default());
    format!("{}:{} {}", place.0, place.1, error_fingerprint(&texts.0))
}

/// The message and the error of an event. Its other fields name a chunk or a job.
struct Texts(String);

impl Visit for Texts {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if matches!(field.name(), "message" | "error") {
            self.0.push_str(&format!("{value:?} "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_are_written_five_times_in_ten_seconds_and_then_counted() {
        let limit = LimitedFormat::new((), false);
        let start = Instant::now();
        let admit = |kind: &str, seconds| {
            limit.admit(kind.to_owned(), start + Duration::from_secs(seconds))
        };
        let written = (0..3000).filter(|_| admit("a", 1).is_some()).count();
        assert_eq!(written, 5);
        assert_eq!(admit("b", 1), Some(0), "another line is not affected");
        assert_eq!(admit("a", 11), Some(2995));
        assert_eq!(admit("a", 12), Some(0));
    }
}
