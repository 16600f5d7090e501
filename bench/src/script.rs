//! A command that changes nothing: as a step, on a plain pipe, and the lines that it receives.

use crate::python::{interpreter, succeed};
use crate::setup::{builder, time_job};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use windlass_testkit::Database;

const NOOP: &str = include_str!("../python/noop.py");

/// The script in a temporary folder.
pub(crate) struct Script {
    folder: TempDir,
    interpreter: String,
    script: String,
}

impl Script {
    pub(crate) fn prepare() -> Result<Script> {
        let folder = tempfile::tempdir()?;
        let script = folder.path().join("noop.py");
        std::fs::write(&script, NOOP)?;
        Ok(Script { script: script.display().to_string(), folder, interpreter: interpreter()? })
    }

    /// The script as a step.
    pub(crate) fn step(&self) -> String {
        format!("step.command = ['{}', '{}']", self.interpreter, self.script)
    }

    /// Records the lines that a job over all of `accounts` sends, so that the plain pipe gets the same
    /// input.
    pub(crate) async fn record(&self, database: &Database, rows: u64) -> Result<PathBuf> {
        let lines = self.folder.path().join("lines.jsonl");
        let pipe = format!("tee -a {} | {} {}", lines.display(), self.interpreter, self.script);
        let jobs = job("RECORD", &format!("step.command = ['sh', '-c', '{pipe}']"));
        let engine = builder(database, &jobs)?.connect().await?;
        time_job(&engine, "RECORD", 1).await?;
        let batches = std::fs::read_to_string(&lines)?.lines().count() as u64;
        ensure!(batches >= rows.div_ceil(1000), "{batches} lines for {rows} rows");
        Ok(lines)
    }

    /// The duration of the script alone for these lines, including the interpreter's start.
    pub(crate) fn time(&self, lines: &Path) -> Result<Duration> {
        let lines = lines.display();
        let pipe = format!("cat {lines} | {} {} > /dev/null", self.interpreter, self.script);
        let begun = Instant::now();
        succeed(Command::new("sh").args(["-c", &pipe]))?;
        Ok(begun.elapsed())
    }
}

/// A job type over `accounts` with this step.
pub(crate) fn job(name: &str, step: &str) -> String {
    format!(
        "[jobs.{name}]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
         step.version = \"version\"\n{step}\nchunk.commit = 1000\n"
    )
}
