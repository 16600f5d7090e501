//! The context of a job: its definition, scope, connection and step, resolved and cached per process.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::operate::availability::Availability;
use crate::operate::controls::Controls;
use crate::operate::health_probe::Throttle;
use crate::step::{FailingStep, JobFacts, Step};
use crate::submit::token_vault::TokenVault;
use chrono::Utc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_connectors::{Connection, Items, ReadOnly, Reads, Replicated, Scope};
use windlass_core::ErrorKind;
use windlass_core::problem::Code;
use windlass_core::{Column, JobId, JobType, Problem, Request, Secret, StepKind, Table};
use windlass_store::JobSnapshot;

/// A job with everything needed to process it.
pub(crate) struct JobContext {
    pub(crate) snapshot: JobSnapshot,
    pub(crate) scope: Scope,
    pub(crate) connection: Arc<dyn Connection>,
    /// Computes the outcomes; `None` if the database itself runs the step.
    pub(crate) step: MaybeStep,
    /// What every batch for the step includes.
    pub(crate) facts: Arc<JobFacts>,
    /// The operators' runtime controls.
    pub(crate) controls: Arc<Controls>,
    /// The columns of its parts, if the step is `map`; else empty.
    pub(crate) part_columns: Arc<[Column]>,
    /// Throttles it by the health of its database.
    pub(crate) throttle: Arc<Throttle>,
    /// Whether its database is available.
    pub(crate) availability: Arc<Availability>,
    resolved: Instant,
    /// Approximate memory of its inline items.
    bytes: usize,
}

/// `None` if the database itself runs the step.
type MaybeStep = Option<Arc<dyn Step>>;

/// How long a context is cached, so that a changed table is noticed.
const CONTEXT_CACHE_TTL: Duration = Duration::from_secs(10);
/// Maximum number of cached contexts. A context is small; the limit bounds the memory of a process that
/// runs for years.
const MAX_CACHED_CONTEXTS: usize = 1000;
/// Maximum memory of inline items in the cache. Running jobs keep their own reference to their items.
const MAX_CACHED_ITEM_BYTES: usize = 64 << 20;

impl JobContext {
    /// The definition that the job was submitted with.
    pub(crate) fn definition(&self) -> &JobType {
        &self.scope.job_type
    }

    /// Maximum number of items per commit: the lower of the definition's limit and the database's.
    pub(crate) fn commit_items(&self) -> u32 {
        self.definition().commit_items().min(self.connection.most_items())
    }

    /// Whether an operator has stopped all job types or this one.
    pub(crate) fn is_stopped(&self) -> bool {
        self.controls.is_stopped(&self.snapshot.definition.name)
    }

    /// Fails if the submitter's identity has expired and the job type requires a valid one.
    pub(crate) fn check_identity(&self) -> std::result::Result<(), Problem> {
        check_identity(&self.snapshot)
    }

    /// Whether the job redrives dead letters of another job.
    pub(crate) fn is_redrive(&self) -> bool {
        self.snapshot.root != self.snapshot.id
    }
}

impl Engine {
    /// The context of a job, from the cache or resolved now.
    pub(crate) async fn context(&self, id: JobId) -> Result<Arc<JobContext>> {
        if let Some(known) = self.shared.jobs.lock().await.get(&id)
            && known.resolved.elapsed() < CONTEXT_CACHE_TTL
        {
            return Ok(known.clone());
        }
        let snapshot = self.shared.store.snapshot(id).await?.ok_or_else(|| {
            EngineError::from(Problem::new(Code::NotFound, format!("there is no job {id}")))
        })?;
        self.prepare_for(&snapshot.definition).await?;
        let context = Arc::new(self.resolve(snapshot, false).await?);
        let mut jobs = self.shared.jobs.lock().await;
        let bytes: usize = jobs.values().map(|known| known.bytes).sum();
        if jobs.len() >= MAX_CACHED_CONTEXTS || bytes + context.bytes > MAX_CACHED_ITEM_BYTES {
            jobs.clear();
        }
        jobs.insert(id, context.clone());
        Ok(context)
    }

    /// Resolves the definition and request of a job against the database as it is now.
    pub(crate) async fn resolve(&self, snapshot: JobSnapshot, dry_run: bool) -> Result<JobContext> {
        check_identity(&snapshot)?;
        let (step, token) = self.step_of(&snapshot)?;
        let facts = Arc::new(JobFacts::new(&snapshot, token, dry_run));
        let table = self.describe(&snapshot.definition.source).await?;
        let throttle = self.throttle(&snapshot.definition.source.connection);
        let context = self.resolve_with(snapshot, table, facts).await?;
        let part_columns = match &context.definition().step.kind {
            StepKind::Map(_) => context.connection.map_columns(&context.scope).await?.into(),
            _ => Arc::default(),
        };
        Ok(JobContext { step, throttle, part_columns, ..context })
    }

    /// Creates the ledger of a job type, if its step writes.
    pub(crate) async fn prepare_for(&self, definition: &JobType) -> Result<()> {
        match definition.step.kind.makes_parts() {
            true => Ok(()),
            false => self.prepare(&definition.source.connection).await,
        }
    }

    /// The connection to the records of a job type, without a ledger if the step only reads.
    pub(crate) fn connection_of(
        &self,
        definition: &JobType,
        dry_run: bool,
    ) -> Result<Arc<dyn Connection>> {
        let makes_parts = definition.step.kind.makes_parts();
        let connection = self.reading(&definition.source.connection, makes_parts, dry_run)?;
        Ok(match makes_parts {
            true => Arc::new(ReadOnly(connection)),
            false => connection,
        })
    }

    /// A connection that reads from replicas if nothing that is read will be written back; else the
    /// primary.
    fn reading(&self, name: &str, parts: bool, dry_run: bool) -> Result<Arc<dyn Connection>> {
        let primary = self.connection(name)?.clone();
        let reads = match (parts, dry_run) {
            (_, true) => Reads::Samples,
            (true, false) => Reads::Parts,
            (false, false) => return Ok(primary),
        };
        Ok(match self.replicas(name).cloned() {
            Some(replicas) => Arc::new(Replicated { primary, replicas, reads }),
            None => primary,
        })
    }

    /// Resolves the part of a context that every use of a job needs: the connection to its records, and
    /// the scope that limits which of them it may access.
    async fn resolve_with(
        &self,
        mut snapshot: JobSnapshot,
        mut table: Table,
        facts: Arc<JobFacts>,
    ) -> Result<JobContext> {
        let definition = snapshot.definition.clone();
        let (identity, key) = (&snapshot.identity.clone(), definition.source.key.clone());
        let mut connection = self.connection_of(&definition, facts.dry_run)?;
        let availability = self.availability(&definition.source.connection)?.clone();
        let mut bytes = 0;
        let scope = if definition.source.items {
            let mut request = self.request_with_items(&mut snapshot).await?;
            table.estimated_rows = request.items.as_ref().map_or(0, Vec::len) as u64;
            let scope = Scope::new(definition, table, &request, identity)?;
            let items = Items::new(request.items.take().unwrap_or_default(), &key, connection)?;
            bytes = items.size();
            connection = Arc::new(items);
            scope
        } else {
            Scope::new(definition, table, &snapshot.request, identity)?
        };
        let (controls, resolved) = (self.shared.controls.clone(), Instant::now());
        let (step, throttle, part_columns) = (None, Arc::default(), Arc::default());
        Ok(JobContext {
            snapshot,
            scope,
            connection,
            step,
            facts,
            controls,
            part_columns,
            throttle,
            availability,
            resolved,
            bytes,
        })
    }

    /// The request that holds a job's inline items: its own, or for a redrive that of the original job.
    /// The items are moved out of the snapshot, so that they are in memory only once.
    async fn request_with_items(&self, snapshot: &mut JobSnapshot) -> Result<Request> {
        if snapshot.root == snapshot.id {
            let items = snapshot.request.items.take();
            return Ok(Request { items, ..snapshot.request.clone() });
        }
        let gone = || {
            let detail = format!(
                "the original job {} was pruned, and its inline items with it",
                snapshot.root
            );
            EngineError::from(Problem::new(Code::NotFound, detail))
        };
        Ok(self.shared.store.snapshot(snapshot.root).await?.ok_or_else(gone)?.request)
    }

    /// A job's step, and the token that it forwards. If this process lacks a secret of an HTTP step, it
    /// can still plan the job, and must not fail chunks that another process could work on: such a step
    /// pauses the job instead.
    fn step_of(&self, snapshot: &JobSnapshot) -> Result<(MaybeStep, Option<Secret>)> {
        let step = self.shared.steps.of(&snapshot.definition, &self.shared.config);
        let made = step.and_then(|step| Ok((step, token_of(snapshot)?)));
        match made {
            Err(problem) if matches!(snapshot.definition.step.kind, StepKind::Http(_)) => {
                Ok((Some(Arc::new(FailingStep(problem.to_string()))), None))
            }
            made => Ok(made?),
        }
    }

    /// Resolves what is needed to end a job: no step, and no table if it was dropped.
    pub(crate) async fn resolve_to_end(&self, snapshot: JobSnapshot) -> Result<JobContext> {
        self.prepare_for(&snapshot.definition).await?;
        self.resolve_read_only(snapshot).await
    }

    /// Like `resolve_to_end`, but changes nothing: a missing ledger is not created.
    pub(crate) async fn resolve_read_only(&self, snapshot: JobSnapshot) -> Result<JobContext> {
        let table = match self.describe(&snapshot.definition.source).await {
            Err(error) if matches!(error.kind(), ErrorKind::Permanent) => Table::default(),
            described => described?,
        };
        let facts = Arc::new(JobFacts::new(&snapshot, None, false));
        self.resolve_with(snapshot, table, facts).await
    }
}

fn check_identity(snapshot: &JobSnapshot) -> std::result::Result<(), Problem> {
    match snapshot.identity.expires {
        Some(at) if snapshot.definition.source.claims_expire && at <= Utc::now() => {
            let detail = format!(
                "the identity of {} expired at {at}; submit the job again",
                snapshot.identity.name
            );
            Err(Problem::new(Code::Request, detail))
        }
        _ => Ok(()),
    }
}

/// The token that a job's step forwards: sealed in the job, or plain in a dry run.
fn token_of(snapshot: &JobSnapshot) -> std::result::Result<Option<Secret>, Problem> {
    match &snapshot.identity.sealed_token {
        _ if !snapshot.definition.step.kind.forwards_token() => Ok(None),
        Some(sealed) => Ok(Some(TokenVault::from_env()?.open(sealed, snapshot.root)?)),
        None => Ok(snapshot.identity.token.clone()),
    }
}
