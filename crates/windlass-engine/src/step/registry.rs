//! The steps of one process: registered handlers, and commands and endpoints that are created on first
//! use and kept.

use super::command::CommandStep;
use super::http::HttpStep;
use super::{FunctionStep, ItemContext, Step, StepBatch, StepError};
use async_trait::async_trait;
use futures::future::join_all;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use windlass_core::config::{endpoint_problem, names};
use windlass_core::problem::Code;
use windlass_core::{Config, Endpoint, ItemError, JobType, Outcome, Problem, Secret, StepKind};

/// All steps of the process.
#[derive(Default)]
pub struct Steps {
    pub(crate) handlers: BTreeMap<String, Arc<dyn Step>>,
    made: Mutex<HashMap<String, Arc<dyn Step>>>,
}

/// Commands and endpoints that are kept. There are few; the limit bounds memory.
const MAX_STEPS: usize = 1000;

impl Steps {
    /// Registers a function under the name in `step.handler`. It is called once per record, which
    /// arrives as any type that implements `Deserialize`.
    pub fn handler<T, F, Fut>(self, name: &str, function: F) -> Steps
    where
        T: DeserializeOwned + Send + 'static,
        F: Fn(T, ItemContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Outcome, ItemError>> + Send + 'static,
    {
        self.step(name, Arc::new(FunctionStep::new(function)))
    }

    /// Registers a step that processes whole batches.
    pub fn step(mut self, name: &str, step: Arc<dyn Step>) -> Steps {
        self.handlers.insert(name.to_owned(), step);
        self
    }

    /// The step of a definition; none for a statement. The definition is the one that the job was
    /// submitted with; secrets come from this process's own configuration.
    ///
    /// # Errors
    /// This process has no such handler, or its configuration lacks a variable or header of the step.
    pub fn of(
        &self,
        definition: &JobType,
        config: &Config,
    ) -> Result<Option<Arc<dyn Step>>, Problem> {
        match &definition.step.kind {
            StepKind::Refresh | StepKind::Sql(_) | StepKind::Export(_) | StepKind::Map(_) => {
                Ok(None)
            }
            StepKind::Handler(name) => self.registered(name).map(Some),
            StepKind::Command(words) => self.kept(definition, || {
                let words = words.iter().map(|word| with_variables(definition, word, config));
                let words = words.collect::<Result<_, _>>()?;
                let environment = definition.step.environment().map(str::to_owned).collect();
                let timeout = definition.step_timeout();
                Ok(Arc::new(CommandStep::new(words, environment, timeout)))
            }),
            StepKind::Http(endpoint) => self.kept(definition, || {
                let endpoint = with_secrets(definition, endpoint, config)?;
                // A job keeps its definition, which another machine may have allowed.
                if let Some(problem) = endpoint_problem(definition, &endpoint) {
                    return Err(problem);
                }
                let step = HttpStep::new(&endpoint, definition);
                Ok(Arc::new(step.map_err(|detail| definition.problem("step.http", detail))?))
            }),
        }
    }

    /// Sends an empty batch to the step of a job type, to test that it answers.
    pub(crate) async fn ask(
        &self,
        job_type: &JobType,
        config: &Config,
        token: Option<Secret>,
    ) -> Result<(), StepError> {
        let step = self.of(job_type, config);
        let step = step.map_err(|problem| StepError::Fatal(problem.detail))?;
        let Some(step) = step else { return Ok(()) };
        let token = token.filter(|_| job_type.step.kind.forwards_token());
        let answer = step.process(StepBatch::question(job_type, token)).await;
        step.rest(Duration::ZERO).await;
        answer.map(drop)
    }

    /// Closes what has been idle for this long.
    pub async fn rest(&self, unused: Duration) {
        let made: Vec<_> = self.made().values().cloned().collect();
        join_all(made.iter().chain(self.handlers.values()).map(|step| step.rest(unused))).await;
    }

    fn registered(&self, name: &str) -> Result<Arc<dyn Step>, Problem> {
        self.handlers.get(name).cloned().ok_or_else(|| {
            let known = names(self.handlers.keys());
            let detail = format!(
                "this process has no handler `{name}`; registered are {known}. Handlers are Rust \
                 functions registered with Engine::builder, so run the job from that program"
            );
            Problem::new(Code::Handler, detail)
        })
    }

    fn kept(
        &self,
        definition: &JobType,
        make: impl FnOnce() -> Result<Arc<dyn Step>, Problem>,
    ) -> Result<Option<Arc<dyn Step>>, Problem> {
        // Another definition is another step.
        let name = format!("{} {}", definition.name, definition.to_json());
        let mut made = self.made();
        if let Some(step) = made.get(&name) {
            return Ok(Some(step.clone()));
        }
        if made.len() >= MAX_STEPS {
            made.clear();
        }
        let step = make()?;
        made.insert(name, step.clone());
        Ok(Some(step))
    }

    /// A panic elsewhere cannot leave the map half changed, so poisoning is ignored.
    fn made(&self) -> MutexGuard<'_, HashMap<String, Arc<dyn Step>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces a step that cannot be created in this process: it pauses the job with the reason.
pub(crate) struct Refusing(pub(crate) String);

#[async_trait]
impl Step for Refusing {
    async fn process(&self, _batch: StepBatch) -> Result<Vec<Outcome>, StepError> {
        Err(StepError::Fatal(self.0.clone()))
    }
}

/// Replaces `${VAR}` in a text of a step by the values of this process. The job stores only the names.
fn with_variables(definition: &JobType, text: &str, config: &Config) -> Result<String, Problem> {
    let Some(here) = config.jobs.get(&definition.name).filter(|_| text.contains("${")) else {
        return Ok(text.to_owned());
    };
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { break };
        // A job type that was defined in code has no variables.
        if here.line > 0 && !here.variables.contains_key(name) {
            let detail = format!(
                "the job was submitted with `${{{name}}}`, and this process's windlass.toml has no \
                 such variable"
            );
            return Err(definition.problem(definition.step.kind.field(), detail));
        }
        rest = after;
    }
    Ok(here.expand(text))
}

/// The endpoint with the values of its headers, which are never stored with a job.
fn with_secrets(
    definition: &JobType,
    endpoint: &Endpoint,
    config: &Config,
) -> Result<Endpoint, Problem> {
    let here = config.jobs.get(&definition.name).map(|job_type| &job_type.step.kind);
    let mut endpoint = endpoint.clone();
    endpoint.url = with_variables(definition, &endpoint.url, config)?;
    let here = match here {
        Some(StepKind::Http(here)) => {
            let url = with_variables(definition, &here.url, config)?;
            Some(Endpoint { url, ..here.clone() })
        }
        _ => None,
    };
    let here = here.as_ref();
    // A secret is sent only to the origin that the file names with it.
    if let Some(here) = here.filter(|here| here.origin() != endpoint.origin())
        && !endpoint.headers.is_empty()
    {
        let detail = format!(
            "the job was submitted for {}, and this process's windlass.toml has the headers for {}",
            endpoint.origin(),
            here.origin()
        );
        return Err(definition.problem("step.http", detail));
    }
    for (name, value) in &mut endpoint.headers {
        let given = here.and_then(|here| here.headers.get(name));
        *value = given.cloned().ok_or_else(|| {
            let detail = format!(
                "the job was submitted with the header `{name}`, and this process's windlass.toml \
                 has no value for it under [jobs.{}]",
                definition.name
            );
            definition.problem("step.headers", detail)
        })?;
    }
    Ok(endpoint)
}
