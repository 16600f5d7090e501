//! The processes of a contender: started, killed together, started again.

use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How often their end is looked for.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// Processes that do the same work.
pub(super) struct Processes {
    make: Box<dyn Fn() -> Command>,
    count: usize,
    running: Vec<Child>,
    /// What they write to standard error.
    folder: TempDir,
}

impl Processes {
    /// `count` processes of one command, not started yet.
    pub(super) fn new(count: usize, make: impl Fn() -> Command + 'static) -> Result<Processes> {
        let folder = tempfile::tempdir()?;
        Ok(Processes { make: Box::new(make), count, running: Vec::new(), folder })
    }

    pub(super) fn start(&mut self) -> Result<()> {
        for _ in 0..self.count {
            let errors = File::options().append(true).create(true).open(self.errors())?;
            let mut command = (self.make)();
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
            let child = command.spawn().with_context(|| format!("{command:?}"))?;
            self.running.push(child);
        }
        Ok(())
    }

    /// Whether all have ended. One that failed is an error.
    pub(super) fn ended(&mut self) -> Result<bool> {
        let mut left = Vec::new();
        for mut child in std::mem::take(&mut self.running) {
            match child.try_wait()? {
                None => left.push(child),
                Some(status) => {
                    let errors = std::fs::read_to_string(self.errors()).unwrap_or_default();
                    ensure!(status.success(), "a process failed: {status}\n{errors}");
                }
            }
        }
        self.running = left;
        Ok(self.running.is_empty())
    }

    /// Kills all of them with SIGKILL.
    pub(super) fn kill(&mut self) -> Result<()> {
        for mut child in self.running.drain(..) {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    fn errors(&self) -> std::path::PathBuf {
        self.folder.path().join("errors")
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
