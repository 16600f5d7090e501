//! *Start*: plans a job, and puts a message for each of its records on the work queue.

use crate::page::Load;
use crate::queue::Queue;
use crate::sources::Sources;
use crate::{Events, Invocation, Result, State, processing_enabled};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value as Json, json};
use std::time::{Duration, Instant};
use windlass_core::problem::Code;
use windlass_core::request::DEFAULT_SEGMENTS;
use windlass_core::{Config, JobId, PaginationState, Problem, Request, Value};

/// Loads the work queue. It invokes itself through EventBridge, once for each part that is loaded
/// side by side and then again from page to page, so that a load of any size fits functions whose
/// time is limited, and the stop switch is seen in between.
pub struct Start {
    sources: Sources,
    queue: Queue,
    events: Option<Events>,
    /// How long an invocation goes on with further pages by itself.
    pages_for: Duration,
}

/// What a load came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The job.
    pub job: JobId,
    /// How many items were put on the queue.
    pub items: u64,
}

/// Parts that are loaded side by side where no function does it.
const SIDE_BY_SIDE: usize = 10;

impl Start {
    /// Loads this queue, from here.
    pub fn new(config: Config, queue: Queue) -> Start {
        let sources = Sources::new(config);
        Start { sources, queue, events: None, pages_for: Duration::MAX }
    }

    /// Invokes itself through these events after so long.
    pub fn with_events(self, events: Events, pages_for: Duration) -> Start {
        Start { events: Some(events), pages_for, ..self }
    }

    /// One invocation: plans the job, or goes on with one of its loads. It hands on before `until`.
    pub async fn handle(&self, event: Json, invocation: &str, until: Instant) -> Result<Json> {
        let asked = Invocation::read(event, invocation)?;
        if !processing_enabled() {
            // The line is all that is needed to go on from here later: it can be sent as it is.
            tracing::warn!(request = %asked.to_json(), "stopped: PROCESSING_ENABLED is false");
            return Ok(json!({"jobId": asked.job, "stopped": true}));
        }
        let load = self.load_of(&asked).await?;
        let Some(state) = asked.state.clone() else {
            if let Some(ids) = &asked.request.ids {
                let items = self.enqueue(&load, load.ids(ids).await?).await?;
                tracing::info!(job = %asked.job, items, "queued the given ids");
                return Ok(json!({"jobId": asked.job, "itemsEnqueued": items}));
            }
            let states = states(&load, &asked.request)?;
            let next: Vec<Invocation> = states.into_iter().map(|state| asked.at(state)).collect();
            self.invoke(&next).await?;
            tracing::info!(job = %asked.job, parts = next.len(), "planned");
            return Ok(json!({"jobId": asked.job, "parts": next.len()}));
        };
        let begun = Instant::now();
        let until = begun.checked_add(self.pages_for).map_or(until, |end| end.min(until));
        let (next, items) = self.pages(&load, state, until).await?;
        let done = next.is_none();
        self.invoke(&next.into_iter().map(|state| asked.at(state)).collect::<Vec<_>>()).await?;
        let ms = begun.elapsed().as_millis() as u64;
        tracing::info!(job = %asked.job, items, done, ms, "queued");
        Ok(json!({"jobId": asked.job, "itemsEnqueued": items, "done": done}))
    }

    /// Loads a whole request from here, to its end.
    pub async fn load_all(&self, request: Request) -> Result<Loaded> {
        let id = uuid::Uuid::now_v7().to_string();
        let asked = serde_json::to_value(&request).unwrap_or_default();
        let asked = Invocation::read(asked, &id)?;
        let load = self.load_of(&asked).await?;
        if let Some(ids) = &asked.request.ids {
            let items = self.enqueue(&load, load.ids(ids).await?).await?;
            return Ok(Loaded { job: asked.job, items });
        }
        let far = Instant::now() + Duration::from_secs(365 * 24 * 3600);
        let parts = states(&load, &asked.request)?.into_iter();
        let parts = parts.map(|state| self.pages(&load, state, far));
        let parts = stream::iter(parts).buffer_unordered(SIDE_BY_SIDE);
        let items = parts.try_fold(0, |sum, (_, items)| async move { Ok(sum + items) }).await?;
        Ok(Loaded { job: asked.job, items })
    }

    /// Everything that can be refused is refused here, before anything is sent.
    async fn load_of(&self, asked: &Invocation) -> Result<Load> {
        let (records, scope) = self.sources.scope(&asked.request).await?;
        Ok(Load::new(records, scope, asked))
    }

    /// Loads page after page until it is time to hand on: gives the state then, or none at the end,
    /// and how many items went on the queue.
    async fn pages(
        &self,
        load: &Load,
        state: State,
        until: Instant,
    ) -> Result<(Option<State>, u64)> {
        let (mut state, mut items) = (state, 0);
        loop {
            let page = load.page(&state).await?;
            let enqueued = self.enqueue(load, page.keys).await?;
            items += enqueued;
            let total = state.items_enqueued() + enqueued;
            let is_enough = load.most.is_some_and(|most| total >= most);
            match state.next(page.last, enqueued) {
                Some(next) if !is_enough => state = next,
                _ => return Ok((None, items)),
            }
            if Instant::now() >= until {
                return Ok((Some(state), items));
            }
        }
    }

    async fn enqueue(&self, load: &Load, keys: Vec<windlass_core::Key>) -> Result<u64> {
        self.queue.send(load.bodies(&keys), &load.attributes).await?;
        Ok(keys.len() as u64)
    }

    async fn invoke(&self, next: &[Invocation]) -> Result<()> {
        match &self.events {
            Some(events) => events.put(next).await,
            None => Ok(()),
        }
    }
}

/// The loads of a job: by the values of a filter, or parts of the whole table.
fn states(load: &Load, request: &Request) -> Result<Vec<State>> {
    let query = |filter: &str, remaining_values: Vec<Value>| {
        State(PaginationState::IndexQuery {
            filter: filter.to_owned(),
            remaining_values,
            last_evaluated_key: None,
            items_enqueued: 0,
        })
    };
    if request.filters().next().is_some() {
        let Some((filter, values)) = request.filters().find(|(name, _)| load.is_indexed(name))
        else {
            return Err(unindexed(load, request).into());
        };
        let mut distinct: Vec<Value> = Vec::new();
        for value in values.iter().cloned().map(Value::from_json) {
            if !distinct.contains(&value) {
                distinct.push(value);
            }
        }
        return Ok(match load.scope.job_type.queue.side_by_side {
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

fn unindexed(load: &Load, request: &Request) -> Problem {
    let name = request.filters().next().map_or("", |(name, _)| name);
    let column = load.scope.job_type.source.filters.get(name).map_or("", String::as_str);
    let table = &load.scope.table.name;
    let detail = format!(
        "the table `{table}` has no index that is partitioned by `{column}`; a global secondary \
         index of it would be right"
    );
    Problem::field(Code::Source, format!("filter.{name}"), detail)
}
