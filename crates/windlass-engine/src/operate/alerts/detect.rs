//! Detects what alerts are raised for: failed jobs, exceeded failure budgets, too many dead letters, and
//! jobs that no worker can process.

use crate::Result;
use crate::engine::Engine;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_core::{AlertKind, Job, JobStatus};
use windlass_store::{NewAlert, Occurrence, Unleasable};

/// Failures older than this raise no alert. Alerts are kept for longer, so that none is raised twice.
const DETECTION_WINDOW: Duration = Duration::from_secs(7 * 24 * 3600);
/// Failures read per round.
const MAX_OCCURRENCES: u32 = 100;
/// Dead letters are counted up to this number.
const MAX_DEAD_LETTERS_COUNTED: i64 = 100_000;
/// Characters of an error that an alert shows.
const MAX_ERROR_CHARS: usize = 500;

impl Engine {
    /// Finds jobs that failed, and jobs that exceeded their failure budget.
    pub(super) async fn find_failures(&self) -> Result<()> {
        for found in self.store().occurrences(DETECTION_WINDOW, MAX_OCCURRENCES).await? {
            let job = self.store().job(found.job).await?;
            let status = job.as_ref().map(|job| job.status);
            let mut details = job.as_ref().map_or_else(|| json!({}), job_summary);
            details["happenedAt"] = json!(found.at);
            let Occurrence { kind, subject, job, job_type, submitted_by, error, .. } = found;
            let has_failed = status == Some(JobStatus::Failed);
            // The error of a job that exceeded its budget says so.
            let what = match (kind, has_failed, &error) {
                (AlertKind::BudgetExceeded, false, Some(_)) => "was paused",
                (AlertKind::BudgetExceeded, false, None) => "exceeded its failure budget",
                _ => "failed",
            };
            let why = error.map(|error| format!(": {}", truncate(&error))).unwrap_or_default();
            let alerts = &self.config().alerts;
            let post = alerts.posts(kind) || has_failed && alerts.posts(AlertKind::JobFailed);
            self.raise(NewAlert {
                kind,
                subject,
                message: format!("job {job} of {job_type} {what}{why}"),
                job_type,
                job: Some((job, submitted_by)),
                details,
                threshold: None,
                sustained_for: Duration::ZERO,
                post,
            })
            .await?;
        }
        Ok(())
    }

    /// Finds job types with more dead letters than the limit.
    pub(super) async fn find_dead_letters(&self) -> Result<()> {
        let kind = AlertKind::DeadLetters;
        let limit = i64::from(self.config().alerts.dead_letters);
        let open = self.store().open_alerts(kind).await?;
        // An open alert is cleared by the limit it was raised with, so that servers with different
        // limits do not raise and clear it in turn.
        let most = open.iter().map(|(_, above)| *above).fold(limit, i64::max);
        let counts: BTreeMap<_, _> =
            self.store().count_dead_letters(most.saturating_add(1)).await?.into_iter().collect();
        for (job_type, above) in &open {
            let letters = counts.get(job_type).copied().unwrap_or_default();
            if letters <= *above {
                let count = count(letters, "open dead letter", "open dead letters");
                let reason = format!("{job_type} has {count}, within the limit of {above}");
                self.clear(kind, job_type, &reason).await?;
            }
        }
        let known = |job_type: &String| open.iter().any(|(known, _)| known == job_type);
        let mut new = counts.iter().filter(|(name, count)| **count > limit && !known(name));
        if new.next().is_none() {
            return Ok(());
        }
        for (job_type, letters) in self.store().count_dead_letters(MAX_DEAD_LETTERS_COUNTED).await?
        {
            if letters > limit && !known(&job_type) {
                let details = json!({"letters": letters, "limit": limit});
                let count = count(letters, "dead letter", "dead letters");
                let message = format!("{job_type} has {count}, above the limit of {limit}");
                self.raise(self.condition(kind, job_type, message, details, limit)).await?;
            }
        }
        Ok(())
    }

    /// Finds job types with waiting jobs that no running worker can process.
    pub(super) async fn find_unleasable(&self) -> Result<()> {
        let kind = AlertKind::NoWorker;
        let unleasable = self.store().unleasable().await?;
        for (job_type, _) in self.store().open_alerts(kind).await? {
            if unleasable.iter().all(|found| found.job_type != job_type) {
                let reason = format!("{job_type} has a worker, or no waiting jobs");
                self.clear(kind, &job_type, &reason).await?;
            }
        }
        let after = self.config().alerts.no_worker;
        for Unleasable { job_type, jobs, connection, handler } in unleasable {
            let needs = match &handler {
                Some(handler) => format!("connection `{connection}` and handler `{handler}`"),
                None => format!("connection `{connection}`"),
            };
            let waiting = count(jobs, "job is", "jobs are");
            let message = format!(
                "no worker has been available for {job_type} for {after:?}: {waiting} waiting for a worker \
                 with {needs}"
            );
            let details = json!({"jobs": jobs, "connection": connection, "handler": handler});
            let alert = self.condition(kind, job_type, message, details, 0);
            self.raise(NewAlert { sustained_for: after, ..alert }).await?;
        }
        Ok(())
    }

    /// An alert that stays open while a number of a job type is above the limit.
    pub(super) fn condition(
        &self,
        kind: AlertKind,
        job_type: String,
        message: String,
        details: Json,
        limit: i64,
    ) -> NewAlert {
        NewAlert {
            kind,
            subject: job_type.clone(),
            job_type,
            job: None,
            message,
            details,
            threshold: Some(limit),
            sustained_for: Duration::ZERO,
            post: self.config().alerts.posts(kind),
        }
    }
}

/// The status and counts of a job, for the details of an alert.
pub(super) fn job_summary(job: &Job) -> Json {
    json!({"status": job.status, "submittedBy": job.submitted_by, "items": job.items, "chunks": job.chunks})
}

/// Truncates an error, because alerts are read on small screens.
pub(super) fn truncate(text: &str) -> String {
    match text.char_indices().nth(MAX_ERROR_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A number with the form of its noun.
pub(super) fn count(n: i64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
