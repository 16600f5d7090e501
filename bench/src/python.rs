//! The hand-written Python loops to compare with.

use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const LOOP: &str = include_str!("../python/loop.py");

/// A virtual environment with psycopg.
#[derive(Clone)]
pub(crate) struct Python {
    interpreter: PathBuf,
}

impl Python {
    /// Creates the environment beside the bench's binary, once.
    pub(crate) fn prepare() -> Result<Python> {
        let home = std::env::current_exe()?.with_file_name("bench-python");
        let interpreter = home.join("bin/python3");
        if !home.join("ready").exists() {
            succeed(Command::new("python3").args(["-m", "venv"]).arg(&home))
                .context("python3 with its venv module is needed: apt-get install python3-venv")?;
            succeed(Command::new(&interpreter).args([
                "-m",
                "pip",
                "install",
                "-q",
                "psycopg[binary]==3.2.*",
            ]))?;
            std::fs::write(home.join("ready"), "")?;
        }
        Ok(Python { interpreter })
    }

    /// A script with its arguments.
    pub(crate) fn command(&self, script: &str, arguments: &[&str]) -> Command {
        let mut python = Command::new(&self.interpreter);
        python.args(["-c", script]).args(arguments);
        python
    }

    /// The duration of the loop, without the interpreter's start.
    pub(crate) fn time(&self, url: &str, how: &str) -> Result<Duration> {
        let begun = Instant::now();
        succeed(&mut self.command("import psycopg", &[]))?;
        let start = begun.elapsed();
        let begun = Instant::now();
        succeed(&mut self.command(LOOP, &[url, how]))?;
        Ok(begun.elapsed().saturating_sub(start))
    }
}

/// The path of the real `python3`: the one on PATH may be a slow shim.
pub(crate) fn interpreter() -> Result<String> {
    let output = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .context("python3 is needed")?;
    ensure!(output.status.success(), "python3: {}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Runs a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
