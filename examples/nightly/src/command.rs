//! Runs a `windlass` command and measures its memory.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value as Json;
use tokio::process::Command;

/// The JSON that a command printed, and its peak memory.
pub(crate) struct Done {
    pub(crate) json: Json,
    pub(crate) peak_megabytes: u64,
}

/// Runs a command that prints JSON. A failed job is a result too, so only a command without output is an
/// error.
pub(crate) async fn run(
    folder: &Path,
    environment: &[(String, String)],
    arguments: &[&str],
) -> anyhow::Result<Done> {
    let mut child = Command::new(windlass_testkit::windlass_bin())
        .args(arguments)
        .current_dir(folder)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .env("RUST_LOG", "error")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("windlass does not start")?;
    let id = child.id().context("it has just been started")?;
    let mut peak = 0;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let said = async { tokio::join!(text(stdout), text(stderr)) };
    tokio::pin!(said);
    let (stdout, stderr) = loop {
        tokio::select! {
            said = &mut said => break said,
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
        // The kernel records the peak, so only memory used after the last reading is missed.
        peak = peak_kilobytes(id).unwrap_or(0).max(peak);
    };
    child.wait().await?;
    ensure!(!stdout.trim().is_empty(), "windlass {}: {stderr}", arguments.join(" "));
    Ok(Done { json: serde_json::from_str(&stdout)?, peak_megabytes: peak / 1024 })
}

async fn text(stream: Option<impl tokio::io::AsyncRead + Unpin>) -> String {
    use tokio::io::AsyncReadExt as _;
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        // Output from before the pipe broke is still useful.
        let _ = stream.read_to_end(&mut bytes).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn peak_kilobytes(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
