//! The processes of a round: workers, and a server with the scheduler.

use crate::common::CliSandbox;
use crate::common::seeded_rng::SeededRng;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_testkit::{Running, Windlass};

/// The commands. Each process has a configuration of its own, with its own way to the databases.
const COMMANDS: [&str; 3] = [
    "worker --concurrency 3",
    "worker --concurrency 2",
    "serve --concurrency 1 --listen 127.0.0.1:0",
];

/// Processes that are killed and frozen.
pub(super) struct Processes {
    sandbox: Arc<CliSandbox>,
    running: Vec<Process>,
    service: Running,
    port: u16,
}

struct Process {
    running: Running,
    frozen_until: Option<Instant>,
}

impl Processes {
    pub(super) const COUNT: usize = COMMANDS.len();

    /// Starts all, and the service that the job type `CALL` calls at this port.
    pub(super) fn start(sandbox: Arc<CliSandbox>, port: u16) -> Processes {
        let running = (0..COMMANDS.len()).map(|number| spawn(&sandbox, number)).collect();
        let service = serve(&sandbox, port);
        Processes { sandbox, running, service, port }
    }

    /// Kills a random process and starts it again.
    pub(super) fn kill(&mut self, rng: &mut SeededRng) {
        let number = rng.next_in(0..COMMANDS.len() as u64) as usize;
        self.running[number].running.kill9();
        self.running[number] = spawn(&self.sandbox, number);
    }

    /// Freezes a random process for longer than its leases.
    pub(super) fn freeze(&mut self, rng: &mut SeededRng) {
        let process = &mut self.running[rng.next_in(0..COMMANDS.len() as u64) as usize];
        let time = Duration::from_millis(rng.next_in(2500..5000));
        if process.running.is_running() && process.frozen_until.is_none() {
            process.running.stop();
            process.frozen_until = Some(Instant::now() + time);
        }
    }

    /// Kills the service and starts it again.
    pub(super) fn restart_service(&mut self) {
        // If the port is not free yet, `tend` starts it once more.
        self.service.kill9();
        self.service = serve(&self.sandbox, self.port);
    }

    /// Lets processes continue whose time is over, and starts those again that could not reach their store.
    pub(super) fn tend(&mut self) {
        let now = Instant::now();
        for (number, process) in self.running.iter_mut().enumerate() {
            if process.frozen_until.is_some_and(|until| until <= now) {
                process.running.cont();
                process.frozen_until = None;
            }
            if !process.running.is_running() {
                *process = spawn(&self.sandbox, number);
            }
        }
        if !self.service.is_running() {
            self.service = serve(&self.sandbox, self.port);
        }
    }

    /// Lets all processes continue.
    pub(super) fn thaw(&mut self) {
        for process in &mut self.running {
            if process.frozen_until.take().is_some() {
                process.running.cont();
            }
        }
        self.tend();
    }

    /// Asks all processes to end, and returns what is wrong with how they did.
    pub(super) async fn shut_down(self) -> Vec<String> {
        let mut found = Vec::new();
        self.running.iter().for_each(|process| process.running.term());
        for (process, command) in self.running.into_iter().zip(COMMANDS) {
            let output = process.running.wait().await;
            if output.code != Some(0) {
                found.push(format!("`{command}` ended with {:?}: {}", output.code, output.stderr));
            }
        }
        found
    }
}

fn spawn(sandbox: &CliSandbox, number: usize) -> Process {
    let command = COMMANDS[number];
    let running = sandbox.spawn(&format!("{command} --log-format json --config {number}.toml"));
    Process { running, frozen_until: None }
}

fn serve(sandbox: &CliSandbox, port: u16) -> Running {
    let python = Windlass::new(sandbox.path("")).binary("python3");
    python.spawn(["mark.py", "serve", &port.to_string()])
}
