//! A Lambda function: a binary, run for real in as many environments as are invoked at once.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tokio::sync::Semaphore;

use super::runtime::Runtime;
use crate::{Running, Windlass};

/// A function. Cheap to clone; every clone is the same.
#[derive(Clone)]
pub struct Function {
    shared: Arc<Shared>,
}

struct Shared {
    program: Mutex<Windlass>,
    /// How often its configuration has changed: environments of another one are not used again.
    changes: AtomicUsize,
    time: Duration,
    concurrency: Semaphore,
    idle: Mutex<Vec<Environment>>,
    busy: Mutex<Vec<u32>>,
}

/// A process, and the API it asks for work.
struct Environment {
    changes: usize,
    process: Running,
    runtime: Runtime,
}

/// Why an invocation has no response.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The function answered with this error.
    Error(Json),
    /// Its process ended.
    Died,
    /// It did not answer in time, and was ended.
    Late,
}

impl Function {
    /// A function of this binary, with this time for an invocation and so many at once at most. It
    /// runs in `folder`, as Lambda runs it where its package is.
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
        };
        Function { shared: Arc::new(shared) }
    }

    /// Invokes it and waits for its answer.
    pub async fn invoke(&self, event: Json) -> Result<Json, Failure> {
        let shared = &self.shared;
        let _permit = shared.concurrency.acquire().await.expect("nobody closes it");
        let idle = shared.idle.lock().expect("nobody panicked").pop();
        let environment = match idle {
            Some(environment) => environment,
            None => self.start().await,
        };
        let id = environment.process.id();
        shared.busy.lock().expect("nobody panicked").push(id);
        let answer = environment.invoke(event, shared.time).await;
        shared.busy.lock().expect("nobody panicked").retain(|busy| *busy != id);
        let is_current = environment.changes == shared.changes.load(Ordering::SeqCst);
        if is_current && !matches!(answer, Err(Failure::Died | Failure::Late)) {
            shared.idle.lock().expect("nobody panicked").push(environment);
        }
        answer
    }

    /// Sets a variable of its environment, as its configuration does: from the next invocation on,
    /// which begins anew.
    pub fn set(&self, name: &str, value: &str) {
        let mut program = self.shared.program.lock().expect("nobody panicked");
        *program = program.clone().env(name, value);
        self.shared.changes.fetch_add(1, Ordering::SeqCst);
        self.shared.idle.lock().expect("nobody panicked").clear();
    }

    /// The ids of the processes that are at work.
    pub fn at_work(&self) -> Vec<u32> {
        self.shared.busy.lock().expect("nobody panicked").clone()
    }

    /// What the idle environments have written to their logs.
    pub fn log(&self) -> String {
        let idle = self.shared.idle.lock().expect("nobody panicked");
        idle.iter().map(|environment| environment.process.stderr()).collect()
    }

    async fn start(&self) -> Environment {
        let runtime = Runtime::serve().await;
        let changes = self.shared.changes.load(Ordering::SeqCst);
        let program = self.shared.program.lock().expect("nobody panicked").clone();
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
                // It has said its last: an answer that it gave before is one.
                return match answer.try_recv() {
                    Ok(answer) => answer.map_err(Failure::Error),
                    Err(_) => {
                        eprintln!("a function died; its log:\n{}", self.process.stderr());
                        Err(Failure::Died)
                    }
                };
            }
            // Its start counts as well here, which on Lambda has a time of its own.
            if begun.elapsed() > time + START {
                eprintln!("a function was late; its log:\n{}", self.process.stderr());
                return Err(Failure::Late);
            }
        }
    }
}

/// The time that a process has to begin; generous, for machines under load.
const START: Duration = Duration::from_secs(30);
