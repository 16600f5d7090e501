//! The flags of a request, shared by `run` and `submit`.

use super::config;
use super::id::JobRef;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use windlass::{Engine, Identity, Request, Secret, Value};
use windlass_core::{JobType, OnFailed};

/// The fields of a request.
#[derive(clap::Args)]
pub(super) struct RequestArgs {
    /// The job type
    #[arg(value_name = "TYPE")]
    job_type: String,
    /// Only records with one of these values: --filter year=2024,2025
    #[arg(long, value_name = "NAME=A,B")]
    filter: Vec<String>,
    /// A value for `:name` in the statement, or for the handler: --param month=2025-01
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// Only the records with these keys, one per line; a key of several columns is a JSON list.
    /// `-` reads standard input
    #[arg(long, value_name = "FILE")]
    ids_file: Option<PathBuf>,
    /// The records, for job types with source.items: a JSON list, or one object per line.
    /// `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "ids_file")]
    items_file: Option<PathBuf>,
    /// The request as a JSON object, as the API accepts it; other flags replace its fields.
    /// `-` reads standard input
    #[arg(long, value_name = "FILE")]
    request_file: Option<PathBuf>,
    /// A claim of the submitter, for job types with source.claims: --claim county=Kent
    #[arg(long, value_name = "NAME=A,B")]
    claim: Vec<String>,
    /// Run after this job has completed (see --on-failed); may be repeated
    #[arg(long, value_name = "ID")]
    after: Vec<JobRef>,
    /// If a job of --after fails or is cancelled: keep waiting (block), run, or cancel
    #[arg(long, value_name = "WHAT", value_parser = on_failed)]
    on_failed: Option<OnFailed>,
    /// Priority 0 to 9; higher runs first
    #[arg(long, value_name = "N")]
    priority: Option<u8>,
    /// Idempotency key: submitting the same request again returns the existing job
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// The number of segments that are planned in parallel
    #[arg(long, value_name = "N")]
    parallel_segments: Option<u32>,
    /// Plan at most this many items in each segment, for trial runs
    #[arg(long, value_name = "N")]
    max_items_per_segment: Option<u64>,
}

impl RequestArgs {
    /// The request and the identity of its submitter. Params that the configuration declares are read by
    /// their type.
    pub(super) async fn read(
        self,
        config: &Path,
        engine: Option<&Engine>,
    ) -> Result<(Request, Identity)> {
        let mut after = Vec::new();
        for job in &self.after {
            after.push(match engine {
                Some(engine) => job.find(engine).await?,
                None => job.whole()?,
            });
        }
        let config = config::config(config)?;
        let job_type = config.jobs.get(&self.job_type);
        let base = match &self.request_file {
            Some(path) => read_request(path, &self.job_type, job_type)
                .with_context(|| format!("--request-file {}", path.display()))?,
            None => Request::new(&self.job_type),
        };
        let declared = job_type.map(|job_type| &job_type.params);
        let is_declared = |name: &String| declared.is_some_and(|params| params.contains_key(name));
        let mut filter = BTreeMap::new();
        for (name, values) in pairs(&self.filter, "--filter")? {
            let values = values.split(',').map(|value| Json::from(value.trim())).collect();
            filter.insert(name, Some(values));
        }
        let params = pairs(&self.param, "--param")?;
        let read = |(name, text)| {
            let value = if is_declared(&name) { Json::from(text) } else { param(text) };
            (name, value)
        };
        let mut all_params = base.params;
        all_params.extend(params.into_iter().map(read));
        let request = Request {
            job_type: self.job_type,
            filter: (!filter.is_empty()).then_some(filter).or(base.filter),
            params: all_params,
            priority: self.priority.or(base.priority),
            idempotency_key: self.idempotency_key.or(base.idempotency_key),
            parallel_segments: self.parallel_segments.or(base.parallel_segments),
            max_items_per_segment: self.max_items_per_segment.or(base.max_items_per_segment),
            after: (!after.is_empty()).then_some(after).or(base.after),
            on_failed: self.on_failed.or(base.on_failed),
            ids: self.ids_file.map(read_ids).transpose()?.or(base.ids),
            items: self.items_file.map(read_items).transpose()?.or(base.items),
        };
        let mut identity = Engine::local_identity();
        identity.token = token();
        for (name, values) in pairs(&self.claim, "--claim")? {
            identity
                .claims
                .insert(name, values.split(',').map(|v| Value::from(v.trim())).collect());
        }
        Ok((request, identity))
    }
}

fn on_failed(text: &str) -> Result<OnFailed, String> {
    let known = [OnFailed::Block, OnFailed::Run, OnFailed::Cancel];
    let found = known.into_iter().find(|known| known.as_str() == text);
    found.ok_or_else(|| "expected `block`, `run` or `cancel`".to_owned())
}

/// The submitter's own token, for job types that forward it.
pub(super) fn token() -> Option<Secret> {
    let token = std::env::var("WINDLASS_TOKEN").ok()?;
    Some(token.trim().to_owned()).filter(|token| !token.is_empty()).map(Secret::from)
}

/// Splits flags of the form NAME=VALUE.
pub(super) fn pairs<'a>(flags: &'a [String], flag: &str) -> Result<Vec<(String, &'a str)>> {
    let split = |text: &'a String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value)),
        _ => bail!("{flag} {text}: expected NAME=VALUE"),
    };
    flags.iter().map(split).collect()
}

/// Parses a param: a number or a boolean if it reads as one, otherwise text.
fn param(text: &str) -> Json {
    match serde_json::from_str(text) {
        Ok(value @ (Json::Number(_) | Json::Bool(_))) => value,
        _ => Json::from(text),
    }
}

/// Reads a request, whose job type is the given one.
fn read_request(path: &Path, name: &str, job_type: Option<&JobType>) -> Result<Request> {
    let text = read_file(path)?;
    let mut payload: Map<String, Json> =
        serde_json::from_str(&text).context("must be a JSON object")?;
    let given = payload.insert("jobType".to_owned(), Json::from(name));
    if let Some(other) = given.filter(|given| given != name) {
        bail!("is a request for {other}, not for {name}");
    }
    Ok(Request::from_payload(payload, job_type)?)
}

fn read_ids(path: PathBuf) -> Result<Vec<Json>> {
    let text = read_file(&path).with_context(|| format!("--ids-file {}", path.display()))?;
    let id = |line: &str| match line.starts_with('[') {
        true => serde_json::from_str(line)
            .with_context(|| format!("--ids-file: `{line}` is not a JSON list")),
        false => Ok(Json::from(line)),
    };
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(id).collect()
}

fn read_items(path: PathBuf) -> Result<Vec<Json>> {
    let text = read_file(&path).with_context(|| format!("--items-file {}", path.display()))?;
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(&text).context("--items-file: not a JSON list");
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let item = |(place, line)| {
        let item = serde_json::from_str(line);
        item.with_context(|| format!("--items-file: line {} is not JSON", place + 1))
    };
    lines.map(item).collect()
}

fn read_file(path: &Path) -> std::io::Result<String> {
    if path.as_os_str() != "-" {
        return std::fs::read_to_string(path);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}
