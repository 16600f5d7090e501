//! *Worker*: one invocation submits a job, works chunks of a job until its time is short, or returns a job's state.
//!
//! The store in PostgreSQL decides which chunk is whose, so any number of invocations may work the same job, be killed
//! or be repeated.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::time::Instant;
use windlass_core::problem::Code;
use windlass_core::{Claims, Config, Identity, Job, JobId, JobStatus, Problem, Request};
use windlass_engine::{Engine, Options, Steps, WorkerStats};

/// The function *worker*: job types with a store, and their handlers.
pub struct Fleet {
    config: Config,
    steps: Steps,
    slots: usize,
}

/// What *worker* is invoked with: exactly one of `submit`, `job` and `status`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    /// A request to submit.
    submit: Option<Map<String, Json>>,
    /// With `submit`: the claims of the submitter.
    claims: Option<Claims>,
    /// A job to work on.
    job: Option<JobId>,
    /// A job to look at.
    status: Option<JobId>,
}

enum Ask {
    Submit(Map<String, Json>, Claims),
    Work(JobId),
    Status(JobId),
}

/// What *worker* returns.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetAnswer {
    /// The job.
    pub job: JobId,
    /// Its job type.
    pub job_type: String,
    /// Its status.
    pub status: JobStatus,
    /// Its chunks that are not finished; while it is planned there will be more.
    pub remaining: i64,
    /// Its items that were processed so far, by all workers.
    pub processed: i64,
    /// Its items that became dead letters.
    pub dead: i64,
    /// The chunks that this invocation completed.
    pub completed: u64,
    /// Why it failed or is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The time that an invocation has.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimit {
    /// When it stops to take chunks, and hands back those that it has.
    pub stop: Instant,
    /// When it answers, even if a commit is still in progress. The lease of that chunk expires then.
    pub answer: Instant,
}

/// The most connections of one invocation to each database, and to the store: a fleet has many.
const MAX_CONNECTIONS: usize = 2;

impl Fleet {
    /// A function with these job types and handlers, that works this many chunks at once. It opens at most two
    /// connections to each database and each replica, whatever the configuration allows.
    pub fn new(mut config: Config, steps: Steps, slots: usize) -> Fleet {
        config.store.max_connections = config.store.max_connections.min(MAX_CONNECTIONS);
        for connection in config.connections.values_mut() {
            connection.max_connections = connection.max_connections.min(MAX_CONNECTIONS);
        }
        Fleet { config, steps, slots }
    }

    /// Handles one event. `invocation` names the worker in listings.
    ///
    /// All connections are closed when it returns: Lambda freezes the process until the next event, and a frozen
    /// process must not keep any.
    ///
    /// # Errors
    /// The event or its request is wrong, there is no such job, or the store or a database fails.
    pub async fn handle(
        &self,
        event: Json,
        invocation: &str,
        limit: TimeLimit,
    ) -> Result<FleetAnswer> {
        let ask = parse(event)?;
        let builder = Engine::builder(self.config.clone()).steps(self.steps.clone());
        let engine = builder.connect().await?;
        let answered = match ask {
            Ask::Submit(payload, claims) => self.submit(&engine, payload, claims).await,
            Ask::Work(job) => self.work(&engine, job, invocation, limit).await,
            Ask::Status(job) => status(&engine, job).await,
        };
        engine.close().await;
        answered
    }

    async fn submit(
        &self,
        engine: &Engine,
        payload: Map<String, Json>,
        claims: Claims,
    ) -> Result<FleetAnswer> {
        let job_type = payload.get("jobType").and_then(Json::as_str);
        let job_type = job_type.and_then(|name| self.config.jobs.get(name));
        let request = Request::from_payload(payload, job_type)?;
        // The same for every invocation, since the idempotency key is unique per submitter.
        let name =
            std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_else(|_| "lambda".to_owned());
        let identity = Identity { name, claims, ..Identity::default() };
        let job = engine.submit(request, identity).await?.id();
        status(engine, job).await
    }

    async fn work(
        &self,
        engine: &Engine,
        job: JobId,
        invocation: &str,
        limit: TimeLimit,
    ) -> Result<FleetAnswer> {
        engine.check_restored().await?;
        // Refuses an unknown job before a worker waits for it.
        engine.job(job).await?;
        let options =
            Options::default().with_slots(self.slots).with_name(format!("lambda:{invocation}"));
        let stop = tokio::time::sleep_until(limit.stop.into());
        let working = engine.work(job, options, stop);
        let stats = match tokio::time::timeout_at(limit.answer.into(), working).await {
            Ok(stats) => stats,
            Err(_) => {
                tracing::warn!(%job, "a commit is still in progress at the end of the invocation; \
                    its chunk is repeated when the lease expires");
                WorkerStats::default()
            }
        };
        let answer = answer(&engine.job(job).await?, stats);
        tracing::info!(
            %job,
            status = answer.status.as_str(),
            remaining = answer.remaining,
            completed = stats.completed,
            handed_back = stats.handed_back,
            lost = stats.lost,
            "invocation ends"
        );
        Ok(answer)
    }
}

async fn status(engine: &Engine, job: JobId) -> Result<FleetAnswer> {
    Ok(answer(&engine.job(job).await?, WorkerStats::default()))
}

fn parse(event: Json) -> Result<Ask> {
    let wrong = |detail: String| Error::from(Problem::field(Code::Request, "event", detail));
    let event: Event = serde_json::from_value(event).map_err(|error| wrong(error.to_string()))?;
    match (event.submit, event.job, event.status, event.claims) {
        (Some(payload), None, None, claims) => Ok(Ask::Submit(payload, claims.unwrap_or_default())),
        (None, Some(job), None, None) => Ok(Ask::Work(job)),
        (None, None, Some(job), None) => Ok(Ask::Status(job)),
        _ => Err(wrong(
            "must have exactly one of `submit`, `job` and `status`; `claims` only with `submit`"
                .to_owned(),
        )),
    }
}

fn answer(job: &Job, stats: WorkerStats) -> FleetAnswer {
    FleetAnswer {
        job: job.id,
        job_type: job.job_type.clone(),
        status: job.status,
        remaining: job.chunks.pending + job.chunks.processing,
        processed: job.items.processed,
        dead: job.items.dead,
        completed: stats.completed,
        error: job.error.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_asks_for_one_thing() {
        let id = "019a0000-0000-7000-8000-000000000000";
        assert!(matches!(parse(json!({"job": id})), Ok(Ask::Work(_))));
        assert!(matches!(parse(json!({"status": id})), Ok(Ask::Status(_))));
        let submit = json!({"submit": {"jobType": "A"}, "claims": {"county": ["Kent"]}});
        assert!(matches!(parse(submit), Ok(Ask::Submit(_, claims)) if claims.len() == 1));
        let refusal = |event: Json| parse(event).err().unwrap().to_string();
        for event in [json!({}), json!({"job": id, "status": id}), json!({"job": id, "claims": {}})]
        {
            assert!(refusal(event).contains("exactly one of `submit`, `job` and `status`"));
        }
        assert!(refusal(json!({"jobs": id})).contains("unknown field `jobs`"));
    }
}
