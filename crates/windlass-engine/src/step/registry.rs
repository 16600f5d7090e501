//! The steps of one process: handlers registered in code, and commands and HTTP endpoints that are
//! created when a job needs them and cached.

use super::command::CommandStep;
use super::http::HttpStep;
use super::{FunctionStep, ItemContext, Step, StepBatch, StepError};
use async_trait::async_trait;
use futures::future::join_all;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use windlass_core::config::{endpoint_problem, names};
use windlass_core::problem::Code;
use windlass_core::{Config, Endpoint, ItemError, JobType, Outcome, Problem, Secret, StepKind};

/// All steps of the process, by name.
#[derive(Default)]
pub struct Steps {
    pub(crate) handlers: BTreeMap<String, Arc<dyn Step>>,
    /// Commands and endpoints, by job type and definition.
    cache: Mutex<HashMap<String, Arc<dyn Step>>>,
}

/// A clone has the same handlers, and starts its own commands.
impl Clone for Steps {
    fn clone(&self) -> Steps {
        Steps { handlers: self.handlers.clone(), cache: Mutex::default() }
    }
}

/// Maximum number of cached steps. There are usually few; the limit bounds the memory of a process
/// that runs for years.
const MAX_CACHED_STEPS: usize = 1000;

impl Steps {
    /// Registers a function under the name that a job type uses in `step.handler`. It is called once
    /// per record, which is deserialized to the type of its first parameter.
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

    /// The step of a definition; `None` if the database itself runs it (`refresh`, `sql`, `map`,
    /// `export`). The definition is the one the job was submitted with; secrets come from this process's
    /// configuration.
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
            StepKind::Command(words) => self.cached(definition, || {
                let words = words.iter().map(|word| with_variables(definition, word, config));
                let words = words.collect::<Result<_, _>>()?;
                let environment = definition.step.environment().map(str::to_owned).collect();
                let timeout = definition.step_timeout();
                Ok(Arc::new(CommandStep::new(words, environment, timeout)))
            }),
            StepKind::Http(endpoint) => self.cached(definition, || {
                let endpoint = with_secrets(definition, endpoint, config)?;
                // Checked again: the definition was accepted by the process that submitted the job.
                if let Some(problem) = endpoint_problem(definition, &endpoint) {
                    return Err(problem);
                }
                let step = HttpStep::new(&endpoint, definition);
                Ok(Arc::new(step.map_err(|detail| definition.problem("step.http", detail))?))
            }),
        }
    }

    /// Sends an empty batch to the step of a job type, to check that it is available.
    pub(crate) async fn check(
        &self,
        job_type: &JobType,
        config: &Config,
        token: Option<Secret>,
    ) -> Result<(), StepError> {
        let step = self.of(job_type, config);
        let step = step.map_err(|problem| StepError::Fatal(problem.detail))?;
        let Some(step) = step else { return Ok(()) };
        let token = token.filter(|_| job_type.step.kind.forwards_token());
        let response = step.process(StepBatch::probe(job_type, token)).await;
        step.close_idle(Duration::ZERO).await;
        response.map(drop)
    }

    /// Closes child processes and other resources that were unused for `idle_for` or longer.
    pub async fn close_idle(&self, idle_for: Duration) {
        let cached: Vec<_> = self.cache.lock().values().cloned().collect();
        let steps = cached.iter().chain(self.handlers.values());
        join_all(steps.map(|step| step.close_idle(idle_for))).await;
    }

    fn registered(&self, name: &str) -> Result<Arc<dyn Step>, Problem> {
        self.handlers.get(name).cloned().ok_or_else(|| {
            let known = names(self.handlers.keys());
            let detail = format!(
                "this process has no handler `{name}`; registered: {known}. Handlers are Rust \
                 functions registered with Engine::builder, so run the job from that program"
            );
            Problem::new(Code::Handler, detail)
        })
    }

    fn cached(
        &self,
        definition: &JobType,
        create: impl FnOnce() -> Result<Arc<dyn Step>, Problem>,
    ) -> Result<Option<Arc<dyn Step>>, Problem> {
        // Jobs submitted with different definitions have different steps.
        let name = format!("{} {}", definition.name, definition.to_json());
        let mut cache = self.cache.lock();
        if let Some(step) = cache.get(&name) {
            return Ok(Some(step.clone()));
        }
        if cache.len() >= MAX_CACHED_STEPS {
            cache.clear();
        }
        let step = create()?;
        cache.insert(name, step.clone());
        Ok(Some(step))
    }
}

/// Replaces a step that cannot be created in this process. It pauses the job with the reason.
pub(crate) struct FailingStep(pub(crate) String);

#[async_trait]
impl Step for FailingStep {
    async fn process(&self, _batch: StepBatch) -> Result<Vec<Outcome>, StepError> {
        Err(StepError::Fatal(self.0.clone()))
    }
}

/// Fills the variables of a text with their values in this process. The job stores only their names.
fn with_variables(definition: &JobType, text: &str, config: &Config) -> Result<String, Problem> {
    let Some(here) = config.jobs.get(&definition.name).filter(|_| text.contains("${")) else {
        return Ok(text.to_owned());
    };
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { break };
        // A job type defined in code has no variables; its text stays as it is.
        if here.line > 0 && !here.variables.contains_key(name) {
            let detail = format!(
                "the job was submitted with `${{{name}}}`, but this process's windlass.toml does not \
                 use that variable"
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
    // Secrets are sent only to the origin that this process's configuration names for them.
    if let Some(here) = here.filter(|here| here.origin() != endpoint.origin())
        && !endpoint.headers.is_empty()
    {
        let detail = format!(
            "the job calls {}, but step.http in this process's windlass.toml is {}, so its headers are not \
             sent; restore the URL or submit the job again",
            endpoint.origin(),
            here.origin()
        );
        return Err(definition.problem("step.http", detail));
    }
    for (name, value) in &mut endpoint.headers {
        let given = here.and_then(|here| here.headers.get(name));
        *value = given.cloned().ok_or_else(|| {
            let detail = format!(
                "the job was submitted with the header `{name}`, but this process's windlass.toml \
                 has no value for it in [jobs.{}]",
                definition.name
            );
            definition.problem("step.headers", detail)
        })?;
    }
    Ok(endpoint)
}
