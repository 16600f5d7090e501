//! The log on standard error: one record is one line.

use super::escape;
use std::fmt;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};

/// Begins to log, in more detail the more often `-v` was given.
pub(super) fn init(verbose: u8) {
    let level = ["warn", "info", "debug"][usize::from(verbose.min(2))];
    // A command's standard error is logged at every level: its author needs it.
    let default = format!("windlass={level},windlass::stderr=info");
    // The crates are windlass_engine, windlass_store and so on: one prefix covers them all.
    let filter = std::env::var("WINDLASS_LOG").unwrap_or(default);
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .fmt_fields(OneLine(DefaultFields::new()))
        .init();
}

/// Fields on one line, without control characters: they hold texts of programs, services and
/// requests, which must neither forge a record nor speak to the terminal.
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
