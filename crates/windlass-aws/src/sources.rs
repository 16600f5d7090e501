//! The job types of a configuration with their tables, which are described once.

use crate::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use windlass_connectors::Scope;
use windlass_connectors::dynamodb::Records;
use windlass_core::{Config, Identity, JobId, JobType, Request, StepKind, Table};

/// The job types and tables that a process has resolved.
pub(crate) struct Sources {
    pub(crate) config: Config,
    opened: Mutex<HashMap<String, Arc<Records>>>,
    known: Mutex<HashMap<String, (JobType, Table)>>,
}

impl Sources {
    pub(crate) fn new(config: Config) -> Sources {
        Sources { config, opened: Mutex::default(), known: Mutex::default() }
    }

    /// The records of a request and the scope that it may reach. Refuses a request that the job type does not
    /// support.
    pub(crate) async fn scope(&self, request: &Request) -> Result<(Arc<Records>, Scope)> {
        let job_type = self.config.job_type(&request.job_type)?;
        let records = self.records(job_type).await?;
        let (job_type, table) = self.fitted(job_type, &records).await?;
        let request = request.clone().resolve(&job_type, JobId::now_v7());
        let scope = Scope::new(job_type, table, &request, &Identity::default())?;
        Ok((records, scope))
    }

    /// The records of all connections with job types that count their items.
    pub(crate) async fn all_counted(&self) -> Result<Vec<Arc<Records>>> {
        let mut all: Vec<Arc<Records>> = Vec::new();
        for job_type in self.config.jobs.values().filter(|job_type| job_type.queue.progress) {
            let records = self.records(job_type).await?;
            if !all.iter().any(|known| Arc::ptr_eq(known, &records)) {
                all.push(records);
            }
        }
        Ok(all)
    }

    async fn records(&self, job_type: &JobType) -> Result<Arc<Records>> {
        let name = &job_type.source.connection;
        let mut opened = self.opened.lock().await;
        if let Some(records) = opened.get(name) {
            return Ok(records.clone());
        }
        let url = self.config.connections.get(name).map_or("", |known| known.url.as_str());
        if !url.trim().starts_with("dynamodb:") {
            let detail = format!(
                "must be a DynamoDB connection, got `{name}`; without a store no other database is supported"
            );
            return Err(job_type.problem("source.connection", detail).into());
        }
        let records = Records::open(url).await;
        let records = records.map_err(Error::data(format!("connections.{name}")))?;
        let records = Arc::new(records);
        opened.insert(name.clone(), records.clone());
        Ok(records)
    }

    /// The definition, validated against its table.
    async fn fitted(&self, job_type: &JobType, records: &Records) -> Result<(JobType, Table)> {
        let mut known = self.known.lock().await;
        if let Some(known) = known.get(&job_type.name) {
            return Ok(known.clone());
        }
        let by_item = matches!(
            job_type.step.kind,
            StepKind::Refresh | StepKind::Handler(_) | StepKind::Command(_) | StepKind::Http(_)
        );
        if !by_item {
            let detail = "is not worked item by item, and so needs a store";
            return Err(job_type.problem(job_type.step.kind.field(), detail).into());
        }
        let table = records.connection().describe(&job_type.source).await;
        let table = table.map_err(Error::data(format!("jobs.{}", job_type.name)))?;
        let mut fitted = job_type.clone();
        if let Some(problem) = windlass_connectors::validate(&mut fitted, &table).into_iter().next()
        {
            return Err(problem.into());
        }
        known.insert(job_type.name.clone(), (fitted.clone(), table.clone()));
        Ok((fitted, table))
    }
}
