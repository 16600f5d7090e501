//! The log on standard error: one line per event, as text or JSON.

use super::escape;
use super::log_limit::LimitedFormat;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};

/// How much is logged.
#[derive(Clone, Copy)]
pub(super) struct Verbosity {
    /// How often `-v` was given.
    pub(super) verbose: u8,
    /// Whether `-q` was given.
    pub(super) quiet: bool,
    /// Whether the command runs until it is stopped. Its log shows successes by default; other commands
    /// print their result instead.
    pub(super) is_daemon: bool,
}

/// The format of a log line.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// One JSON object per line
    Json,
}

static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether `-q` was given: no progress is shown.
pub(super) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

impl Verbosity {
    fn level(self) -> &'static str {
        match (self.quiet, self.verbose, self.is_daemon) {
            (true, ..) => "error",
            (_, 0, false) => "warn",
            (_, 0, true) | (_, 1, false) => "info",
            _ => "debug",
        }
    }
}

/// Starts logging. The variable WINDLASS_LOG overrides the flags, and RUST_LOG does if it is not set.
pub(super) fn init(verbosity: Verbosity, format: Format) {
    QUIET.store(verbosity.quiet, Ordering::Relaxed);
    let level = verbosity.level();
    // The standard error of a command step is always logged: its author needs it.
    let default = format!("windlass={level},windlass::stderr=info");
    // The crates are windlass_engine, windlass_store and so on: one prefix matches them all.
    let set = |name: &str| std::env::var(name).ok().filter(|filter| !filter.is_empty());
    let filter = set("WINDLASS_LOG").or_else(|| set("RUST_LOG")).unwrap_or(default);
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_target(false);
    match format {
        Format::Text => log
            .with_ansi(std::io::stderr().is_terminal())
            .fmt_fields(OneLine(DefaultFields::new()))
            .map_event_format(|format| LimitedFormat::new(format, false))
            .init(),
        Format::Json => log
            .json()
            .flatten_event(true)
            .with_writer(|| EscapedStderr)
            .map_event_format(|format| LimitedFormat::new(format, true))
            .init(),
    }
}

/// Standard error, with the control characters that JSON allows in strings written as JSON escapes.
struct EscapedStderr;

impl Write for EscapedStderr {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = escape::json(&String::from_utf8_lossy(bytes));
        std::io::stderr().write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

/// Fields on one line, without control characters. They hold texts of programs, services and requests,
/// which must neither forge a log line nor control the terminal.
struct OneLine(DefaultFields);

impl<'writer> FormatFields<'writer> for OneLine {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut text = String::new();
        self.0.format_fields(Writer::new(&mut text), fields)?;
        writer.write_str(&escape::one_line(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_log_successes_and_commands_only_problems() {
        let level = |verbose, quiet, is_daemon| Verbosity { verbose, quiet, is_daemon }.level();
        assert_eq!([level(0, false, false), level(0, false, true)], ["warn", "info"]);
        assert_eq!([level(1, false, false), level(1, false, true)], ["info", "debug"]);
        assert_eq!([level(2, false, false), level(0, true, true)], ["debug", "error"]);
    }
}
