//! The engine of one process: its store, connections, job types and handlers.

use crate::merge::job_result::JobResult;
use crate::operate::availability::Availability;
use crate::operate::connection_budget::ConnectionBudget;
use crate::operate::controls::Controls;
use crate::operate::health_probe::Throttle;
use crate::operate::process_identity;
use crate::quiet::QuietSince;
use crate::step::{ItemContext, JobDefinition, Step, Steps};
use crate::{EngineError, Result};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;
use tokio::sync::{Mutex, Semaphore};
use windlass_connectors::{Connection, Emitted, EmittedCursor, Replicas, connect_gated};
use windlass_core::config;
use windlass_core::problem::Code;
use windlass_core::{Config, Identity, ItemError, Job, JobId, JobStatus, Outcome, Problem};
use windlass_drivers::ConnectionGate;
use windlass_store::{Capabilities, Store, StoreError};

/// The engine of one process: it submits jobs, answers questions about them, and runs them. Cloning is
/// cheap; all clones share the same connections.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use windlass_core::{Config, Request};
/// use windlass_engine::Engine;
///
/// let engine = Engine::builder(Config::from_path("windlass.toml")?).connect().await?;
/// let job = engine.run(Request::new("REFRESH")).await?;
/// println!("{}: {} items processed", job.status, job.items.processed);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) store: Arc<dyn Store>,
    /// A connection that could not be opened is kept as its error: listing jobs needs no connection.
    pub(crate) connections: BTreeMap<String, std::result::Result<Arc<dyn Connection>, Problem>>,
    /// The replicas, by connection.
    replicas: BTreeMap<String, Arc<Replicas>>,
    pub(crate) steps: Steps,
    pub(crate) jobs: Mutex<HashMap<JobId, Arc<crate::job_context::JobContext>>>,
    /// The contexts of jobs that are read under a snapshot.
    pub(crate) reading: Mutex<HashMap<JobId, Arc<crate::job_context::JobContext>>>,
    pub(crate) schema_cache: crate::plan::schema_cache::SchemaCache,
    pub(crate) controls: Arc<Controls>,
    /// The submits that may plan their jobs by reading the source at the same time.
    pub(crate) submit_plans: Semaphore,
    throttles: BTreeMap<String, Arc<Throttle>>,
    /// The availability of each connection that could be opened.
    pub(crate) availability: BTreeMap<String, Arc<Availability>>,
    /// The connections with a total, and the share of this process.
    pub(crate) budgets: BTreeMap<String, Arc<ConnectionBudget>>,
    pub(crate) quiet_since: QuietSince,
    /// The progress of jobs with a deadline.
    pub(crate) progress: crate::operate::alerts::ProgressOfJobs,
}

/// Two, since a submit that finds none free leaves planning to the workers, which is no harm.
const MAX_SUBMIT_PLANS: usize = 2;

/// Builds an [`Engine`]: configuration, job types and handlers.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use windlass_core::{Config, JobType};
/// use windlass_engine::Engine;
///
/// let close = JobType::builder("CLOSE_VISITS")
///     .connection("app")
///     .table("visits")
///     .sql("UPDATE visits SET open = false WHERE {chunk}");
/// let engine = Engine::builder(Config::from_path("windlass.toml")?).job(close).connect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[must_use = "a builder does nothing until `connect` is called"]
pub struct Builder {
    config: Config,
    steps: Steps,
    problems: Vec<Problem>,
}

impl Engine {
    /// A builder with this configuration, which was read from windlass.toml or made in code.
    pub fn builder(config: Config) -> Builder {
        Builder { config, ..Builder::default() }
    }

    /// The identity of a user of the command line, or of code that submits jobs: the user's name and
    /// no claims.
    pub fn local_identity() -> Identity {
        let name = std::env::var("USER").unwrap_or_else(|_| "local".to_owned());
        Identity { name, ..Identity::default() }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// The store, for queries.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// The connection of that name.
    ///
    /// # Errors
    /// No connection has that name, or it could not be opened.
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

    /// The replicas of a connection, if it has any.
    pub fn replicas(&self, name: &str) -> Option<&Arc<Replicas>> {
        self.shared.replicas.get(name)
    }

    /// How much work on a connection is throttled.
    pub(crate) fn throttle(&self, name: &str) -> Arc<Throttle> {
        self.shared.throttles.get(name).cloned().unwrap_or_default()
    }

    /// A job with its status and counters.
    ///
    /// # Errors
    /// There is no such job, or the store cannot be read.
    pub async fn job(&self, id: JobId) -> Result<Job> {
        let none = || {
            let detail = format!("there is no job {id}; `windlass jobs` lists them");
            Problem::new(Code::NotFound, detail)
        };
        let job = self.shared.store.job(id).await?.ok_or_else(none)?;
        let outputs = self.outputs(&job).await?;
        Ok(Job { outputs, ..job })
    }

    /// Pauses a job. Chunks in progress are handed back after their current commit.
    ///
    /// # Errors
    /// There is no such job, its status does not allow it, or the store cannot be written.
    pub async fn pause(&self, job: JobId) -> Result<JobStatus> {
        Ok(self.shared.store.pause(job, None).await?)
    }

    /// Resumes a paused job and grants it another failure budget.
    ///
    /// # Errors
    /// There is no such job, it is not paused, or the store cannot be written.
    pub async fn resume(&self, job: JobId) -> Result<JobStatus> {
        Ok(self.shared.store.resume(job).await?)
    }

    /// Queues the failed chunks of a failed job again.
    ///
    /// # Errors
    /// There is no such job, it has not failed, or the store cannot be written.
    pub async fn retry(&self, job: JobId) -> Result<JobStatus> {
        Ok(self.shared.store.retry(job).await?)
    }

    /// The rows that a job's items emitted and that are committed, or those of its result where it
    /// has one, in order after the cursor.
    ///
    /// # Errors
    /// There is no such job, or its output cannot be read.
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
    ///
    /// # Errors
    /// There is no such job, or its result cannot be read.
    pub async fn result(&self, job: JobId) -> Result<Option<JobResult>> {
        // It is about to be removed.
        if self.shared.store.status(job).await? == Some(JobStatus::Cancelled) {
            return Ok(None);
        }
        let merged = crate::merge::merge::stored_result(self, job).await?;
        // A part with a name is a file, and the store has its place alone.
        let kept = merged.filter(|part| part.content.is_some() && part.name.is_none());
        kept.map(JobResult::open).transpose()
    }

    pub(crate) fn open_connections(&self) -> Vec<String> {
        let open = self.shared.connections.iter().filter(|(_, connection)| connection.is_ok());
        open.map(|(name, _)| name.clone()).collect()
    }

    /// Which jobs this process can run.
    pub(crate) fn capabilities(&self, worker: &str, only: Option<JobId>) -> Capabilities {
        Capabilities {
            worker: worker.to_owned(),
            connections: if processing_enabled() { self.open_connections() } else { Vec::new() },
            handlers: self.shared.steps.handlers.keys().cloned().collect(),
            only_job: only,
            above_priority: None,
            except: Vec::new(),
            process: process_identity::own(),
        }
    }
}

/// `WINDLASS_PROCESSING_ENABLED=false` stops this process alone from leasing work.
pub(crate) fn processing_enabled() -> bool {
    let value = std::env::var("WINDLASS_PROCESSING_ENABLED").unwrap_or_default();
    !matches!(value.trim().to_ascii_lowercase().as_str(), "false" | "0" | "no" | "off")
}

impl Builder {
    /// Adds a job type that is defined in Rust, with its handler where it has one. The compiler checks
    /// that the handler takes a record and an [`ItemContext`] and returns an [`Outcome`].
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use serde::Deserialize;
    /// use windlass_core::{Config, ItemError, JobType, Outcome};
    /// use windlass_engine::{Engine, ItemContext};
    ///
    /// #[derive(Deserialize)]
    /// struct Account {
    ///     balance: i64,
    /// }
    ///
    /// async fn add_interest(account: Account, _: ItemContext) -> Result<Outcome, ItemError> {
    ///     Ok(Outcome::set("balance", account.balance + account.balance / 100))
    /// }
    ///
    /// let interest = JobType::builder("ADD_INTEREST")
    ///     .connection("app")
    ///     .table("accounts")
    ///     .handler(add_interest)
    ///     .version("version");
    /// let request = interest.request();
    /// let engine =
    ///     Engine::builder(Config::from_path("windlass.toml")?).job(interest).connect().await?;
    /// engine.run(request).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn job<Record>(mut self, definition: impl JobDefinition<Record>) -> Builder {
        let (job_type, step) = definition.into_job();
        self.problems.extend(job_type.problems());
        let name = job_type.name.clone();
        if self.config.jobs.contains_key(&name) {
            let detail = "is defined twice; remove it from windlass.toml or from the code";
            let field = format!("jobs.{name}");
            self.problems.push(Problem::field(Code::Configuration, field, detail));
        }
        if let Some(step) = step {
            self.steps = self.steps.step(&name, step);
        }
        self.config.jobs.insert(name, job_type);
        self
    }

    /// Registers a function under the name that `step.handler` of a job type in windlass.toml has. The
    /// function is called once per record, which arrives as any type that implements `Deserialize`.
    /// [`Builder::job`] needs no name.
    ///
    /// An error that `?` returns is transient: the item is retried. [`ItemError::permanent`] makes it
    /// a dead letter at once.
    pub fn handler<T, F, Fut>(self, name: &str, function: F) -> Builder
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T, ItemContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = std::result::Result<Outcome, ItemError>> + Send + 'static,
    {
        Builder { steps: self.steps.handler(name, function), ..self }
    }

    /// Uses these handlers, instead of those registered before.
    pub fn steps(self, steps: Steps) -> Builder {
        Builder { steps, ..self }
    }

    /// Registers a [`Step`] that processes whole batches, under the name in `step.handler`.
    pub fn step(self, name: &str, step: Arc<dyn Step>) -> Builder {
        Builder { steps: self.steps.step(name, step), ..self }
    }

    /// Connects to the store, migrates its schema, and prepares the connections. The user's databases
    /// are contacted when they are first used; a connection that cannot be opened fails its own jobs
    /// and no others.
    ///
    /// # Errors
    /// A job type added with [`Builder::job`] is invalid or defined twice, a secret would travel without
    /// TLS, the configuration needs a cargo feature that this build lacks, or the store cannot be
    /// reached or migrated.
    pub async fn connect(self) -> Result<Engine> {
        if let Some(problem) = self.problems.into_iter().next() {
            return Err(problem.into());
        }
        if let Some(problem) = self.config.plaintext_problems().into_iter().next() {
            return Err(problem.into());
        }
        #[cfg(not(feature = "export"))]
        for job_type in self.config.jobs.values() {
            crate::merge::destination::check(job_type)?;
        }
        let store = open_store(&self.config.store).await?;
        let (mut connections, mut replicas) = (BTreeMap::new(), BTreeMap::new());
        let budgets = ConnectionBudget::all(&self.config, &store);
        for (name, connection) in &self.config.connections {
            let opened = match &connection.unset {
                Some(unset) => Err(unset.clone()),
                None => open(connection, budgets.get(name)).await.map_err(|error| {
                    let field = format!("connections.{name}.url");
                    Problem::field(Code::Unreachable, field, error.to_string())
                }),
            };
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
            reading: Mutex::default(),
            progress: Default::default(),
            schema_cache: crate::plan::schema_cache::SchemaCache::default(),
            controls: Arc::default(),
            submit_plans: Semaphore::new(MAX_SUBMIT_PLANS),
            throttles,
            availability,
            budgets,
            quiet_since: QuietSince::default(),
        };
        Ok(Engine { shared: Arc::new(shared) })
    }
}

/// Opens the store and migrates its schema.
async fn open_store(settings: &config::Store) -> Result<Arc<dyn Store>> {
    let opened = async {
        let store = windlass_store::connect_with(settings).await?;
        store.migrate().await?;
        Ok(store)
    };
    opened.await.map_err(|error| match error {
        StoreError::Database(error) if error.is_connect_failure() => {
            Problem::field(Code::Unreachable, "store.url", unreachable(&error)).into()
        }
        error => EngineError::from(error),
    })
}

/// The detail of a database that cannot be reached, or refuses the login.
pub(crate) fn unreachable(error: &windlass_drivers::Error) -> String {
    format!("the database cannot be reached: {error}; is it running, and is the URL right?")
}

/// Opens a connection and prepares its replicas.
async fn open(
    connection: &config::Connection,
    budget: Option<&Arc<ConnectionBudget>>,
) -> windlass_connectors::Result<(Arc<dyn Connection>, Option<Replicas>)> {
    let most = connection.pool_size();
    let gate = || budget.cloned().map(|budget| budget as Arc<dyn ConnectionGate>);
    let config::Connection { url, replicas, max_lag, .. } = connection;
    if replicas.is_empty() {
        return Ok((connect_gated(url, most, gate()).await?, None));
    }
    // One connection is reserved for asking the primary its write position while all others are in use.
    let opened = connect_gated(url, most - 1, gate()).await?;
    let asking = match url.trim().starts_with("sqlite:") {
        true => opened.clone(),
        false => connect_gated(url, 1, gate()).await?,
    };
    Ok((opened, Some(Replicas::new(replicas, asking, most, *max_lag, gate()))))
}
