//! *Start*: plans a job and sends a message for each of its records to the work queue.

use crate::page::EnqueuePlan;
use crate::planning::IDS;
use crate::queue::Queue;
use crate::sources::Sources;
use crate::{Events, Invocation, Result, State, processing_enabled};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value as Json, json};
use std::time::{Duration, Instant};
use windlass_connectors::dynamodb::SegmentPlan;
use windlass_core::problem::Code;
use windlass_core::request::DEFAULT_SEGMENTS;
use windlass_core::{Config, JobId, PaginationState, Problem, Request, Value};

/// Fills the work queue. It invokes itself through EventBridge, once per segment and then again after some pages, so
/// that a request of any size fits into functions with a time limit, and the emergency stop takes effect in
/// between.
pub struct Start {
    sources: Sources,
    queue: Queue,
    events: Option<Events>,
    /// How long an invocation enqueues further pages itself.
    pages_for: Duration,
}

/// The result of an enqueued request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// The job.
    pub job: JobId,
    /// The number of items sent to the queue.
    pub items: u64,
}

/// Segments that are enqueued concurrently outside Lambda.
const SIDE_BY_SIDE: usize = 10;

impl Start {
    /// Fills this queue from the current process.
    pub fn new(config: Config, queue: Queue) -> Start {
        let sources = Sources::new(config);
        Start { sources, queue, events: None, pages_for: Duration::MAX }
    }

    /// Invokes itself through these events after this time, and announces the end of jobs with them.
    pub fn with_events(self, events: Events, pages_for: Duration) -> Start {
        Start { events: Some(events), pages_for, ..self }
    }

    /// Announces the end of jobs with these events, and enqueues whole requests itself.
    pub fn announcing(self, events: Events) -> Start {
        self.with_events(events, Duration::MAX)
    }

    /// Handles one invocation: plans the job, or continues with one of its segments. Hands over before `until`.
    pub async fn handle(&self, event: Json, invocation: &str, until: Instant) -> Result<Json> {
        let asked = Invocation::read(event, invocation)?;
        if !processing_enabled() {
            // This line contains all that is needed to continue from here: it can be sent as an event.
            tracing::warn!(request = %asked.to_json(), "nothing enqueued: PROCESSING_ENABLED is false");
            return Ok(json!({"jobId": asked.job, "stopped": true}));
        }
        let plan = self.prepare(&asked).await?;
        let Some(state) = asked.state.clone() else {
            if let Some(ids) = &plan.ids {
                let items = self.enqueue_ids(&plan, &asked, ids).await?;
                tracing::info!(job = %asked.job, items, "enqueued the ids of the request");
                return Ok(json!({"jobId": asked.job, "itemsEnqueued": items}));
            }
            let states = self.begin(&plan, &asked).await?;
            let next: Vec<Invocation> = states.into_iter().map(|state| asked.at(state)).collect();
            self.invoke(&next).await?;
            tracing::info!(job = %asked.job, segments = next.len(), "job planned");
            return Ok(json!({"jobId": asked.job, "parts": next.len()}));
        };
        let begun = Instant::now();
        let until = begun.checked_add(self.pages_for).map_or(until, |end| end.min(until));
        let (next, items) = self.segment(&plan, &asked, state, until).await?;
        let done = next.is_none();
        self.invoke(&next.into_iter().map(|state| asked.at(state)).collect::<Vec<_>>()).await?;
        let ms = begun.elapsed().as_millis() as u64;
        tracing::info!(job = %asked.job, items, done, ms, "enqueued");
        Ok(json!({"jobId": asked.job, "itemsEnqueued": items, "done": done}))
    }

    /// Enqueues a whole request from the current process.
    pub async fn enqueue_all(&self, request: Request) -> Result<Enqueued> {
        let id = uuid::Uuid::now_v7().to_string();
        let asked = serde_json::to_value(&request).unwrap_or_default();
        let asked = Invocation::read(asked, &id)?;
        let plan = self.prepare(&asked).await?;
        if let Some(ids) = &plan.ids {
            let items = self.enqueue_ids(&plan, &asked, ids).await?;
            return Ok(Enqueued { job: asked.job, items });
        }
        let far = Instant::now() + Duration::from_secs(365 * 24 * 3600);
        let parts = self.begin(&plan, &asked).await?.into_iter();
        let parts = parts.map(|state| self.segment(&plan, &asked, state, far));
        let parts = stream::iter(parts).buffer_unordered(SIDE_BY_SIDE);
        let items = parts.try_fold(0, |sum, (_, items)| async move { Ok(sum + items) }).await?;
        Ok(Enqueued { job: asked.job, items })
    }

    /// Validates the request before anything is sent.
    async fn prepare(&self, asked: &Invocation) -> Result<EnqueuePlan> {
        let job_type = self.sources.config.job_type(&asked.request.job_type)?;
        let request = asked.with_table_keys(job_type)?;
        let (records, scope) = self.sources.scope(&request).await?;
        asked.request.check_known_params(&self.sources.config, &scope.job_type)?;
        Ok(EnqueuePlan::new(records, scope, asked.job, request))
    }

    /// Plans the segments of a job.
    async fn begin(&self, plan: &EnqueuePlan, asked: &Invocation) -> Result<Vec<State>> {
        let states = states(plan, &asked.request)?;
        let segments: Vec<String> = states.iter().map(|state| plan.segment(state)).collect();
        plan.begin(asked, &segments).await?;
        Ok(states)
    }

    /// Enqueues the ids that a request lists.
    async fn enqueue_ids(
        &self,
        plan: &EnqueuePlan,
        asked: &Invocation,
        ids: &[Json],
    ) -> Result<u64> {
        let keys = plan.keys(ids).await?;
        plan.begin(asked, &[IDS.to_owned()]).await?;
        let items = self.enqueue(plan, keys).await?;
        let all = SegmentPlan { items, is_done: true };
        plan.planned(asked, IDS, all, self.events.as_ref()).await?;
        Ok(items)
    }

    /// Enqueues a part of a segment, and records how far it is planned.
    async fn segment(
        &self,
        plan: &EnqueuePlan,
        asked: &Invocation,
        state: State,
        until: Instant,
    ) -> Result<(Option<State>, u64)> {
        let (name, before) = (plan.segment(&state), state.items_enqueued());
        let (next, items) = self.pages(plan, state, until).await?;
        let planned = SegmentPlan { items: before + items, is_done: next.is_none() };
        plan.planned(asked, &name, planned, self.events.as_ref()).await?;
        Ok((next, items))
    }

    /// Enqueues page after page until it is time to hand over. Returns the state to continue from, or `None` at the
    /// end, and the number of items sent.
    async fn pages(
        &self,
        plan: &EnqueuePlan,
        state: State,
        until: Instant,
    ) -> Result<(Option<State>, u64)> {
        let (mut state, mut items) = (state, 0);
        loop {
            let page = plan.page(&state).await?;
            let enqueued = self.enqueue(plan, page.keys).await?;
            items += enqueued;
            let total = state.items_enqueued() + enqueued;
            let is_enough = plan.most.is_some_and(|most| total >= most);
            match state.next(page.last, enqueued) {
                Some(next) if !is_enough => state = next,
                _ => return Ok((None, items)),
            }
            if Instant::now() >= until {
                return Ok((Some(state), items));
            }
        }
    }

    async fn enqueue(&self, plan: &EnqueuePlan, keys: Vec<windlass_core::Key>) -> Result<u64> {
        self.queue.send(plan.bodies(&keys)?, &plan.attributes).await?;
        Ok(keys.len() as u64)
    }

    async fn invoke(&self, next: &[Invocation]) -> Result<()> {
        match &self.events {
            Some(events) => events.put(next).await,
            None => Ok(()),
        }
    }
}

/// The segments of a job: by the values of a filter, or parts of the whole table.
fn states(plan: &EnqueuePlan, request: &Request) -> Result<Vec<State>> {
    let query = |filter: &str, remaining_values: Vec<Value>| {
        State(PaginationState::IndexQuery {
            filter: filter.to_owned(),
            remaining_values,
            last_evaluated_key: None,
            items_enqueued: 0,
        })
    };
    if request.filters().next().is_some() {
        let Some((filter, values)) = request.filters().find(|(name, _)| plan.is_indexed(name))
        else {
            return Err(unindexed(plan, request).into());
        };
        let mut distinct: Vec<Value> = Vec::new();
        for value in values.iter().cloned().map(Value::from_json) {
            if !distinct.contains(&value) {
                distinct.push(value);
            }
        }
        return Ok(match plan.scope.job_type.queue.side_by_side {
            true => distinct.into_iter().map(|value| query(filter, vec![value])).collect(),
            false => vec![query(filter, distinct)],
        });
    }
    let total_segments = request.parallel_segments.unwrap_or(DEFAULT_SEGMENTS);
    let part = |segment| {
        State(PaginationState::TableScan {
            segment,
            total_segments,
            last_evaluated_key: None,
            items_enqueued: 0,
        })
    };
    Ok((0..total_segments).map(part).collect())
}

fn unindexed(plan: &EnqueuePlan, request: &Request) -> Problem {
    let name = request.filters().next().map_or("", |(name, _)| name);
    let column = plan.scope.job_type.source.filters.get(name).map_or("", String::as_str);
    let table = &plan.scope.table.name;
    let detail = format!(
        "the table `{table}` has no index that is partitioned by `{column}`; create a global \
         secondary index on it"
    );
    Problem::field(Code::Source, format!("filter.{name}"), detail)
}
