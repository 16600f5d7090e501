//! Runs the binary and measures its duration and its peak memory.

use crate::setup::binary;
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The result of a run.
pub(crate) struct Watched {
    pub(crate) took: Duration,
    /// The peak resident memory, in MB.
    pub(crate) peak: f64,
}

/// Runs the binary in a folder. The peak is read from the kernel while the process exists. It stays a zombie until
/// it is waited for, so the last reading is the total.
pub(crate) fn watched(folder: &Path, arguments: &[&str]) -> Result<Watched> {
    let begun = Instant::now();
    let mut child = Command::new(binary()?)
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0_f64;
    let ended = loop {
        if let Some(kilobytes) = high_water(&std::fs::read_to_string(&status).unwrap_or_default()) {
            peak = peak.max(kilobytes / 1024.0);
        }
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    ensure!(ended.success(), "the run failed: {ended}");
    ensure!(peak > 0.0, "no reading");
    Ok(Watched { took: begun.elapsed(), peak })
}

fn high_water(status: &str) -> Option<f64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
