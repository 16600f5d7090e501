//! A service as a step: one POST per batch, tried again, and given up for a while when it is down.

use super::circuit_breaker::CircuitBreaker;
use super::redact::Redactor;
use super::{Step, StepBatch, StepError, wire};
use crate::http_client::{cause, client};
use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use std::time::{Duration, SystemTime};
use tokio::sync::Semaphore;
use windlass_core::{Change, Endpoint, ItemError, JobType, Outcome, RetryPolicy, Secret};

/// An endpoint, with the connections that are kept open to it.
pub(super) struct HttpStep {
    client: Client,
    url: String,
    /// What must not be repeated to anybody, should the endpoint say it.
    secrets: Vec<Secret>,
    timeout: Duration,
    retry: RetryPolicy,
    /// Batches that may be on their way at once.
    room: Semaphore,
    circuit: CircuitBreaker,
}

/// How often one batch is sent before the endpoint is asked whether it is there at all.
const MOST_TRIES: u32 = 3;
/// A longer `Retry-After` is not waited for in a slot: the job type is held meanwhile.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Whatever `Retry-After` says, the endpoint is asked again after this.
const LONGEST_HOLD: Duration = Duration::from_secs(3600);
/// An answer may not be longer than this.
const MOST_ANSWER: usize = 256 << 20;

/// Why a request brought no outcomes.
enum Failed {
    /// It may pass: the endpoint is overloaded, broken or not there.
    Passing { message: String, retry_after: Option<Duration> },
    /// It gave no answer in time. That takes too long to be tried again in the slot.
    Late,
    /// The endpoint refuses the batch for good.
    Permanent { message: String, status: StatusCode },
    /// The endpoint answers with something that is no answer.
    Wrong(String),
    /// The request cannot even be made.
    Unsendable(String),
}

const LATE: &str = "the endpoint gave no answer in time";

impl HttpStep {
    /// The endpoint of a job type, with the headers as this machine's file has them.
    pub(super) fn new(endpoint: &Endpoint, job_type: &JobType) -> Result<HttpStep, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &endpoint.headers {
            let bad = || format!("the header `{name}` cannot be sent");
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::try_from(name).map_err(|_| bad())?, value);
        }
        let client = client()?.default_headers(headers).build().map_err(cause)?;
        let room = endpoint.concurrency.map_or(Semaphore::MAX_PERMITS, |most| most as usize);
        Ok(HttpStep {
            client,
            url: endpoint.url.clone(),
            secrets: endpoint.headers.values().cloned().collect(),
            timeout: job_type.step_timeout(),
            retry: job_type.retry.clone(),
            room: Semaphore::new(room),
            circuit: CircuitBreaker::default(),
        })
    }

    /// Sends a batch, tries it again while that may help, and judges what came of it.
    async fn work(&self, batch: &StepBatch) -> Result<Vec<Outcome>, StepError> {
        // What has failed already, as a whole or as the last of many, is not waited for again. Nor
        // does who asks whether the endpoint is there want to wait.
        let doubtful = batch.halved > 0 || batch.items.is_empty() || self.circuit.is_doubtful();
        let tries = if doubtful { 1 } else { MOST_TRIES.min(self.retry.attempts) };
        let mut tried = 0;
        loop {
            tried += 1;
            match self.post(batch, batch.time(self.timeout)).await {
                Ok(outcomes) => {
                    self.circuit.succeeded();
                    return Ok(outcomes);
                }
                Err(Failed::Passing { message, retry_after })
                    if tried < tries && retry_after.is_none_or(|wait| wait <= LONGEST_WAIT) =>
                {
                    let backoff = self.retry.jittered(tried, rand::random());
                    let wait = retry_after.unwrap_or_default().max(backoff);
                    tracing::warn!(job = %batch.job.id, ?wait, "{message}; trying again");
                    tokio::time::sleep(wait).await;
                }
                Err(failed) => return Err(self.judge(batch, failed).await),
            }
        }
    }

    async fn post(&self, batch: &StepBatch, time: Duration) -> Result<Vec<Outcome>, Failed> {
        let body = wire::request(batch).map_err(Failed::Wrong)?;
        let request = self.client.post(&self.url).timeout(time);
        let mut request = request.header(CONTENT_TYPE, "application/json").body(body);
        // An answer that somebody kept would not tell whether the endpoint is there.
        if !batch.items.is_empty() {
            request = request.header("Idempotency-Key", batch.idempotency_key());
        }
        if let Some(token) = &batch.job.token {
            request = request.bearer_auth(token.expose());
        }
        let mut response = request.send().await.map_err(unreached)?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.refused(batch, status, response).await);
        }
        let answer = read(&mut response).await?;
        if answer.is_empty() {
            return Ok(vec![Outcome::Done(Change::default()); batch.items.len()]);
        }
        let redactor = self.redactor(batch);
        let mut outcomes = wire::outcomes(batch, &answer, &redactor)
            .map_err(|wrong| Failed::Wrong(redactor.redact(&wrong)))?;
        for outcome in &mut outcomes {
            if let Outcome::Error(error) = outcome {
                redactor.redact_error(error);
            }
        }
        Ok(outcomes)
    }

    /// What is made of a failure that trying again did not mend: an empty batch tells whether the
    /// endpoint is down or the items are bad.
    async fn judge(&self, batch: &StepBatch, failed: Failed) -> StepError {
        match failed {
            Failed::Wrong(message) => self.circuit.failed(batch, ItemError::transient(message)),
            Failed::Unsendable(message) => StepError::Fatal(message),
            Failed::Permanent { message, status } if status.is_redirection() => {
                StepError::Fatal(format!("{message}; name the final URL in step.http"))
            }
            Failed::Permanent { ref message, status } if refuses_callers(status) => {
                let message = message.clone();
                match self.probe(batch, failed).await {
                    Err(Failed::Permanent { status, .. }) if refuses_callers(status) => {
                        let advice = "are step.http and step.headers right?";
                        StepError::Fatal(format!("{message}; {advice}"))
                    }
                    Err(Failed::Passing { message, retry_after }) => {
                        self.circuit.open(message, retry_after)
                    }
                    Err(Failed::Late) => self.circuit.open(LATE.to_owned(), None),
                    _ => self.given_up(message),
                }
            }
            Failed::Permanent { message, .. } => self.given_up(message),
            Failed::Late => match self.probe(batch, Failed::Late).await {
                Err(Failed::Late | Failed::Passing { .. }) => {
                    self.circuit.open(LATE.to_owned(), None)
                }
                _ => self.circuit.failed(batch, ItemError::transient(LATE)),
            },
            // Who asks for time gets it, unless that has helped nothing before.
            Failed::Passing { message, retry_after: Some(wait) } if !self.circuit.is_doubtful() => {
                self.circuit.open(message, Some(wait))
            }
            Failed::Passing { ref message, retry_after } => {
                let message = message.clone();
                match self.probe(batch, failed).await {
                    Err(Failed::Late | Failed::Passing { .. }) => {
                        self.circuit.open(message, retry_after)
                    }
                    _ => self.circuit.failed(batch, ItemError::transient(message)),
                }
            }
        }
    }

    /// The endpoint is there, and does not want these items.
    fn given_up(&self, message: String) -> StepError {
        self.circuit.succeeded();
        StepError::Batch(ItemError::permanent(message))
    }

    /// Asks with an empty batch whether the endpoint is there. It gets less time, so that there is
    /// some left to act upon the answer. What failed as an empty batch is its own answer.
    async fn probe(&self, batch: &StepBatch, failed: Failed) -> Result<Vec<Outcome>, Failed> {
        match batch.items.is_empty() {
            true => Err(failed),
            false => self.post(&batch.empty(), self.timeout / 4).await,
        }
    }

    /// The endpoint answered that it does not want the batch, now or for good.
    async fn refused(
        &self,
        batch: &StepBatch,
        status: StatusCode,
        mut response: Response,
    ) -> Failed {
        let retry_after = response.headers().get(RETRY_AFTER).and_then(wait_of);
        let body = read(&mut response).await.unwrap_or_default();
        let mut message = format!("the endpoint answered {status}");
        if !body.is_empty() {
            message += &format!(": {}", wire::excerpt(&body, &self.redactor(batch)));
        }
        match status.as_u16() {
            408 | 425 | 429 | 500.. => Failed::Passing { message, retry_after },
            _ => Failed::Permanent { message, status },
        }
    }

    /// Replaces the secrets that an endpoint may repeat.
    fn redactor(&self, batch: &StepBatch) -> Redactor {
        Redactor::new(self.secrets.iter().chain(&batch.job.token))
    }
}

#[async_trait]
impl Step for HttpStep {
    async fn process(&self, batch: StepBatch) -> Result<Vec<Outcome>, StepError> {
        self.circuit.enter()?;
        // Whoever waits here waits for others, which is no failure of its own.
        let room = tokio::time::timeout(self.timeout, self.room.acquire()).await;
        let _room = room.map_err(|_| StepError::Saturated)?;
        self.work(&batch).await
    }
}

/// Statuses by which an endpoint turns away whoever calls it, whatever the batch.
fn refuses_callers(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403 | 404 | 405 | 407)
}

/// The request did not come through. The URL is left out, since it may hold a secret.
fn unreached(error: reqwest::Error) -> Failed {
    let (is_connect, is_builder) = (error.is_connect(), error.is_builder());
    if error.is_timeout() {
        return Failed::Late;
    }
    let cause = cause(error);
    if is_builder {
        return Failed::Unsendable(format!("the request cannot be made: {cause}"));
    }
    let what = match is_connect {
        true => "the endpoint cannot be reached",
        false => "the connection to the endpoint broke",
    };
    Failed::Passing { message: format!("{what}: {cause}"), retry_after: None }
}

/// Seconds, or a time.
fn wait_of(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let time = httpdate::parse_http_date(text).ok()?;
            time.duration_since(SystemTime::now()).unwrap_or_default()
        }
    };
    Some(wait.min(LONGEST_HOLD))
}

async fn read(response: &mut Response) -> Result<Vec<u8>, Failed> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(unreached)? {
        body.extend_from_slice(&piece);
        if body.len() > MOST_ANSWER {
            return Err(Failed::Wrong(format!(
                "the answer is longer than {} MB",
                MOST_ANSWER >> 20
            )));
        }
    }
    Ok(body)
}
