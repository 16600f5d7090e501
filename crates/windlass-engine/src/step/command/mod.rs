//! A program of the user's as a step: long-lived children that answer a line with a line.

mod child;
mod guard;
mod stderr;

use super::circuit_breaker::CircuitBreaker;
use super::{Step, StepBatch, StepError};
use async_trait::async_trait;
use child::{Child, Fault};
use futures::future::join_all;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use windlass_core::{ItemError, Outcome};

/// The children of one command. A batch takes one that waits or starts another, so there are as
/// many as slots work batches of it.
pub(super) struct CommandStep {
    words: Vec<String>,
    /// The names of the variables that its children get.
    environment: Vec<String>,
    timeout: Duration,
    waiting: Mutex<Vec<(Child, Instant)>>,
    circuit: CircuitBreaker,
}

/// Starts that may fail in a row: a child may be killed by accident, but not always.
const MOST_STARTS: u32 = 3;

impl CommandStep {
    pub(super) fn new(
        words: Vec<String>,
        environment: Vec<String>,
        timeout: Duration,
    ) -> CommandStep {
        let (waiting, circuit) = (Mutex::default(), CircuitBreaker::default());
        CommandStep { words, environment, timeout, waiting, circuit }
    }

    /// A child that waits for a batch.
    async fn child(&self, batch: &StepBatch) -> Result<Child, StepError> {
        loop {
            let waiting = self.waiting().pop();
            let Some((mut child, _)) = waiting else { return self.start(batch).await };
            if child.is_ready() {
                return Ok(child);
            }
            // It died, or spoke unasked, while nobody looked.
            child.kill().await;
        }
    }

    /// Starts a child and asks it an empty batch, so that what is wrong with the program itself is
    /// not taken for a fault of the records.
    async fn start(&self, batch: &StepBatch) -> Result<Child, StepError> {
        let question = batch.empty();
        let mut starts = 0;
        loop {
            let mut child = Child::start(&self.words, &self.environment).map_err(|error| {
                let program = self.words.first().map_or("", String::as_str);
                StepError::Fatal(format!("the command `{program}` cannot be started: {error}"))
            })?;
            starts += 1;
            match child.ask(&question, self.timeout).await {
                Ok(_) => return Ok(child),
                Err(fault) => {
                    let said = child.kill().await;
                    if starts >= MOST_STARTS || fault == Fault::Late(self.timeout) {
                        let hint = match fault {
                            Fault::Late(_) => "; does it flush its output after each line?",
                            _ => "",
                        };
                        let message = format!(
                            "the command does not answer the empty batch it gets at its start: it \
                             {fault}{hint}{}",
                            stderr_tail(&said)
                        );
                        return Err(StepError::Fatal(message));
                    }
                }
            }
        }
    }

    /// Plain values, which a panic elsewhere cannot leave half changed.
    fn waiting(&self) -> MutexGuard<'_, Vec<(Child, Instant)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Step for CommandStep {
    async fn process(&self, batch: StepBatch) -> Result<Vec<Outcome>, StepError> {
        self.circuit.enter()?;
        let mut child = self.child(&batch).await?;
        let timeout = batch.time(self.timeout);
        match child.ask(&batch, timeout).await {
            Ok(outcomes) => {
                self.waiting().push((child, Instant::now()));
                self.circuit.succeeded();
                Ok(outcomes)
            }
            Err(fault) => {
                let said = child.kill().await;
                let error = failure(&fault, &said);
                // Each part that fails says so; only the first is news.
                let (job, items) = (batch.job.id, batch.items.len());
                match batch.halved {
                    0 => tracing::warn!(%job, items, "{}; started anew", error.message),
                    _ => tracing::info!(%job, items, "{}; started anew", error.message),
                }
                Err(self.circuit.failed(&batch, error))
            }
        }
    }

    async fn close_idle(&self, unused: Duration) {
        let ending: Vec<Child> = {
            let mut waiting = self.waiting();
            let (resting, kept) =
                waiting.drain(..).partition(|(_, since)| since.elapsed() >= unused);
            *waiting = kept;
            let resting: Vec<(Child, Instant)> = resting;
            resting.into_iter().map(|(child, _)| child).collect()
        };
        join_all(ending.into_iter().map(Child::end)).await;
    }
}

/// The fault as an item's error. A program that ends has mostly said why, last of all.
fn failure(fault: &Fault, said: &str) -> ItemError {
    let why = said.lines().last().filter(|_| matches!(fault, Fault::ClaimOutcome(_)));
    let message = match why {
        Some(why) => format!("the command {fault}: {}", why.trim()),
        None => format!("the command {fault}"),
    };
    let context = match said.is_empty() {
        true => serde_json::Value::Null,
        false => serde_json::json!({ "stderr": said }),
    };
    ItemError { message, retryable: true, context }
}

/// What a child said last, to be added to a message.
fn stderr_tail(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; it said: {said}") }
}
