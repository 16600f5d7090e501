//! What goes wrong, as the store shows it: jobs that failed, budgets exceeded, letters that pile up,
//! and work that nobody can take.

use crate::Result;
use crate::engine::Engine;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_core::{AlertKind, Job};
use windlass_html::format::count;
use windlass_store::{NewAlert, Occurrence, Unclaimable};

/// What failed longer ago while no server was there is not told any more. Alerts are kept for
/// longer, so that none is raised again.
const WINDOW: Duration = Duration::from_secs(7 * 24 * 3600);
/// Occurrences taken up at a time.
const MOST: u32 = 100;
/// Letters are counted up to here where an alert says how many there are.
const MOST_LETTERS: i64 = 100_000;
/// Of an error, so many letters are told.
const MOST_TEXT: usize = 500;

impl Engine {
    /// Jobs that failed, and those that exceeded their budget.
    pub(super) async fn find_failures(&self) -> Result<()> {
        for found in self.store().occurrences(WINDOW, MOST).await? {
            let job = self.store().job(found.job).await?;
            let mut details = job.as_ref().map_or_else(|| json!({}), standing);
            details["happenedAt"] = json!(found.at);
            let Occurrence { kind, subject, job, job_type, submitted_by, error, .. } = found;
            let what = match kind {
                AlertKind::BudgetExceeded => "exceeded its failure budget",
                _ => "failed",
            };
            let why = error.map(|error| format!(": {}", beginning(&error))).unwrap_or_default();
            self.raise(NewAlert {
                kind,
                subject,
                message: format!("job {job} of {job_type} {what}{why}"),
                job_type,
                job: Some((job, submitted_by)),
                details,
                above: None,
                after: Duration::ZERO,
                post: self.config().alerts.posts(kind),
            })
            .await?;
        }
        Ok(())
    }

    /// Job types with more letters than the limit.
    pub(super) async fn find_dead_letters(&self) -> Result<()> {
        let kind = AlertKind::DeadLetters;
        let limit = i64::from(self.config().alerts.dead_letters);
        let open = self.store().open_alerts(kind).await?;
        // By its own limit an alert is over: servers with other files do not take turns with it.
        let most = open.iter().map(|(_, above)| *above).fold(limit, i64::max);
        let counts: BTreeMap<_, _> =
            self.store().letters_by_type(most.saturating_add(1)).await?.into_iter().collect();
        for (job_type, above) in &open {
            if counts.get(job_type).copied().unwrap_or_default() <= *above {
                self.store().clear_alert(kind, job_type).await?;
            }
        }
        let known = |job_type: &String| open.iter().any(|(known, _)| known == job_type);
        let mut new = counts.iter().filter(|(name, count)| **count > limit && !known(name));
        if new.next().is_none() {
            return Ok(());
        }
        for (job_type, letters) in self.store().letters_by_type(MOST_LETTERS).await? {
            if letters > limit && !known(&job_type) {
                let details = json!({"letters": letters, "limit": limit});
                let count = count(letters, "dead letter", "dead letters");
                let message = format!("{job_type} has {count}, above the limit of {limit}");
                self.raise(self.condition(kind, job_type, message, details, limit)).await?;
            }
        }
        Ok(())
    }

    /// Job types whose work waits, and no process is there that could take it.
    pub(super) async fn find_unworked(&self) -> Result<()> {
        let kind = AlertKind::NoWorker;
        let unclaimable = self.store().unclaimable().await?;
        for (job_type, _) in self.store().open_alerts(kind).await? {
            if unclaimable.iter().all(|found| found.job_type != job_type) {
                self.store().clear_alert(kind, &job_type).await?;
            }
        }
        let after = self.config().alerts.no_worker;
        for Unclaimable { job_type, jobs, connection, handler } in unclaimable {
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
            self.raise(NewAlert { after, ..alert }).await?;
        }
        Ok(())
    }

    /// An alert that holds for as long as the number of a job type is above the limit.
    fn condition(
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
            above: Some(limit),
            after: Duration::ZERO,
            post: self.config().alerts.posts(kind),
        }
    }
}

/// Where a job stands, for whoever reads an alert.
pub(super) fn standing(job: &Job) -> Json {
    json!({"status": job.status, "submittedBy": job.submitted_by, "items": job.items, "chunks": job.chunks})
}

/// The beginning of an error: an alert is read on a telephone.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(MOST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
