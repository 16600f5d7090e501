//! One night: runs both jobs one after the other and measures them.

use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::Value as Json;

use crate::command;
use crate::servers::{Servers, loaded};

/// The state of the bank's database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    Calm,
    /// Five percent of the reads fail: not executed, cut short, or refused.
    FailingReads,
}

/// The measurements of a night.
#[derive(Default)]
pub(crate) struct Night {
    pub(crate) report: Duration,
    pub(crate) export: Duration,
    pub(crate) one_statement: Duration,
    pub(crate) peak_megabytes: u64,
    pub(crate) chunks: u64,
    pub(crate) failed_chunks: u64,
    /// The records of both jobs, and how many of them were not processed.
    pub(crate) items: u64,
    pub(crate) unprocessed: u64,
    /// The reads of chunks, and how many of them were made to fail.
    pub(crate) reads: (usize, usize),
    /// Whether the warehouse has the same totals as the bank, to the cent.
    pub(crate) equal: bool,
    /// The bytes of all parts.
    pub(crate) bytes: u64,
}

/// Runs the report and the export.
pub(crate) async fn run(servers: &Servers, weather: Weather) -> anyhow::Result<Night> {
    let mut night = Night { one_statement: servers.own.1, ..Night::default() };
    let date = match weather {
        Weather::Calm => "2026-01-31",
        Weather::FailingReads => "2026-02-01",
    };
    let percent = if weather == Weather::FailingReads { 5 } else { 0 };
    // Texts that occur only in the statement of each job's chunks.
    servers.fail_reads("max(booked_at)", percent);
    night.report = night.job(servers, weather, "DAILY_REPORT", date).await?;
    let failed = servers.reads();
    servers.fail_reads("`memo`", percent);
    night.export = night.job(servers, weather, "TRANSACTIONS_EXPORT", date).await?;
    servers.fail_reads("", 0);
    night.reads = servers.reads();
    eprintln!("reads that failed: {} in the report, {} in all", failed.1, night.reads.1);
    night.equal = loaded(&servers.warehouse, date).await == servers.own.0;
    Ok(night)
}

impl Night {
    async fn job(
        &mut self,
        servers: &Servers,
        weather: Weather,
        job_type: &str,
        date: &str,
    ) -> anyhow::Result<Duration> {
        let (folder, environment) = (servers.folder.path(), servers.environment(weather));
        let param = format!("date={date}");
        let begun = Instant::now();
        let arguments = ["run", job_type, "--param", &param, "--json"];
        let done = command::run(folder, &environment, &arguments).await?;
        let took = begun.elapsed();
        let job = &done.json;
        eprintln!(
            "{job_type}: {} in {:.1} s, {} chunks, at most {} MB",
            job["status"],
            took.as_secs_f64(),
            job["chunks"]["total"],
            done.peak_megabytes
        );
        self.peak_megabytes = self.peak_megabytes.max(done.peak_megabytes);
        self.chunks += number(job, "chunks", "total")?;
        self.failed_chunks += number(job, "chunks", "failed")?;
        let (items, processed) =
            (number(job, "items", "total")?, number(job, "items", "processed")?);
        self.items += items;
        self.unprocessed += items.saturating_sub(processed);
        self.bytes += self.written(servers, job).await?;
        Ok(took)
    }

    /// The bytes of a job's parts in the bucket.
    async fn written(&self, servers: &Servers, job: &Json) -> anyhow::Result<u64> {
        let id = job["id"].as_str().context("a job has an id")?;
        let sql = format!(
            "SELECT COALESCE(sum(bytes), 0)::bigint FROM windlass_parts \
             WHERE job_id = '{id}' AND chunk >= 0 AND name IS NOT NULL"
        );
        Ok(servers.warehouse.one::<i64>(&sql).await.unsigned_abs())
    }
}

fn number(job: &Json, group: &str, name: &str) -> anyhow::Result<u64> {
    job[group][name].as_u64().with_context(|| format!("{group}.{name} of {job}"))
}
