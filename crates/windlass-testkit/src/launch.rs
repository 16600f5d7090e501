//! Starting a server and waiting until it accepts connections.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::free_port;
use crate::spawn::spawn;

/// The longest time until a server accepts connections. Generous, for machines under load.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts a server on a free port, or returns its log if it does not start. Tries several ports, because another
/// process may take one before the server binds it.
pub(crate) fn on_free_port<T>(
    start: impl Fn(u16) -> Result<T, String>,
) -> Result<(T, u16), String> {
    let mut failure = String::new();
    for _ in 0..5 {
        let port = free_port();
        match start(port) {
            Ok(started) => return Ok((started, port)),
            Err(log) => failure = log,
        }
    }
    Err(failure)
}

/// Starts a server, which receives `signal` when this process dies. Returns when it is ready, or returns its log
/// if it does not become ready.
pub(crate) fn launch(
    mut command: Command,
    log: &Path,
    signal: Signal,
    is_ready: impl Fn(&Child) -> bool,
) -> Result<Child, String> {
    let output =
        File::options().create(true).append(true).open(log).expect("failed to open the log file");
    command.stdout(output.try_clone().expect("failed to duplicate a file handle")).stderr(output);
    let line = format!("{command:?}");
    let mut child = spawn(command, signal).unwrap_or_else(|error| panic!("{line}: {error}"));
    let started = Instant::now();
    while !is_ready(&child) {
        let exited = child.try_wait().expect("failed to query a child process").is_some();
        if exited || started.elapsed() > START_TIMEOUT {
            let _ = child.kill();
            let _ = child.wait();
            return Err(fs::read_to_string(log).unwrap_or_default());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(child)
}
