//! The end of a job: recorded once, and announced at least once.
//!
//! The invocation that counts the last item, or that plans the last segment when all items have ended already, records
//! the end and then sends the event. If that fails, the messages or the invocation are delivered again, and the check is repeated: a
//! job that has ended and is not announced is announced then.

use crate::sources::Sources;
use crate::{Error, Events, Result};
use windlass_connectors::dynamodb::{JobPlan, JobProgress, Records};
use windlass_core::{Config, JobId};

/// A job as `windlass job --queue` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobState {
    /// Its counters.
    pub progress: JobProgress,
    /// Its plan.
    pub plan: JobPlan,
}

/// The progress of a job that a queue works. `None` if no connection knows it.
pub async fn job_progress(config: Config, job: JobId) -> Result<Option<JobState>> {
    let sources = Sources::new(config);
    for records in sources.all_counted().await? {
        let doing = || Error::data(format!("the job {job}"));
        let Some(progress) = records.progress(job).await.map_err(doing())? else { continue };
        let Some(plan) = records.plan(job).await.map_err(doing())? else { continue };
        return Ok(Some(JobState { progress, plan }));
    }
    Ok(None)
}

/// Ends and announces a job if all its items have ended.
pub(crate) async fn complete(
    records: &Records,
    events: Option<&Events>,
    job: JobId,
    progress: Option<JobProgress>,
) -> Result<()> {
    let doing = || Error::data(format!("the end of the job {job}"));
    let Some(mut progress) = progress.filter(JobProgress::is_complete) else { return Ok(()) };
    if progress.finished_at.is_none() {
        let Some(finished) = records.finish_job(job).await.map_err(doing())? else {
            return Ok(());
        };
        progress = finished;
        let JobProgress { processed, skipped, dead, .. } = progress;
        tracing::info!(%job, processed, skipped, dead, "job completed");
    }
    let Some(events) = events.filter(|_| !progress.is_announced) else { return Ok(()) };
    events.announce(job, &progress).await?;
    records.announced(job).await.map_err(doing())
}
