//! EventBridge, through which *start* invokes itself.

use crate::{Error, Invocation, Result};
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use std::time::Duration;
use windlass_drivers::dynamodb::SdkConfig;
use windlass_drivers::{Error as DbError, ErrorClass};

/// The source of the events.
pub const SOURCE: &str = "windlass";
/// The type of the events. Their detail is a request.
pub const DETAIL_TYPE: &str = "StartBatchJob";

/// An event bus with a rule that invokes *start*.
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
        for some in invocations.chunks(AT_ONCE) {
            let mut left: Vec<PutEventsRequestEntry> =
                some.iter().map(|invocation| self.entry(invocation)).collect();
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

    fn entry(&self, invocation: &Invocation) -> PutEventsRequestEntry {
        PutEventsRequestEntry::builder()
            .source(SOURCE)
            .detail_type(DETAIL_TYPE)
            .detail(invocation.to_json().to_string())
            .event_bus_name(&self.bus)
            .build()
    }
}

/// The exponential backoff after `tries` tries, with jitter.
pub(crate) fn backoff(tries: u32) -> Duration {
    Duration::from_millis(50 << tries.min(8)).mul_f64(rand::random_range(0.5..1.0))
}
