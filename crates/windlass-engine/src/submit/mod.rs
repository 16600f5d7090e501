//! Submitting: validates a request and creates the job.
//!
//! Everything that can be rejected is rejected here, before anything is written.

mod check_statements;
pub(crate) mod dependents;
pub(crate) mod dry_run;
pub(crate) mod outbox_relay;
pub(crate) mod redrive;
pub(crate) mod run;
pub(crate) mod schedule_view;
pub(crate) mod scheduler;
pub(crate) mod token_vault;

use crate::EngineError;
use crate::Result;
use crate::engine::{Engine, unreachable};
use crate::plan::page::plan_small_job;
use crate::step::StepError;
use crate::submit::token_vault::TokenVault;
use windlass_connectors::{ConnectorError, Scope};
use windlass_core::problem::Code;
use windlass_core::{
    Consistency, Identity, JobId, JobType, Problem, Request, Secret, Source, StepKind, Table,
};
use windlass_store::{NewJob, Submitted};

/// A job type that was validated against its table.
///
/// ```no_run
/// # async fn example(engine: &windlass_engine::Engine) -> windlass_engine::Result<()> {
/// let job_type = engine.config().job_type("REFRESH")?;
/// match engine.check_job_type(job_type).await {
///     Ok(checked) => println!("commits of up to {} items", checked.commit_items),
///     Err(problems) => problems.iter().for_each(|problem| eprintln!("{problem}")),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// The definition with its key columns resolved.
    pub definition: JobType,
    /// The source as the database describes it.
    pub table: Table,
    /// Maximum number of items per commit.
    pub commit_items: u32,
}

impl Engine {
    /// Submits a job for this identity. The job keeps the definition as it is now.
    ///
    /// # Errors
    /// The request is wrong, names an unknown job type or an idempotency key that has another request, or the store or
    /// the source fails.
    pub async fn submit(&self, request: Request, identity: Identity) -> Result<Submitted> {
        self.submit_as(JobId::now_v7(), request, identity).await
    }

    /// Submits a job under an id chosen by the caller. Submitting the same id again returns the same
    /// job, so a caller that submits from a database row may safely repeat it.
    ///
    /// # Errors
    /// Those of [`Engine::submit`].
    pub async fn submit_as(
        &self,
        id: JobId,
        request: Request,
        identity: Identity,
    ) -> Result<Submitted> {
        let checked = self.check_request(&request, &identity).await?;
        self.prepare_for(&checked.definition).await?;
        let definition = checked.definition;
        let identity = seal_token(&definition, identity, id)?;
        let rules = self.config().dependencies.iter();
        let rules = rules.filter(|rule| rule.after.contains(&definition.name)).cloned().collect();
        let (job_type, submitted_by) = (definition.name.clone(), identity.name.clone());
        let mut job = NewJob { id, definition, request, identity, root: id, rules, plan: None };
        job.plan = plan_small_job(self, &job, &checked.table).await;
        let submitted = self.shared.store.submit(job).await?;
        match submitted {
            Submitted::New(job) => tracing::info!(%job, job_type, submitted_by, "job submitted"),
            Submitted::Existing(job) => {
                tracing::info!(%job, job_type, submitted_by, "request was submitted before; same job");
            }
        }
        Ok(submitted)
    }

    /// Runs all checks of [`Engine::submit`] without submitting.
    ///
    /// # Errors
    /// Those of [`Engine::submit`].
    pub async fn check_request(&self, request: &Request, identity: &Identity) -> Result<Checked> {
        let job_type = self.shared.config.job_type(&request.job_type)?;
        request.check_size()?;
        request.check_limits()?;
        let checked = self.check_job_type(job_type).await.map_err(first_problem)?;
        request.check(&checked.definition, identity, &checked.table)?;
        request.check_known_params(&self.shared.config, job_type)?;
        let resolved = request.clone().resolve(&checked.definition, JobId::now_v7());
        crate::merge::destination::check_destinations(&checked.definition, &resolved, identity)?;
        Ok(checked)
    }

    /// Validates a job type against its database: the database is reachable, has the table, columns
    /// and indexes, and has the ledger or allows its creation.
    ///
    /// # Errors
    /// What does not fit: the table, its key, a column or a statement; or the database cannot be reached.
    pub async fn check_job_type(
        &self,
        job_type: &JobType,
    ) -> std::result::Result<Checked, Vec<Problem>> {
        let mut problems = job_type.problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        let table = self.describe(&job_type.source).await;
        let table = table.map_err(|error| vec![describe_problem(job_type, error)])?;
        let mut definition = job_type.clone();
        problems.extend(windlass_connectors::validate(&mut definition, &table));
        if !problems.is_empty() {
            self.forget_schema(&job_type.source);
        }
        if !job_type.step.kind.makes_parts()
            && let Err(error) = self.check_ledger(&job_type.source.connection).await
        {
            problems.push(describe_problem(job_type, error));
        }
        if let Ok(connection) = self.connection(&job_type.source.connection)
            && let Err(error) = connection.check_statement(&definition)
        {
            problems.push(describe_problem(job_type, error.into()));
        }
        if definition.source.consistency == Some(Consistency::Snapshot)
            && let Ok(connection) = self.connection(&job_type.source.connection)
            && let Err(error) = connection.check_snapshots().await
        {
            problems.push(describe_problem(job_type, error.into()));
        }
        if problems.is_empty()
            && let Err(error) = self.check_keys(&definition, &table).await
        {
            problems.push(describe_problem(job_type, error));
        }
        if problems.is_empty()
            && let Err(error) = self.check_fan_in(&definition, &table).await
        {
            problems.push(describe_problem(job_type, error));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let most = self.connection(&definition.source.connection).map(|c| c.max_commit_items());
        let commit_items = definition.commit_items().min(most.unwrap_or(u32::MAX));
        Ok(Checked { definition, table, commit_items })
    }

    /// Checks that the source database accepts `map`, and that the table named by `load` exists.
    async fn check_fan_in(&self, definition: &JobType, table: &Table) -> Result<()> {
        if matches!(definition.step.kind, StepKind::Map(_)) {
            let scope = Scope::of_all(definition.clone(), table.clone());
            let connection = self.connection(&definition.source.connection)?;
            let described = connection.map_columns(&scope).await;
            let name = &definition.source.connection;
            described.map_err(|error| field_problem(definition, "step.map", name, error))?;
        }
        if let Some(load) = &definition.load {
            let source = Source { table: Some(load.table.clone()), ..Source::default() };
            let described = self.connection(&load.connection)?.describe(&source).await;
            let refused = |error| field_problem(definition, "load.table", &load.connection, error);
            let table = described.map_err(refused)?;
            if table.open {
                let detail = "is a DynamoDB connection, which cannot replace rows in one \
                              transaction; name a connection to a SQL database";
                return Err(definition.problem("load.connection", detail).into());
            }
        }
        Ok(())
    }

    /// Sends an empty batch to the step of a job type: a handler must be registered in this process,
    /// a command must start, an endpoint must respond.
    ///
    /// # Errors
    /// The handler is not registered, or the command or endpoint is not available.
    pub async fn check_step(
        &self,
        job_type: &JobType,
        token: Option<Secret>,
    ) -> std::result::Result<(), StepError> {
        self.shared.steps.check(job_type, &self.shared.config, token).await
    }
}

/// The identity as it is stored with the job. The submitter's token is kept only if the step forwards
/// it, and then sealed.
fn seal_token(definition: &JobType, identity: Identity, root: JobId) -> Result<Identity> {
    let sealed_token = match (definition.step.kind.forwards_token(), &identity.token) {
        (false, _) => None,
        (true, Some(token)) if token.expose().chars().any(char::is_control) => {
            let detail = "must not contain line breaks or control characters";
            return Err(Problem::field(Code::Request, "token", detail).into());
        }
        (true, Some(token)) => Some(TokenVault::from_env()?.seal(token, root)?),
        (true, None) => {
            let detail = format!(
                "`{}` forwards the submitter's token, but the request has none; `windlass run` and \
                 `submit` read it from WINDLASS_TOKEN",
                definition.name
            );
            return Err(Problem::field(Code::Request, "token", detail).into());
        }
    };
    Ok(Identity { token: None, sealed_token, ..identity })
}

/// The problem of a job type whose step failed its check.
///
/// ```
/// use windlass_core::JobType;
/// use windlass_engine::{StepError, step_problem};
///
/// let job_type = JobType::from_json("CALL", serde_json::json!({
///     "source": {"connection": "app", "table": "visits"}, "step": {"command": ["call"]},
/// }))?;
/// let problem = step_problem(&job_type, StepError::Fatal("call is not installed".into()));
/// assert!(problem.to_string().contains("step.command"));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn step_problem(job_type: &JobType, error: StepError) -> Problem {
    let field = job_type.step.kind.field();
    Problem { code: Code::Handler, ..job_type.problem(field, error.to_string()) }
}

fn first_problem(problems: Vec<Problem>) -> EngineError {
    let mut problems = problems.into_iter();
    let first = problems.next().unwrap_or_else(|| Problem::new(Code::Source, "is not usable"));
    let more = problems.len();
    let detail = match more {
        0 => first.detail,
        _ => format!("{} (and {more} more; `windlass check` lists them)", first.detail),
    };
    EngineError::Problem(Problem { detail, ..first })
}

fn describe_problem(job_type: &JobType, error: EngineError) -> Problem {
    match error {
        // The connection itself is the problem, so the line of the job type would mislead.
        EngineError::Problem(problem) if problem.code == Code::Unreachable => problem,
        EngineError::Problem(problem) if problem.line.is_none() => {
            let field = problem.field.as_deref().unwrap_or("source");
            Problem { code: problem.code, ..job_type.problem(field, problem.detail) }
        }
        EngineError::Problem(problem) => problem,
        EngineError::Data(error) => {
            field_problem(job_type, "source", &job_type.source.connection, error)
        }
        other => job_type.problem("source", other.to_string()),
    }
}

/// The problem of a field that a database refused, or could not check now: that is no error of the definition.
fn field_problem(
    job_type: &JobType,
    field: &str,
    connection: &str,
    error: ConnectorError,
) -> Problem {
    let url = || format!("connections.{connection}.url");
    match error {
        ConnectorError::Database(error) if error.is_connect_failure() => {
            Problem::field(Code::Unreachable, url(), unreachable(&error))
        }
        ConnectorError::Database(error) if error.is_unavailable() => {
            let detail = format!("the database is busy: {error}; try again");
            Problem::field(Code::Unreachable, url(), detail)
        }
        other => job_type.problem(field, other.to_string()),
    }
}
