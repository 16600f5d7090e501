//! Records the plan of a job whose job type counts its items (`queue.progress`).

use crate::completion::complete;
use crate::page::EnqueuePlan;
use crate::{Error, Events, Invocation, Result, State};
use windlass_connectors::dynamodb::SegmentPlan;
use windlass_core::PaginationState;

/// The segment of a request that lists its ids.
pub(crate) const IDS: &str = "ids";

impl EnqueuePlan {
    /// The name of a segment, the same in all its states.
    pub(crate) fn segment(&self, state: &State) -> String {
        match &state.0 {
            PaginationState::TableScan { segment, .. } => segment.to_string(),
            PaginationState::IndexQuery { filter, remaining_values, .. } => {
                let value = remaining_values.first();
                match value.filter(|_| self.scope.job_type.queue.side_by_side) {
                    Some(value) => format!("{filter}={}", value.to_text().unwrap_or_default()),
                    None => filter.clone(),
                }
            }
            PaginationState::Plan | PaginationState::Merge => String::new(),
        }
    }

    /// Records the job before anything is sent.
    pub(crate) async fn begin(&self, asked: &Invocation, segments: &[String]) -> Result<()> {
        if !self.scope.job_type.queue.progress {
            return Ok(());
        }
        let request = serde_json::to_value(&asked.request).unwrap_or_default();
        let name = &self.scope.job_type.name;
        let begun = self.records.begin_job(asked.job, name, &request, segments).await;
        begun.map_err(Error::data(format!("the job {}", asked.job)))
    }

    /// Records what was sent of a segment. Ends the job if that was the last item of all, and it has ended.
    pub(crate) async fn planned(
        &self,
        asked: &Invocation,
        segment: &str,
        plan: SegmentPlan,
        events: Option<&Events>,
    ) -> Result<()> {
        if !self.scope.job_type.queue.progress {
            return Ok(());
        }
        let progress = self.records.plan_segment(asked.job, segment, plan).await;
        let progress = progress.map_err(Error::data(format!("the job {}", asked.job)))?;
        complete(&self.records, events, asked.job, progress).await
    }
}
