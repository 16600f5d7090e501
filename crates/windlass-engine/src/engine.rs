//! What one process has: the store, the connections, the job types and the handlers.

use crate::Result;
use crate::merge::job_result::JobResult;
use crate::operate::availability::Availability;
use crate::operate::controls::Controls;
use crate::operate::health_probe::Throttle;
use crate::step::{ItemContext, Step, Steps};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;
use tokio::sync::Mutex;
use windlass_connectors::{Connection, Emitted, EmittedCursor, Replicas};
use windlass_core::config;
use windlass_core::problem::Code;
use windlass_core::{Config, Identity, ItemError, Job, JobId, JobStatus, Outcome, Problem};
use windlass_store::{Capabilities, Store};

/// The engine. Cheap to clone; every clone is the same engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) store: Arc<dyn Store>,
    /// A connection that could not be opened is kept as the reason: looking at jobs needs none.
    pub(crate) connections: BTreeMap<String, std::result::Result<Arc<dyn Connection>, Problem>>,
    /// The replicas of the connections that have some.
    replicas: BTreeMap<String, Arc<Replicas>>,
    pub(crate) steps: Steps,
    pub(crate) jobs: Mutex<HashMap<JobId, Arc<crate::job_context::JobContext>>>,
    pub(crate) schema_cache: crate::plan::schema_cache::SchemaCache,
    pub(crate) controls: Arc<Controls>,
    throttles: BTreeMap<String, Arc<Throttle>>,
    /// Of the connections that could be opened.
    pub(crate) availability: BTreeMap<String, Arc<Availability>>,
}

/// Puts an engine together.
#[derive(Default)]
pub struct Builder {
    config: Config,
    steps: Steps,
}

impl Engine {
    /// An engine for this configuration, read from windlass.toml or made in code.
    pub fn builder(config: Config) -> Builder {
        Builder { config, ..Builder::default() }
    }

    /// The identity of somebody at this machine's command line, or of code that submits by
    /// itself: a name and no claims.
    pub fn local_identity() -> Identity {
        let name = std::env::var("USER").unwrap_or_else(|_| "local".to_owned());
        Identity { name, ..Identity::default() }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// The store, for looking.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// The connection of that name.
    pub fn connection(&self, name: &str) -> Result<&Arc<dyn Connection>> {
        match self.shared.connections.get(name) {
            Some(Ok(connection)) => Ok(connection),
            Some(Err(problem)) => Err(problem.clone().into()),
            None => {
                let detail =
                    format!("this process has no connection `{name}`; add it to windlass.toml");
                Err(Problem::new(Code::Configuration, detail).into())
            }
        }
    }

    /// The replicas of that connection, where it has some.
    pub fn replicas(&self, name: &str) -> Option<&Arc<Replicas>> {
        self.shared.replicas.get(name)
    }

    /// How far work on a connection is slowed.
    pub(crate) fn throttle(&self, name: &str) -> Arc<Throttle> {
        self.shared.throttles.get(name).cloned().unwrap_or_default()
    }

    /// A job, or a problem that says there is none.
    pub async fn job(&self, id: JobId) -> Result<Job> {
        self.shared.store.job(id).await?.ok_or_else(|| {
            Problem::new(
                Code::NotFound,
                format!("there is no job {id}; `windlass jobs` lists them"),
            )
            .into()
        })
    }

    /// Pauses a job. Chunks in flight are handed back after the commit they are at.
    pub async fn pause(&self, job: JobId) -> Result<JobStatus> {
        Ok(self.shared.store.pause(job, None).await?)
    }

    /// Resumes a paused job, with another failure budget.
    pub async fn resume(&self, job: JobId) -> Result<JobStatus> {
        Ok(self.shared.store.resume(job).await?)
    }

    /// Queues what failed again.
    pub async fn retry(&self, job: JobId) -> Result<JobStatus> {
        Ok(self.shared.store.retry(job).await?)
    }

    /// The rows that a job's items emitted and that are committed, or those of its result where it
    /// has one, in order after the cursor.
    pub async fn output(
        &self,
        job: JobId,
        after: &EmittedCursor,
        limit: u32,
    ) -> Result<Vec<Emitted>> {
        let none = || Problem::new(Code::NotFound, format!("there is no job {job}"));
        let snapshot = self.shared.store.snapshot(job).await?.ok_or_else(none)?;
        // It is about to be removed; what the items of a redrive emitted stays with the original's.
        let removed = snapshot.root == snapshot.id;
        if removed && self.shared.store.status(job).await? == Some(JobStatus::Cancelled) {
            return Ok(Vec::new());
        }
        if snapshot.definition.reduces() {
            let result = self.result(job).await?;
            return result.map_or(Ok(Vec::new()), |result| result.page(after.seq, limit));
        }
        let connection = self.connection(&snapshot.definition.source.connection)?;
        Ok(connection.emitted(job, after, limit).await?)
    }

    /// The result of a job whose parts are merged, where it is there.
    pub async fn result(&self, job: JobId) -> Result<Option<JobResult>> {
        // It is about to be removed.
        if self.shared.store.status(job).await? == Some(JobStatus::Cancelled) {
            return Ok(None);
        }
        let merged = crate::merge::merge::merged(self, job).await?;
        // A part with a name is a file, and the store has its place alone.
        let kept = merged.filter(|part| part.content.is_some() && part.name.is_none());
        kept.map(JobResult::open).transpose()
    }

    pub(crate) fn open_connections(&self) -> Vec<String> {
        let open = self.shared.connections.iter().filter(|(_, connection)| connection.is_ok());
        open.map(|(name, _)| name.clone()).collect()
    }

    /// What this process can work on.
    pub(crate) fn capabilities(&self, worker: &str, only: Option<JobId>) -> Capabilities {
        Capabilities {
            worker: worker.to_owned(),
            connections: if processing_enabled() { self.open_connections() } else { Vec::new() },
            handlers: self.shared.steps.handlers.keys().cloned().collect(),
            only,
            above: None,
        }
    }
}

/// Whether this process may work at all: `WINDLASS_PROCESSING_ENABLED=false` is its own stop switch.
pub(crate) fn processing_enabled() -> bool {
    let said = std::env::var("WINDLASS_PROCESSING_ENABLED").unwrap_or_default();
    !matches!(said.trim().to_ascii_lowercase().as_str(), "false" | "0" | "no" | "off")
}

impl Builder {
    /// Registers a function under the name a job type's `step.handler` gives. It is called once
    /// per record, which arrives as any type that serde can read.
    pub fn handler<T, F, Fut>(self, name: &str, function: F) -> Builder
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T, ItemContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = std::result::Result<Outcome, ItemError>> + Send + 'static,
    {
        Builder { steps: self.steps.handler(name, function), ..self }
    }

    /// Registers a step that takes whole batches.
    pub fn step(self, name: &str, step: Arc<dyn Step>) -> Builder {
        Builder { steps: self.steps.step(name, step), ..self }
    }

    /// Connects to the store, brings its schema up to date, and makes the connections ready.
    /// The user's databases are first reached when something is asked of them.
    pub async fn connect(self) -> Result<Engine> {
        if let Some(problem) = self.config.plaintext_problems().into_iter().next() {
            return Err(problem.into());
        }
        let store = windlass_store::connect(&self.config.store.url).await?;
        store.migrate().await?;
        let (mut connections, mut replicas) = (BTreeMap::new(), BTreeMap::new());
        for (name, connection) in &self.config.connections {
            let opened = open(connection).await.map_err(|error| {
                let field = format!("connections.{name}.url");
                Problem::field(Code::Unreachable, field, error.to_string())
            });
            let opened = opened.map(|(opened, others)| {
                replicas.extend(others.map(|others| (name.clone(), Arc::new(others))));
                opened
            });
            connections.insert(name.clone(), opened);
        }
        let availability = connections.iter().filter_map(|(name, opened)| {
            let opened = opened.as_ref().ok()?.clone();
            Some((name.clone(), Arc::new(Availability::new(name, opened, store.clone()))))
        });
        let availability = availability.collect();
        let throttles = self.config.connections.keys();
        let throttles = throttles.map(|name| (name.clone(), Arc::default())).collect();
        let shared = Shared {
            config: self.config,
            store,
            connections,
            replicas,
            steps: self.steps,
            jobs: Mutex::default(),
            schema_cache: crate::plan::schema_cache::SchemaCache::default(),
            controls: Arc::default(),
            throttles,
            availability,
        };
        Ok(Engine { shared: Arc::new(shared) })
    }
}

/// Opens a connection, and makes its replicas ready.
async fn open(
    connection: &config::Connection,
) -> windlass_connectors::Result<(Arc<dyn Connection>, Option<Replicas>)> {
    let most = connection.max_connections.max(1 + connection.reserved());
    let config::Connection { url, replicas, max_lag, .. } = connection;
    if replicas.is_empty() {
        return Ok((windlass_connectors::connect(url, most).await?, None));
    }
    // One of the connections asks the primary where its writes are, while others may all be at work.
    let opened = windlass_connectors::connect(url, most - 1).await?;
    let asking = match url.trim().starts_with("sqlite:") {
        true => opened.clone(),
        false => windlass_connectors::connect(url, 1).await?,
    };
    Ok((opened, Some(Replicas::new(replicas, asking, most, *max_lag))))
}
