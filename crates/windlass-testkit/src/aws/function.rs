//! A Lambda function: a real binary, with one process per concurrent invocation.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tokio::sync::Semaphore;

use super::runtime::Runtime;
use crate::{Running, Windlass};

/// A function. Clones share their state.
#[derive(Clone)]
pub struct Function {
    shared: Arc<Shared>,
}

struct Shared {
    program: Mutex<Windlass>,
    /// How often the configuration has changed. Processes started with an older one are not used again.
    changes: AtomicUsize,
    time: Duration,
    concurrency: Semaphore,
    idle: Mutex<Vec<Environment>>,
    busy: Mutex<Vec<u32>>,
    invocations: Mutex<Vec<Invocation>>,
}

/// What is known of an invocation when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The records of its event.
    pub records: usize,
    /// The invocations that run at this moment, with this one.
    pub at_once: usize,
}

/// A process of the function and the runtime API that it polls.
struct Environment {
    changes: usize,
    process: Running,
    runtime: Runtime,
}

/// Why an invocation has no response.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The function returned this error.
    Error(Json),
    /// The process exited.
    Died,
    /// The function exceeded its timeout and was killed.
    Late,
}

impl Function {
    /// A function that runs `binary` in `folder`, with a timeout per invocation and a limit on concurrent
    /// invocations. Lambda likewise runs a function in the folder of its package.
    pub fn new(
        binary: impl Into<PathBuf>,
        folder: &Path,
        environment: &[(String, String)],
        time: Duration,
        concurrency: usize,
    ) -> Function {
        let mut program = Windlass::new(folder).binary(binary);
        let ours = [
            ("AWS_LAMBDA_FUNCTION_NAME", "test"),
            ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
            ("AWS_LAMBDA_LOG_GROUP_NAME", "test"),
            ("AWS_LAMBDA_LOG_STREAM_NAME", "test"),
        ];
        for (name, value) in ours {
            program = program.env(name, value);
        }
        for (name, value) in environment {
            program = program.env(name, value);
        }
        let shared = Shared {
            program: Mutex::new(program),
            changes: AtomicUsize::default(),
            time,
            concurrency: Semaphore::new(concurrency),
            idle: Mutex::default(),
            busy: Mutex::default(),
            invocations: Mutex::default(),
        };
        Function { shared: Arc::new(shared) }
    }

    /// Invokes the function and waits for its answer.
    pub async fn invoke(&self, event: Json) -> Result<Json, Failure> {
        let shared = &self.shared;
        let _permit = shared.concurrency.acquire().await.expect("the semaphore is never closed");
        let idle = shared.idle.lock().expect("the lock is poisoned").pop();
        let environment = match idle {
            Some(environment) => environment,
            None => self.start().await,
        };
        let id = environment.process.id();
        self.begin(id, &event);
        let answer = environment.invoke(event, shared.time).await;
        shared.busy.lock().expect("the lock is poisoned").retain(|busy| *busy != id);
        let is_current = environment.changes == shared.changes.load(Ordering::SeqCst);
        if is_current && !matches!(answer, Err(Failure::Died | Failure::Late)) {
            shared.idle.lock().expect("the lock is poisoned").push(environment);
        }
        answer
    }

    /// Sets an environment variable, as a change of the function's configuration does. The next invocation
    /// starts a new process.
    pub fn set(&self, name: &str, value: &str) {
        let mut program = self.shared.program.lock().expect("the lock is poisoned");
        *program = program.clone().env(name, value);
        self.shared.changes.fetch_add(1, Ordering::SeqCst);
        self.shared.idle.lock().expect("the lock is poisoned").clear();
    }

    /// The ids of the processes that are in an invocation.
    pub fn at_work(&self) -> Vec<u32> {
        self.shared.busy.lock().expect("the lock is poisoned").clone()
    }

    /// All invocations so far, in the order in which they began.
    pub fn invocations(&self) -> Vec<Invocation> {
        self.shared.invocations.lock().expect("the lock is poisoned").clone()
    }

    /// The logs of the idle processes.
    pub fn log(&self) -> String {
        let idle = self.shared.idle.lock().expect("the lock is poisoned");
        idle.iter().map(|environment| environment.process.stderr()).collect()
    }

    fn begin(&self, process: u32, event: &Json) {
        let mut busy = self.shared.busy.lock().expect("the lock is poisoned");
        busy.push(process);
        let records = event["Records"].as_array().map_or(0, Vec::len);
        let invocation = Invocation { records, at_once: busy.len() };
        self.shared.invocations.lock().expect("the lock is poisoned").push(invocation);
    }

    async fn start(&self) -> Environment {
        let runtime = Runtime::serve().await;
        let changes = self.shared.changes.load(Ordering::SeqCst);
        let program = self.shared.program.lock().expect("the lock is poisoned").clone();
        let program = program.env("AWS_LAMBDA_RUNTIME_API", runtime.addr());
        Environment { changes, process: program.spawn(std::iter::empty::<&str>()), runtime }
    }
}

impl Environment {
    async fn invoke(&self, event: Json, time: Duration) -> Result<Json, Failure> {
        let begun = Instant::now();
        let mut answer = self.runtime.invoke(event, time).await;
        loop {
            tokio::select! {
                answer = &mut answer => {
                    return answer.map_err(|_| Failure::Died)?.map_err(Failure::Error);
                }
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
            if !self.process.is_running() {
                // The process may have answered before it exited.
                return match answer.try_recv() {
                    Ok(answer) => answer.map_err(Failure::Error),
                    Err(_) => {
                        eprintln!(
                            "the function's process exited; its log:\n{}",
                            self.process.stderr()
                        );
                        Err(Failure::Died)
                    }
                };
            }
            // The start of the process counts here too; on Lambda it has its own timeout.
            if begun.elapsed() > time + START {
                eprintln!("the function exceeded its timeout; its log:\n{}", self.process.stderr());
                return Err(Failure::Late);
            }
        }
    }
}

/// The time that a process has to start. Generous, for machines under load.
const START: Duration = Duration::from_secs(30);
