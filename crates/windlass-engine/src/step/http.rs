//! Runs an HTTP endpoint as a step: one POST per batch, with retries and a circuit breaker.

use super::circuit_breaker::CircuitBreaker;
use super::redact::Redactor;
use super::wire::{RequestLine, ResponseError};
use super::{Step, StepBatch, StepError, wire};
use crate::http_client::{cause, client};
use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode};
use std::time::{Duration, SystemTime};
use tokio::sync::Semaphore;
use windlass_core::{Change, Endpoint, ItemError, JobType, Outcome, RetryPolicy, Secret};

/// An endpoint and its connection pool.
pub(super) struct HttpStep {
    client: Client,
    url: String,
    /// Redacted from everything that the endpoint returns.
    secrets: Vec<Secret>,
    timeout: Duration,
    retry: RetryPolicy,
    /// Limits the number of concurrent requests.
    permits: Semaphore,
    circuit: CircuitBreaker,
}

/// Maximum number of times one batch is sent before a probe checks the endpoint.
const MAX_TRIES: u32 = 3;
/// A longer `Retry-After` is not waited for in a slot: the job type is suspended instead.
const MAX_WAIT_IN_SLOT: Duration = Duration::from_secs(5);
/// A longer `Retry-After` is cut to this.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);
/// Maximum size of a response.
const MAX_RESPONSE_BYTES: usize = 256 << 20;

/// Why a request returned no outcomes.
enum RequestError {
    /// The endpoint is overloaded, broken or unreachable; retrying can help.
    Transient { message: String, retry_after: Option<Duration> },
    /// No response in time. Not retried in the slot, because that takes too long.
    Timeout,
    /// The endpoint rejects the batch; retrying does not help.
    Permanent { message: String, status: StatusCode },
    /// The response does not follow the protocol.
    InvalidResponse(String),
    /// Every answer of the first batch is malformed.
    Malformed(String),
    /// The request cannot be built.
    InvalidRequest(String),
}

const TIMEOUT_MESSAGE: &str = "the endpoint did not respond in time";

impl HttpStep {
    /// The endpoint of a job type, with the headers of this process's configuration.
    pub(super) fn new(endpoint: &Endpoint, job_type: &JobType) -> Result<HttpStep, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &endpoint.headers {
            let invalid = || format!("the header `{name}` has an invalid name or value");
            let mut value = HeaderValue::from_str(value.expose()).map_err(|_| invalid())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::try_from(name).map_err(|_| invalid())?, value);
        }
        let client = client()?.default_headers(headers).build().map_err(cause)?;
        let permits = endpoint.concurrency.map_or(Semaphore::MAX_PERMITS, |most| most as usize);
        Ok(HttpStep {
            client,
            url: endpoint.url.clone(),
            secrets: endpoint.headers.values().cloned().collect(),
            timeout: job_type.step_timeout(),
            retry: job_type.retry.clone(),
            permits: Semaphore::new(permits),
            circuit: CircuitBreaker::default(),
        })
    }

    /// Sends a batch, retries transient errors, and classifies the final error.
    async fn send_with_retries(&self, batch: &StepBatch) -> Result<Vec<Outcome>, StepError> {
        // No retries for a batch that has failed before, while the circuit is half open, or for a probe.
        let once = batch.halved > 0 || batch.items.is_empty() || self.circuit.is_half_open();
        let max_tries = if once { 1 } else { MAX_TRIES.min(self.retry.attempts) };
        let mut tries = 0;
        loop {
            tries += 1;
            match self.post(batch, batch.timeout(self.timeout)).await {
                Ok(outcomes) => {
                    self.circuit.record_success();
                    return Ok(outcomes);
                }
                Err(RequestError::Transient { message, retry_after })
                    if tries < max_tries
                        && retry_after.is_none_or(|wait| wait <= MAX_WAIT_IN_SLOT) =>
                {
                    let backoff = self.retry.jittered(tries, rand::random());
                    let wait = retry_after.unwrap_or_default().max(backoff);
                    tracing::warn!(job = %batch.job.id, ?wait, "{message}; retrying");
                    tokio::time::sleep(wait).await;
                }
                Err(error) => return Err(self.classify(batch, error).await),
            }
        }
    }

    async fn post(
        &self,
        batch: &StepBatch,
        timeout: Duration,
    ) -> Result<Vec<Outcome>, RequestError> {
        let body = RequestLine::of(batch).map_err(RequestError::InvalidResponse)?;
        let idempotency_key = body.idempotency_key(batch);
        let request = self.client.post(&self.url).timeout(timeout);
        let mut request = request.header(CONTENT_TYPE, "application/json").body(body.line);
        // A probe has no key: a response cached under it would not tell whether the endpoint works.
        if !batch.items.is_empty() {
            request = request.header("Idempotency-Key", idempotency_key);
        }
        if let Some(token) = &batch.job.token {
            request = request.bearer_auth(token.expose());
        }
        let mut response = request.send().await.map_err(transport_error)?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.status_error(batch, status, response).await);
        }
        let body = read_body(&mut response).await?;
        if body.is_empty() {
            return Ok(vec![Outcome::Done(Change::default()); batch.items.len()]);
        }
        let redactor = self.redactor(batch);
        let mut outcomes =
            wire::outcomes(batch, &body, &redactor).map_err(|error| match error {
                ResponseError::Invalid(message) => {
                    RequestError::InvalidResponse(redactor.redact(&message))
                }
                ResponseError::Malformed(message) => {
                    RequestError::Malformed(redactor.redact(&message))
                }
            })?;
        for outcome in &mut outcomes {
            if let Outcome::Error(error) = outcome {
                redactor.redact_error(error);
            }
        }
        Ok(outcomes)
    }

    /// Classifies an error after the last retry. Where the error alone does not tell, an empty batch
    /// finds out whether the endpoint is down or the items are bad.
    async fn classify(&self, batch: &StepBatch, error: RequestError) -> StepError {
        match error {
            RequestError::InvalidResponse(message) => {
                self.circuit.record_failure(batch, ItemError::transient(message))
            }
            RequestError::InvalidRequest(message) => StepError::Fatal(message),
            RequestError::Malformed(message) => {
                StepError::Fatal(format!("the endpoint is wrong: {message}"))
            }
            RequestError::Permanent { message, status } if status.is_redirection() => {
                StepError::Fatal(format!("{message}; set step.http to the final URL"))
            }
            RequestError::Permanent { ref message, status } if rejects_caller(status) => {
                let message = message.clone();
                match self.probe(batch, error).await {
                    Err(RequestError::Permanent { status, .. }) if rejects_caller(status) => {
                        let advice = "check step.http and step.headers";
                        StepError::Fatal(format!("{message}; {advice}"))
                    }
                    Err(RequestError::Transient { message, retry_after }) => {
                        self.circuit.open(message, retry_after)
                    }
                    Err(RequestError::Timeout) => {
                        self.circuit.open(TIMEOUT_MESSAGE.to_owned(), None)
                    }
                    _ => self.reject_batch(message),
                }
            }
            RequestError::Permanent { message, .. } => self.reject_batch(message),
            RequestError::Timeout => match self.probe(batch, RequestError::Timeout).await {
                Err(RequestError::Timeout | RequestError::Transient { .. }) => {
                    self.circuit.open(TIMEOUT_MESSAGE.to_owned(), None)
                }
                _ => self.circuit.record_failure(batch, ItemError::transient(TIMEOUT_MESSAGE)),
            },
            // Wait as asked, unless waiting has not helped before.
            RequestError::Transient { message, retry_after: Some(wait) }
                if !self.circuit.is_half_open() =>
            {
                self.circuit.open(message, Some(wait))
            }
            RequestError::Transient { ref message, retry_after } => {
                let message = message.clone();
                match self.probe(batch, error).await {
                    Err(RequestError::Timeout | RequestError::Transient { .. }) => {
                        self.circuit.open(message, retry_after)
                    }
                    _ => self.circuit.record_failure(batch, ItemError::transient(message)),
                }
            }
        }
    }

    /// The endpoint works and rejects these items.
    fn reject_batch(&self, message: String) -> StepError {
        self.circuit.record_success();
        StepError::Batch(ItemError::permanent(message))
    }

    /// Checks the endpoint with an empty batch. The timeout is shorter, so that time is left to act on
    /// the result. If the batch was empty already, its error is the result.
    async fn probe(
        &self,
        batch: &StepBatch,
        error: RequestError,
    ) -> Result<Vec<Outcome>, RequestError> {
        match batch.items.is_empty() {
            true => Err(error),
            false => self.post(&batch.to_probe(), self.timeout / 4).await,
        }
    }

    /// The error for a response whose status is not a success.
    async fn status_error(
        &self,
        batch: &StepBatch,
        status: StatusCode,
        mut response: Response,
    ) -> RequestError {
        let retry_after = response.headers().get(RETRY_AFTER).and_then(parse_retry_after);
        let body = read_body(&mut response).await.unwrap_or_default();
        let mut message = format!("the endpoint returned {status}");
        if !body.is_empty() {
            message += &format!(": {}", wire::excerpt(&body, &self.redactor(batch)));
        }
        match status.as_u16() {
            408 | 425 | 429 | 500.. => RequestError::Transient { message, retry_after },
            _ => RequestError::Permanent { message, status },
        }
    }

    /// Redacts the secrets that the endpoint might echo.
    fn redactor(&self, batch: &StepBatch) -> Redactor {
        Redactor::new(self.secrets.iter().chain(&batch.job.token))
    }
}

#[async_trait]
impl Step for HttpStep {
    async fn process(&self, batch: StepBatch) -> Result<Vec<Outcome>, StepError> {
        self.circuit.check()?;
        // Waiting for a permit is not a failure of this batch, so it has its own timeout.
        let permit = tokio::time::timeout(self.timeout, self.permits.acquire()).await;
        let _permit = permit.map_err(|_| StepError::Saturated)?;
        self.send_with_retries(&batch).await
    }
}

/// Whether the status rejects the caller or the URL, whatever the batch.
fn rejects_caller(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403 | 404 | 405 | 407)
}

/// The error of a request without a complete response. The URL is left out, since it may contain a
/// secret.
fn transport_error(error: reqwest::Error) -> RequestError {
    let (is_connect, is_builder) = (error.is_connect(), error.is_builder());
    if error.is_timeout() {
        return RequestError::Timeout;
    }
    let cause = cause(error);
    if is_builder {
        return RequestError::InvalidRequest(format!("cannot build the request: {cause}"));
    }
    let what = match is_connect {
        true => "cannot connect to the endpoint",
        false => "the connection to the endpoint was lost",
    };
    RequestError::Transient { message: format!("{what}: {cause}"), retry_after: None }
}

/// Parses `Retry-After`: seconds, or a date.
fn parse_retry_after(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let time = httpdate::parse_http_date(text).ok()?;
            time.duration_since(SystemTime::now()).unwrap_or_default()
        }
    };
    Some(wait.min(MAX_RETRY_AFTER))
}

async fn read_body(response: &mut Response) -> Result<Vec<u8>, RequestError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(transport_error)? {
        body.extend_from_slice(&piece);
        if body.len() > MAX_RESPONSE_BYTES {
            return Err(RequestError::InvalidResponse(format!(
                "the response is larger than {} MB",
                MAX_RESPONSE_BYTES >> 20
            )));
        }
    }
    Ok(body)
}
