//! Raises alerts for job types that their circuit breaker has suspended, and ends them when work continues.

use crate::Result;
use crate::engine::Engine;
use serde_json::json;
use windlass_core::AlertKind;
use windlass_store::NewAlert;

impl Engine {
    /// Finds job types that are suspended. Between two attempts of the step the suspension has expired
    /// for a moment, so the alert ends only when the step has worked again.
    pub(super) async fn find_suspended(&self) -> Result<()> {
        let kind = AlertKind::Suspended;
        let open = self.store().open_alerts(kind).await?;
        for (job_type, _) in &open {
            if self.store().has_recovered(job_type).await? {
                let reason = format!("{job_type} is no longer suspended");
                self.clear(kind, job_type, &reason).await?;
            }
        }
        let after = self.config().alerts.suspended;
        for control in self.store().controls().await? {
            // Connections and jobs have controls too.
            let is_job_type = self.config().jobs.contains_key(&control.subject);
            if let Some(reason) = control.suspended.filter(|_| is_job_type) {
                let job_type = control.subject;
                let message = format!("{job_type}: {reason}");
                let details = json!({"reason": reason});
                let alert = self.condition(kind, job_type, message, details, 0);
                self.raise(NewAlert { sustained_for: after, ..alert }).await?;
            }
        }
        Ok(())
    }
}
