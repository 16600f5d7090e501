//! EventBridge, through which *start* invokes itself and the end of a job is announced.

use crate::{Error, Invocation, Result};
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use serde_json::{Value as Json, json};
use std::time::Duration;
use windlass_connectors::dynamodb::JobProgress;
use windlass_core::{JobId, JobStatus};
use windlass_drivers::dynamodb::SdkConfig;
use windlass_drivers::{Error as DbError, ErrorClass};

/// The source of the events.
pub const SOURCE: &str = "windlass";
/// The type of the events. Their detail is a request.
pub const DETAIL_TYPE: &str = "StartBatchJob";

/// The type of the event that announces the end of a job.
pub const COMPLETED_TYPE: &str = "BatchJobCompleted";

/// An event bus with a rule that invokes *start*.
#[derive(Clone)]
pub struct Events {
    client: Client,
    bus: String,
}

/// EventBridge's limit of events per request.
const AT_ONCE: usize = 10;
/// How often a request is repeated for the events that were refused.
const MAX_TRIES: u32 = 8;

impl Events {
    /// The event bus with this name.
    pub fn new(settings: &SdkConfig, bus: impl Into<String>) -> Events {
        Events { client: Client::new(settings), bus: bus.into() }
    }

    /// Sends an event for each invocation. Refused events are sent again.
    pub async fn put(&self, invocations: &[Invocation]) -> Result<()> {
        let entry = |invocation: &Invocation| self.entry(DETAIL_TYPE, &invocation.to_json());
        self.put_entries(&invocations.iter().map(entry).collect::<Vec<_>>()).await
    }

    /// Announces the end of a job.
    pub(crate) async fn announce(&self, job: JobId, progress: &JobProgress) -> Result<()> {
        let JobProgress { total, processed, skipped, dead, .. } = progress;
        let detail = json!({
            "jobId": job,
            "jobType": progress.job_type,
            "status": JobStatus::Completed,
            "items": {"total": total, "processed": processed, "skipped": skipped, "dead": dead},
            "createdAt": progress.created_at,
            "finishedAt": progress.finished_at,
        });
        self.put_entries(&[self.entry(COMPLETED_TYPE, &detail)]).await
    }

    async fn put_entries(&self, entries: &[PutEventsRequestEntry]) -> Result<()> {
        for some in entries.chunks(AT_ONCE) {
            let mut left = some.to_vec();
            for tries in 1.. {
                let put = self.client.put_events().set_entries(Some(left.clone()));
                let answer = put.send().await.map_err(Error::aws("putting events"))?;
                let mut results = answer.entries().iter();
                let mut failure = String::new();
                left.retain(|_| match results.next() {
                    Some(result) if result.error_code().is_some() => {
                        let (code, text) = (result.error_code(), result.error_message());
                        failure = text.or(code).unwrap_or_default().to_owned();
                        true
                    }
                    _ => false,
                });
                if left.is_empty() {
                    break;
                }
                if tries == MAX_TRIES {
                    let error = DbError::new(ErrorClass::Retry, failure);
                    return Err(Error::Aws { doing: "putting events".to_owned(), error });
                }
                tokio::time::sleep(backoff(tries)).await;
            }
        }
        Ok(())
    }

    fn entry(&self, detail_type: &str, detail: &Json) -> PutEventsRequestEntry {
        PutEventsRequestEntry::builder()
            .source(SOURCE)
            .detail_type(detail_type)
            .detail(detail.to_string())
            .event_bus_name(&self.bus)
            .build()
    }
}

/// The exponential backoff after `tries` tries, with jitter.
pub(crate) fn backoff(tries: u32) -> Duration {
    Duration::from_millis(50 << tries.min(8)).mul_f64(rand::random_range(0.5..1.0))
}
