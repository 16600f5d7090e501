//! Stops the process that flushes PostgreSQL's log in the background.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Database, PostgresServer};

/// The WAL writer of a server, stopped by SIGSTOP. Until this is dropped, only commits flush the log.
pub struct StoppedWalWriter {
    process: Pid,
}

impl StoppedWalWriter {
    /// Ends the process, so that it flushes nothing before the server is stopped.
    pub fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    fn signal(&self, signal: Signal) {
        // The process may have ended with its server.
        let _ = kill(self.process, signal);
    }
}

impl Drop for StoppedWalWriter {
    fn drop(&mut self) {
        self.signal(Signal::SIGCONT);
    }
}

impl PostgresServer {
    /// Stops the WAL writer while it sleeps, since it may hold a lock while it works.
    pub async fn stop_wal_writer(&self) -> StoppedWalWriter {
        let database = Database::new("postgres", self.url("postgres"));
        let of = |column: &str| {
            format!("SELECT {column} FROM pg_stat_activity WHERE backend_type = 'walwriter'")
        };
        let writer = StoppedWalWriter { process: Pid::from_raw(database.one(&of("pid")).await) };
        let sleeps = of("coalesce(wait_event = 'WalWriterMain', false)");
        crate::eventually("the WAL writer sleeps", Duration::from_secs(60), async || {
            writer.signal(Signal::SIGSTOP);
            let asleep: bool = database.one(&sleeps).await;
            if !asleep {
                writer.signal(Signal::SIGCONT);
            }
            asleep
        })
        .await;
        writer
    }
}
