//! The functions on Lambda: reading events, and finishing before the deadline.

use crate::{
    Delivery, Error, Events, Fleet, Process, Queue, Start, TimeLimit, config, config_with,
    environment, secrets,
};
use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde_json::Value as Json;
use std::time::{Duration, Instant, SystemTime};
use tracing_subscriber::EnvFilter;
use windlass_core::Problem;
use windlass_core::problem::Code;
use windlass_engine::{EngineError, Steps};

/// How long *start* enqueues further pages before it invokes itself again.
const DEFAULT_LOAD_SECONDS: u64 = 10;

/// Runs *start* until Lambda stops it.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    log();
    let settings = environment().await?;
    let queue = Queue::open(&settings, &variable("BATCH_JOB_QUEUE_URL")?).await?;
    let bus = std::env::var("EVENT_BUS_NAME").unwrap_or_else(|_| "default".to_owned());
    let events = Events::new(&settings, bus);
    let load_time = Duration::from_secs(number("LOAD_SECONDS", DEFAULT_LOAD_SECONDS)?);
    let start = Start::new(config()?, queue).with_events(events, load_time);
    let start = &start;
    let handle = move |event: LambdaEvent<Json>| async move {
        let context = event.context;
        let until = before(context.deadline);
        let answer = start.handle(event.payload, &context.request_id, until).await;
        answer.inspect_err(|error| tracing::error!(%error, "invocation failed"))
    };
    lambda_runtime::run(service_fn(handle)).await
}

/// Runs *process* with these steps until Lambda stops it.
pub async fn process(steps: Steps) -> Result<(), lambda_runtime::Error> {
    log();
    let mut process = Process::new(config()?, steps);
    let settings = environment().await?;
    if let Ok(url) = variable("BATCH_JOB_QUEUE_URL") {
        let queue = Queue::open(&settings, &url).await?.dead_letter_queue().await?;
        process = queue.into_iter().fold(process, Process::with_dead_letters);
    }
    if let Ok(bus) = variable("EVENT_BUS_NAME") {
        process = process.with_events(Events::new(&settings, bus));
    }
    let process = &process;
    let handle = move |event: LambdaEvent<SqsEvent>| async move {
        let until = before(event.context.deadline);
        let deliveries: Vec<Delivery> =
            event.payload.records.into_iter().map(Delivery::from).collect();
        let failed = process.work(&deliveries, until).await;
        let failure = |id| {
            let mut failure = BatchItemFailure::default();
            failure.item_identifier = id;
            failure
        };
        let mut answer = SqsBatchResponse::default();
        answer.batch_item_failures = failed.into_iter().map(failure).collect();
        Ok::<_, Error>(answer)
    };
    lambda_runtime::run(service_fn(handle)).await
}

/// Runs *worker* with these handlers until Lambda stops it.
pub async fn worker(steps: Steps) -> Result<(), lambda_runtime::Error> {
    log();
    let slots = number("WORKER_SLOTS", 1)?.max(1);
    let fleet = Fleet::new(config_with(&secrets().await?)?, steps, slots as usize);
    let fleet = &fleet;
    let handle = move |event: LambdaEvent<Json>| async move {
        let context = event.context;
        let limit =
            TimeLimit { stop: stop_before(context.deadline), answer: before(context.deadline) };
        let answer = fleet.handle(event.payload, &context.request_id, limit).await;
        answer.inspect_err(|error| tracing::error!(%error, "invocation failed"))
    };
    lambda_runtime::run(service_fn(handle)).await
}

/// The error in Lambda's form.
impl From<Error> for Diagnostic {
    fn from(error: Error) -> Diagnostic {
        let kind = match &error {
            Error::Problem(problem) => problem.code.as_str(),
            Error::Aws { .. } => "Aws",
            Error::Data { .. } => "Data",
            Error::Engine(EngineError::Problem(problem)) => problem.code.as_str(),
            Error::Engine(_) => "Engine",
        };
        Diagnostic { error_type: kind.to_owned(), error_message: error.to_string() }
    }
}

/// A time before Lambda's deadline that leaves room to answer.
fn before(deadline: u64) -> Instant {
    let left = time_left(deadline);
    let spare = (left / 10).clamp(Duration::from_millis(200), Duration::from_secs(5));
    Instant::now() + left.saturating_sub(spare)
}

/// A time before Lambda's deadline that leaves room to finish commits and hand chunks back.
fn stop_before(deadline: u64) -> Instant {
    let left = time_left(deadline);
    let spare = (left / 5).clamp(Duration::from_millis(500), Duration::from_secs(60));
    Instant::now() + left.saturating_sub(spare)
}

fn time_left(deadline: u64) -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Duration::from_millis(deadline).saturating_sub(now)
}

/// A whole number from the environment.
fn number(name: &str, default: u64) -> Result<u64, Error> {
    let Ok(value) = std::env::var(name) else { return Ok(default) };
    let wrong = || {
        let detail = format!("must be a number, got `{value}`; the default is {default}");
        Problem::field(Code::Configuration, name, detail)
    };
    Ok(value.trim().parse().map_err(|_| wrong())?)
}

fn variable(name: &str) -> Result<String, Error> {
    std::env::var(name).map_err(|_| {
        let detail = "is not set in the function's environment";
        Problem::field(Code::Configuration, name, detail).into()
    })
}

/// Logs JSON lines, one per batch and per failure, which CloudWatch can count.
fn log() {
    let filter = std::env::var("WINDLASS_LOG").unwrap_or_else(|_| "warn,windlass=info".to_owned());
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_current_span(false)
        .with_span_list(false)
        .init();
}
