//! What a process knows of a job it works on.

use crate::EngineError;
use crate::Result;
use crate::engine::Engine;
use crate::operate::availability::Availability;
use crate::operate::controls::Controls;
use crate::operate::health_probe::Throttle;
use crate::step::{JobFacts, Refusing, Step};
use crate::submit::token_vault::TokenVault;
use chrono::Utc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_connectors::{Connection, Items, ReadOnly, Reads, Replicated, Scope};
use windlass_core::ErrorKind;
use windlass_core::problem::Code;
use windlass_core::{Column, JobId, JobType, Problem, Request, Secret, StepKind, Table};
use windlass_store::JobSnapshot;

/// A job with everything resolved: its scope, its connection, its step.
pub(crate) struct JobContext {
    pub(crate) snapshot: JobSnapshot,
    pub(crate) scope: Scope,
    pub(crate) connection: Arc<dyn Connection>,
    /// What outcomes come from; `None` for steps that are a statement.
    pub(crate) step: MaybeStep,
    /// What every batch for the step carries.
    pub(crate) facts: Arc<JobFacts>,
    /// What operators say of its type and of itself.
    pub(crate) controls: Arc<Controls>,
    /// The columns of its parts, where it maps.
    pub(crate) part_columns: Arc<[Column]>,
    /// How far the health of its database slows it.
    pub(crate) throttle: Arc<Throttle>,
    /// Whether its database answers.
    pub(crate) availability: Arc<Availability>,
    resolved: Instant,
    /// About how many bytes the items of its request take here.
    bytes: usize,
}

/// None where the step is a statement.
type MaybeStep = Option<Arc<dyn Step>>;

/// How long a context is believed: a table that was mended or changed is looked at again.
const FRESH: Duration = Duration::from_secs(10);
/// Contexts kept at once. A context is small; the limit only keeps memory flat over the years.
const MOST_CONTEXTS: usize = 1000;
/// Bytes of items kept at once: those are not small. Jobs at work have their own hold on theirs.
const MOST_BYTES: usize = 64 << 20;

impl JobContext {
    /// The definition the job runs by.
    pub(crate) fn definition(&self) -> &JobType {
        &self.scope.job_type
    }

    /// How many items a commit has at most: as many as the definition says and the database takes.
    pub(crate) fn commit_items(&self) -> u32 {
        self.definition().commit_items().min(self.connection.most_items())
    }

    /// Whether an operator has stopped it, and everything of its type.
    pub(crate) fn is_stopped(&self) -> bool {
        self.controls.is_stopped(&self.snapshot.definition.name)
    }

    /// Refuses to work a job whose submitter's identity has expired, where its type says so.
    pub(crate) fn check_identity(&self) -> std::result::Result<(), Problem> {
        check_identity(&self.snapshot)
    }

    /// Whether the job redrives another job's letters.
    pub(crate) fn is_redrive(&self) -> bool {
        self.snapshot.root != self.snapshot.id
    }
}

impl Engine {
    /// The context of a job, resolved now or a moment ago.
    pub(crate) async fn context(&self, id: JobId) -> Result<Arc<JobContext>> {
        if let Some(known) = self.shared.jobs.lock().await.get(&id)
            && known.resolved.elapsed() < FRESH
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
        if jobs.len() >= MOST_CONTEXTS || bytes + context.bytes > MOST_BYTES {
            jobs.clear();
        }
        jobs.insert(id, context.clone());
        Ok(context)
    }

    /// Resolves what a job was submitted with against the database as it is now.
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

    /// Makes the ledger of a job type where it has one.
    pub(crate) async fn prepare_for(&self, definition: &JobType) -> Result<()> {
        match definition.step.kind.makes_parts() {
            true => Ok(()),
            false => self.prepare(&definition.source.connection).await,
        }
    }

    /// Where the records of a job type are: without a ledger where they are only read.
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

    /// A connection with its replicas, where nothing of what is read will be written back. The
    /// primary alone everywhere else.
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

    /// The part of a context that every use of a job needs: where its records are, and which of
    /// them it may reach.
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

    /// The request that has a job's items: its own, or that of the job whose letters it redrives. The
    /// job itself lets go of them, so that they are in memory once.
    async fn request_with_items(&self, snapshot: &mut JobSnapshot) -> Result<Request> {
        if snapshot.root == snapshot.id {
            let items = snapshot.request.items.take();
            return Ok(Request { items, ..snapshot.request.clone() });
        }
        let gone = || {
            let detail = format!("job {} is gone, and its items with it", snapshot.root);
            EngineError::from(Problem::new(Code::NotFound, detail))
        };
        Ok(self.shared.store.snapshot(snapshot.root).await?.ok_or_else(gone)?.request)
    }

    /// A job's step, and the token it sends along. A process that lacks a secret can load the job
    /// all the same, and may not fail what another could work: its step refuses.
    fn step_of(&self, snapshot: &JobSnapshot) -> Result<(MaybeStep, Option<Secret>)> {
        let step = self.shared.steps.of(&snapshot.definition, &self.shared.config);
        let made = step.and_then(|step| Ok((step, token_of(snapshot)?)));
        match made {
            Err(problem) if matches!(snapshot.definition.step.kind, StepKind::Http(_)) => {
                Ok((Some(Arc::new(Refusing(problem.to_string()))), None))
            }
            made => Ok(made?),
        }
    }

    /// What it takes to end a job that nobody works on any more: no handler, and no table if that
    /// is gone.
    pub(crate) async fn resolve_to_end(&self, snapshot: JobSnapshot) -> Result<JobContext> {
        self.prepare_for(&snapshot.definition).await?;
        self.resolve_to_look(snapshot).await
    }

    /// The same where nothing is to be changed, not even a missing ledger made.
    pub(crate) async fn resolve_to_look(&self, snapshot: JobSnapshot) -> Result<JobContext> {
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

/// The token a job's step sends along: sealed in the job, or as it came with a dry run.
fn token_of(snapshot: &JobSnapshot) -> std::result::Result<Option<Secret>, Problem> {
    match &snapshot.identity.sealed_token {
        _ if !snapshot.definition.step.kind.forwards_token() => Ok(None),
        Some(sealed) => Ok(Some(TokenVault::from_env()?.open(sealed, snapshot.root)?)),
        None => Ok(snapshot.identity.token.clone()),
    }
}
