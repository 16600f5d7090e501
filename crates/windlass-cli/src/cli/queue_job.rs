//! `windlass job ID --queue`: the progress of a job whose items are messages of a queue.

use super::print;
use anyhow::{Result, bail};
use chrono::TimeDelta;
use windlass::{Config, Job, JobId, JobStatus};
use windlass_aws::{JobState, Queue};
use windlass_core::request::DEFAULT_PRIORITY;
use windlass_core::{ChunkCounts, ItemCounts, Phase};

pub(super) async fn show(config: Config, queue: &Queue, id: JobId, json: bool) -> Result<()> {
    let Some(state) = windlass_aws::job_progress(config, id).await? else {
        bail!(
            "the job {id} is not counted: no connection has its counters; set `queue.progress = true` in its job \
             type and start it again"
        );
    };
    let job = job(id, &state, queue.depth().await?)?;
    if json {
        return print::json(&job);
    }
    let Job { items, .. } = &job;
    println!("{}  {}  {id}", print::status(job.status), job.job_type);
    println!(
        "  items   {} of {}: {} processed, {} skipped, {}",
        print::number(items.done()),
        print::number(items.total),
        print::number(items.processed),
        print::number(items.skipped),
        print::count(items.dead, "dead letter")
    );
    println!("  created {}", print::time(job.created_at));
    if let Some(finished) = job.finished_at {
        println!("  ended   {}", print::time(finished));
    }
    if let Some(phase) = job.phase {
        println!("  phase   {phase}");
    }
    if let Some(waits_for) = &job.waits_for {
        println!("  waits for {waits_for}");
    }
    Ok(())
}

/// The job in the form that it has with a store, without chunks.
fn job(id: JobId, state: &JobState, depth: (u64, u64)) -> Result<Job> {
    let progress = &state.progress;
    let is_finished = progress.finished_at.is_some();
    let phase = match progress.total {
        _ if is_finished => None,
        None => Some(Phase::Planning),
        Some(_) => Some(Phase::Working),
    };
    let total = progress.total.unwrap_or(state.plan.items());
    let waits_for = match depth {
        _ if phase != Some(Phase::Working) => None,
        (0, 0) => Some(
            "items whose messages are not in this queue; the dead-letter queue has messages that SQS moved itself"
                .to_owned(),
        ),
        (waiting, received) => Some(format!(
            "the queue: {} waiting, {} in progress",
            print::count(waiting as i64, "message"),
            print::count(received as i64, "message")
        )),
    };
    Ok(Job {
        id,
        job_type: progress.job_type.clone(),
        status: if is_finished { JobStatus::Completed } else { JobStatus::Processing },
        phase,
        waits_for,
        priority: DEFAULT_PRIORITY,
        request: serde_json::from_value(state.plan.request.clone())?,
        omitted: Default::default(),
        submitted_by: String::new(),
        created_at: progress.created_at,
        started_at: Some(progress.created_at),
        finished_at: progress.finished_at,
        waited: TimeDelta::zero(),
        items: ItemCounts {
            total: total as i64,
            processed: progress.processed as i64,
            skipped: progress.skipped as i64,
            dead: progress.dead as i64,
            conflicts: 0,
        },
        chunks: ChunkCounts::default(),
        outputs: Vec::new(),
        error: None,
    })
}
