//! A second implementation of DynamoDB, MiniStack, which runs requests in parallel. moto runs them one at a time behind
//! our server, so conditional writes meet only here. It stops when the test process dies.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::Signal;

use crate::Dynamodb;
use crate::account::Account;
use crate::folder::Folder;
use crate::launch::{launch, on_free_port};
use crate::python::program;

/// A server on a free port of 127.0.0.1 that keeps its data in memory.
pub struct Ministack {
    port: u16,
    running: Child,
    /// Dropped after the process, which logs into it.
    _folder: Folder,
}

impl Ministack {
    /// The server that all tests of this process share. It runs until the process ends.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Ministack> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    fn start() -> Self {
        let python = program("ministack", "python");
        let folder = Folder::create(Account::find());
        let started = on_free_port(|port| {
            let _ = fs::remove_file(folder.log());
            let mut command = Command::new(&python);
            command.args(["-c", include_str!("ministack/server.py")]);
            command.env("GATEWAY_PORT", port.to_string()).env("BIND_HOST", "127.0.0.1");
            command.current_dir(folder.path()).stdin(Stdio::null()).env("PYTHONUNBUFFERED", "1");
            let is_up = |_: &Child| {
                let log = fs::read_to_string(folder.log()).unwrap_or_default();
                log.contains("Running on http://")
            };
            launch(command, &folder.log(), Signal::SIGKILL, is_up)
        });
        let (running, port) =
            started.unwrap_or_else(|log| panic!("MiniStack does not start\n{log}"));
        Self { port, running, _folder: folder }
    }

    /// An empty DynamoDB for one test. It injects no faults and counts no requests.
    pub fn dynamodb(&self) -> Dynamodb {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let region = format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let addr: SocketAddr = (Ipv4Addr::LOCALHOST, self.port).into();
        Dynamodb::new(addr, region)
    }
}

impl Drop for Ministack {
    fn drop(&mut self) {
        let _ = self.running.kill();
        let _ = self.running.wait();
    }
}
