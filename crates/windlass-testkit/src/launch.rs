//! Starting a server, and knowing when it is there.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::free_port;
use crate::spawn::spawn;

/// How long a server may take to accept connections; generous, for machines under load.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts a server on a free port, or tells its log when it does not start. Another process may
/// take the port between our look and the server's start, so a few are tried.
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

/// Starts a server, which receives `signal` when this process dies. Returns when it is ready, or
/// with its log when it does not become so.
pub(crate) fn launch(
    mut command: Command,
    log: &Path,
    signal: Signal,
    is_ready: impl Fn(&Child) -> bool,
) -> Result<Child, String> {
    let output = File::options().create(true).append(true).open(log).expect("a log file opens");
    command.stdout(output.try_clone().expect("a file handle doubles")).stderr(output);
    let line = format!("{command:?}");
    let mut child = spawn(command, signal).unwrap_or_else(|error| panic!("{line}: {error}"));
    let started = Instant::now();
    while !is_ready(&child) {
        let exited = child.try_wait().expect("our own child can be asked").is_some();
        if exited || started.elapsed() > START_TIMEOUT {
            let _ = child.kill();
            let _ = child.wait();
            return Err(fs::read_to_string(log).unwrap_or_default());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(child)
}
