//! What a process needs to work on a job, resolved and cached.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::execute::commit_pace::CommitPace;
use crate::operate::availability::Availability;
use crate::operate::controls::Controls;
use crate::operate::health_probe::Throttle;
use crate::step::{FailingStep, JobFacts, Step};
use crate::submit::token_vault::TokenVault;
use chrono::Utc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_connectors::{
    FanIn, InlineSource, NoLedger, RecordReader, ReplicaReader, Scope, Source, Target,
};
use windlass_core::ErrorKind;
use windlass_core::problem::Code;
use windlass_core::{Column, JobId, JobType, Problem, Request, Secret, StepKind, Table};
use windlass_store::JobSnapshot;

/// A job with everything resolved: its scope, its databases, its step.
#[derive(Clone)]
pub(crate) struct JobContext {
    pub(crate) snapshot: JobSnapshot,
    pub(crate) scope: Scope,
    /// Where its records are: a database, or the items of its request.
    pub(crate) source: Arc<dyn Source>,
    /// Where its effects and its ledger are: [`NoLedger`] for a step that only reads.
    pub(crate) target: Arc<dyn Target>,
    /// Where the rows of its parts are read: on replicas, if the connection has some.
    pub(crate) fan_in: Arc<dyn FanIn>,
    /// Computes the outcomes. `None` for steps that are a statement.
    pub(crate) step: MaybeStep,
    /// The facts about the job that every batch for the step carries.
    pub(crate) facts: Arc<JobFacts>,
    /// The operators' settings for its type and for itself.
    pub(crate) controls: Arc<Controls>,
    /// The columns of its parts, if its step is `map`.
    pub(crate) part_columns: Arc<[Column]>,
    /// The throttle of its database.
    pub(crate) throttle: Arc<Throttle>,
    /// Whether its database is available.
    pub(crate) availability: Arc<Availability>,
    /// The size of commits, for `chunk.commit = "auto"`.
    pub(crate) pace: Option<Arc<CommitPace>>,
    /// The read snapshot that it is read under.
    pub(crate) reading: Option<Reading>,
    pub(crate) resolved_at: Instant,
    /// The approximate memory of the items of its request, in bytes.
    bytes: usize,
}

/// Which read snapshot of a job it is read under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The number of the snapshot.
    pub(crate) number: i64,
    /// Whether a replica has it.
    pub(crate) on_replica: bool,
}

/// `None` when the step is a statement.
type MaybeStep = Option<Arc<dyn Step>>;

/// How long a context is used before it is resolved again, so that a changed table is noticed.
const CONTEXT_TTL: Duration = Duration::from_secs(10);
/// The most cached contexts. A context is small, but their number must not grow without bound.
const MAX_CONTEXTS: usize = 1000;
/// The most bytes of request items in cached contexts. Running jobs keep their own references.
const MAX_ITEM_BYTES: usize = 64 << 20;

impl JobContext {
    /// The job's definition.
    pub(crate) fn definition(&self) -> &JobType {
        &self.scope.job_type
    }

    /// The most items of the next commit, by the definition, by the database, and for `chunk.commit = "auto"` by the
    /// time of earlier commits and by the limit of items per second: at most as many as that allows in a second.
    pub(crate) fn commit_items(&self) -> u32 {
        let items = match &self.pace {
            None => self.definition().commit_items(),
            Some(pace) => {
                let rate = self.controls.rate(&self.snapshot);
                let limit = rate.map_or(u32::MAX, |rate| u32::try_from(rate).unwrap_or(u32::MAX));
                pace.size().min(limit.max(1))
            }
        };
        items.min(self.target.max_commit_items())
    }

    /// Whether an operator has stopped its job type.
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
            && known.resolved_at.elapsed() < CONTEXT_TTL
        {
            return Ok(known.clone());
        }
        let snapshot = self.shared.store.snapshot(id).await?.ok_or_else(|| {
            EngineError::from(Problem::new(Code::NotFound, format!("there is no job {id}")))
        })?;
        self.prepare_for(&snapshot.definition).await?;
        let mut context = self.resolve(snapshot, false).await?;
        let mut jobs = self.shared.jobs.lock().await;
        if let Some(earlier) = jobs.get(&id) {
            context.pace = earlier.pace.clone();
        }
        let context = Arc::new(context);
        let bytes: usize = jobs.values().map(|known| known.bytes).sum();
        if jobs.len() >= MAX_CONTEXTS || bytes + context.bytes > MAX_ITEM_BYTES {
            jobs.clear();
        }
        jobs.insert(id, context.clone());
        Ok(context)
    }

    /// Resolves a job against the current schema of its database.
    pub(crate) async fn resolve(&self, snapshot: JobSnapshot, dry_run: bool) -> Result<JobContext> {
        check_identity(&snapshot)?;
        let (step, token) = self.step_of(&snapshot)?;
        let facts = Arc::new(JobFacts::new(&snapshot, token, dry_run));
        let table = self.describe(&snapshot.definition.source).await?;
        let throttle = self.throttle(&snapshot.definition.source.connection);
        let context = self.resolve_with(snapshot, table, facts).await?;
        let part_columns = match &context.definition().step.kind {
            StepKind::Map(_) => context.fan_in.map_columns(&context.scope).await?.into(),
            _ => Arc::default(),
        };
        Ok(JobContext { step, throttle, part_columns, ..context })
    }

    /// Creates the ledger of a job type that needs one.
    pub(crate) async fn prepare_for(&self, definition: &JobType) -> Result<()> {
        match definition.step.kind.makes_parts() {
            true => Ok(()),
            false => self.prepare(&definition.source.connection).await,
        }
    }

    /// The target of a job type: its connection, or none for a step that only reads.
    pub(crate) fn target_of(&self, definition: &JobType) -> Result<Arc<dyn Target>> {
        let connection = self.connection(&definition.source.connection)?;
        Ok(match definition.step.kind.makes_parts() {
            true => Arc::new(NoLedger),
            false => connection.clone(),
        })
    }

    /// Reads the samples of a dry run: from replicas, if the connection has some.
    pub(crate) fn sample_reader(&self, job: &JobContext) -> Result<Arc<dyn RecordReader>> {
        let source = &job.definition().source;
        Ok(match self.replica_reader(&source.connection)? {
            Some(reader) if !source.items => Arc::new(reader),
            _ => job.source.clone(),
        })
    }

    /// Reads from the replicas of a connection, if it has some.
    fn replica_reader(&self, connection: &str) -> Result<Option<ReplicaReader>> {
        let primary = self.connection(connection)?.clone();
        let replicas = self.replicas(connection).cloned();
        Ok(replicas.map(|replicas| ReplicaReader { primary, replicas }))
    }

    /// The part of a context that every use of a job needs: its databases and its scope.
    async fn resolve_with(
        &self,
        mut snapshot: JobSnapshot,
        mut table: Table,
        facts: Arc<JobFacts>,
    ) -> Result<JobContext> {
        let definition = snapshot.definition.clone();
        let (identity, key) = (&snapshot.identity.clone(), definition.source.key.clone());
        let connection = self.connection(&definition.source.connection)?;
        let (mut source, target): (Arc<dyn Source>, _) =
            (connection.clone(), self.target_of(&definition)?);
        let fan_in: Arc<dyn FanIn> = match self.replica_reader(&definition.source.connection)? {
            Some(reader) => Arc::new(reader),
            None => connection.clone(),
        };
        let availability = self.availability(&definition.source.connection)?.clone();
        let mut bytes = 0;
        let scope = if definition.source.items {
            let mut request = self.request_with_items(&mut snapshot).await?;
            table.estimated_rows = request.items.as_ref().map_or(0, Vec::len) as u64;
            let scope = Scope::new(definition, table, &request, identity)?;
            let items = InlineSource::new(request.items.take().unwrap_or_default(), &key)?;
            bytes = items.size();
            source = Arc::new(items);
            scope
        } else {
            Scope::new(definition, table, &snapshot.request, identity)?
        };
        let commits = |time| Arc::new(CommitPace::new(time, scope.job_type.commit_items()));
        let pace = scope.job_type.commit_time().map(commits);
        let (controls, resolved_at) = (self.shared.controls.clone(), Instant::now());
        let (step, throttle, part_columns) = (None, Arc::default(), Arc::default());
        Ok(JobContext {
            snapshot,
            scope,
            source,
            target,
            fan_in,
            step,
            facts,
            controls,
            part_columns,
            throttle,
            availability,
            pace,
            reading: None,
            resolved_at,
            bytes,
        })
    }

    /// The request with a job's items: its own, or that of the job whose dead letters it redrives.
    /// Takes the items out of the snapshot, so that they are in memory once.
    async fn request_with_items(&self, snapshot: &mut JobSnapshot) -> Result<Request> {
        if snapshot.root == snapshot.id {
            let items = snapshot.request.items.take();
            return Ok(Request { items, ..snapshot.request.clone() });
        }
        let missing = || {
            let detail = format!("job {} is deleted, and its items with it", snapshot.root);
            EngineError::from(Problem::new(Code::NotFound, detail))
        };
        Ok(self.shared.store.snapshot(snapshot.root).await?.ok_or_else(missing)?.request)
    }

    /// A job's step, and the token that it forwards. A process that lacks a secret can still plan the
    /// job, and must not fail chunks that another process could work: its step refuses them.
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

    /// The context to end a job that is no longer worked on. Needs no handler, and no table if that
    /// is dropped.
    pub(crate) async fn resolve_to_end(&self, snapshot: JobSnapshot) -> Result<JobContext> {
        self.prepare_for(&snapshot.definition).await?;
        self.resolve_read_only(snapshot).await
    }

    /// The same without changing anything: a missing ledger is not created.
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

/// The token that a job's step forwards: sealed in the job, or the one of a dry-run request.
fn token_of(snapshot: &JobSnapshot) -> std::result::Result<Option<Secret>, Problem> {
    match &snapshot.identity.sealed_token {
        _ if !snapshot.definition.step.kind.forwards_token() => Ok(None),
        Some(sealed) => Ok(Some(TokenVault::from_env()?.open(sealed, snapshot.root)?)),
        None => Ok(snapshot.identity.token.clone()),
    }
}
