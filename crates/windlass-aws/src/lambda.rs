//! The two functions on Lambda: reading events, and finishing before the deadline.

use crate::{Delivery, Error, Events, Process, Queue, Start, config, environment};
use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde_json::Value as Json;
use std::time::{Duration, Instant, SystemTime};
use tracing_subscriber::EnvFilter;
use windlass_core::Problem;
use windlass_core::problem::Code;
use windlass_engine::Steps;

/// How long *start* enqueues further pages before it invokes itself again.
const DEFAULT_LOAD_SECONDS: u64 = 10;

/// Runs *start* until Lambda stops it.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    log();
    let settings = environment().await?;
    let queue = Queue::open(&settings, &variable("BATCH_JOB_QUEUE_URL")?).await?;
    let bus = std::env::var("EVENT_BUS_NAME").unwrap_or_else(|_| "default".to_owned());
    let events = Events::new(&settings, bus);
    let start = Start::new(config()?, queue).with_events(events, load_seconds()?);
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

/// The error in Lambda's form.
impl From<Error> for Diagnostic {
    fn from(error: Error) -> Diagnostic {
        let kind = match &error {
            Error::Problem(problem) => problem.code.as_str(),
            Error::Aws { .. } => "Aws",
            Error::Data { .. } => "Data",
        };
        Diagnostic { error_type: kind.to_owned(), error_message: error.to_string() }
    }
}

/// A time before Lambda's deadline that leaves room to answer.
fn before(deadline: u64) -> Instant {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let left = Duration::from_millis(deadline).saturating_sub(now);
    let spare = (left / 10).clamp(Duration::from_millis(200), Duration::from_secs(5));
    Instant::now() + left.saturating_sub(spare)
}

fn load_seconds() -> Result<Duration, Error> {
    let Ok(value) = std::env::var("LOAD_SECONDS") else {
        return Ok(Duration::from_secs(DEFAULT_LOAD_SECONDS));
    };
    let wrong = || {
        let detail = format!(
            "must be a number of seconds, got `{value}`; the default is {DEFAULT_LOAD_SECONDS}"
        );
        Problem::field(Code::Configuration, "LOAD_SECONDS", detail)
    };
    Ok(Duration::from_secs(value.trim().parse().map_err(|_| wrong())?))
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
