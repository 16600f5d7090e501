//! Runs a program as a step: long-lived child processes that respond to each line with a line.

mod child;
mod guard;
mod stderr;

use super::circuit_breaker::CircuitBreaker;
use super::{Step, StepBatch, StepError};
use async_trait::async_trait;
use child::{Child, ChildError};
use futures::future::join_all;
use parking_lot::Mutex;
use std::time::{Duration, Instant};
use windlass_core::{ItemError, Outcome};

/// The child processes of one command. A batch takes an idle child or starts one, so there are as many
/// children as slots that process batches of this command.
pub(super) struct CommandStep {
    command_line: Vec<String>,
    /// Names of the environment variables that the children get.
    environment: Vec<String>,
    timeout: Duration,
    /// Idle children, and since when.
    idle: Mutex<Vec<(Child, Instant)>>,
    circuit: CircuitBreaker,
}

/// Attempts to start a child before the job is paused. A single failure may be an accident.
const MAX_STARTS: u32 = 3;

impl CommandStep {
    pub(super) fn new(
        command_line: Vec<String>,
        environment: Vec<String>,
        timeout: Duration,
    ) -> CommandStep {
        let (idle, circuit) = (Mutex::default(), CircuitBreaker::default());
        CommandStep { command_line, environment, timeout, idle, circuit }
    }

    /// An idle child, or a new one.
    async fn child(&self, batch: &StepBatch) -> Result<Child, StepError> {
        loop {
            let idle = self.idle.lock().pop();
            let Some((mut child, _)) = idle else { return self.start(batch).await };
            if child.is_ready() {
                return Ok(child);
            }
            // It exited, or wrote something, while it was idle.
            child.kill().await;
        }
    }

    /// Starts a child and sends it an empty batch, so that an error of the program itself is not blamed
    /// on the records.
    async fn start(&self, batch: &StepBatch) -> Result<Child, StepError> {
        let probe = batch.to_probe();
        let mut starts = 0;
        loop {
            let mut child =
                Child::start(&self.command_line, &self.environment).map_err(|error| {
                    let program = self.command_line.first().map_or("", String::as_str);
                    StepError::Fatal(format!("cannot start the command `{program}`: {error}"))
                })?;
            starts += 1;
            match child.process(&probe, self.timeout).await {
                Ok(_) => return Ok(child),
                Err(error) => {
                    let stderr = child.kill().await;
                    if starts >= MAX_STARTS || error == ChildError::Timeout(self.timeout) {
                        let hint = match error {
                            ChildError::Timeout(_) => "; does it flush stdout after each line?",
                            _ => "",
                        };
                        let message = format!(
                            "the command failed on the empty batch that is sent at its start: it \
                             {error}{hint}{}",
                            stderr_suffix(&stderr)
                        );
                        return Err(StepError::Fatal(message));
                    }
                }
            }
        }
    }
}

#[async_trait]
impl Step for CommandStep {
    async fn process(&self, batch: StepBatch) -> Result<Vec<Outcome>, StepError> {
        self.circuit.check()?;
        let mut child = self.child(&batch).await?;
        let timeout = batch.timeout(self.timeout);
        match child.process(&batch, timeout).await {
            Ok(outcomes) => {
                self.idle.lock().push((child, Instant::now()));
                self.circuit.record_success();
                Ok(outcomes)
            }
            Err(error @ ChildError::Malformed(_)) => {
                // The next batch must be given to a corrected program.
                child.kill().await;
                self.close_idle(Duration::ZERO).await;
                Err(StepError::Fatal(format!("the command {error}")))
            }
            Err(error) => {
                let stderr = child.kill().await;
                let error = item_error(&error, &stderr);
                // Each half of a failed batch fails with the same error, so warn only once.
                let (job, items) = (batch.job.id, batch.items.len());
                match batch.halved {
                    0 => tracing::warn!(%job, items, "{}; restarting it", error.message),
                    _ => tracing::info!(%job, items, "{}; restarting it", error.message),
                }
                Err(self.circuit.record_failure(&batch, error))
            }
        }
    }

    async fn close_idle(&self, idle_for: Duration) {
        let closing = {
            let mut idle = self.idle.lock();
            let (closing, kept): (Vec<_>, Vec<_>) =
                idle.drain(..).partition(|(_, since)| since.elapsed() >= idle_for);
            *idle = kept;
            closing
        };
        join_all(closing.into_iter().map(|(child, _)| child.close())).await;
    }
}

/// The error as an item's error. If the program has exited, its last line on stderr usually tells why.
fn item_error(error: &ChildError, stderr: &str) -> ItemError {
    let cause = stderr.lines().last().filter(|_| matches!(error, ChildError::Exited(_)));
    let message = match cause {
        Some(cause) => format!("the command {error}: {}", cause.trim()),
        None => format!("the command {error}"),
    };
    let context = match stderr.is_empty() {
        true => serde_json::Value::Null,
        false => serde_json::json!({ "stderr": stderr }),
    };
    ItemError { message, retryable: true, context }
}

/// The last lines of stderr, to be appended to a message.
fn stderr_suffix(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; stderr: {stderr}") }
}
