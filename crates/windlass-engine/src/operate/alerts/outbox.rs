//! Raises alerts for requests that stay in an outbox because they are refused.

use super::detect::{count, truncate};
use crate::Result;
use crate::engine::Engine;
use serde_json::json;
use std::collections::BTreeMap;
use windlass_connectors::Waiting;
use windlass_core::AlertKind;
use windlass_store::NewAlert;

/// Rows read per outbox, oldest first. Refused rows stay, so they are among the oldest.
const MAX_ROWS: u32 = 1000;

impl Engine {
    /// Finds refused requests in all outboxes: one alert per connection and job type. An outbox that
    /// cannot be read is skipped; the relay logs why.
    pub(super) async fn find_refused_requests(&self) -> Result<()> {
        for connection in self.outboxes() {
            match self.waiting(connection, MAX_ROWS).await {
                Ok(rows) => {
                    self.check_outbox(connection, &rows.unwrap_or_default()).await?;
                }
                Err(error) => {
                    tracing::debug!(connection, %error, "cannot read the outbox for alerts");
                }
            }
        }
        Ok(())
    }

    async fn check_outbox(&self, connection: &str, rows: &[Waiting]) -> Result<()> {
        let kind = AlertKind::OutboxRefused;
        let mut refused: BTreeMap<&str, (i64, &str)> = BTreeMap::new();
        for row in rows {
            if let Some(error) = &row.error {
                refused.entry(&row.job_type).or_insert((0, error)).0 += 1;
            }
        }
        let prefix = format!("{connection}/");
        let is_complete = rows.len() < MAX_ROWS as usize;
        for (subject, _) in self.store().open_alerts(kind).await? {
            let Some(job_type) = subject.strip_prefix(&prefix) else { continue };
            if is_complete && !refused.contains_key(job_type) {
                let reason =
                    format!("the outbox of `{connection}` has no refused requests for {job_type}");
                self.clear(kind, &subject, &reason).await?;
            }
        }
        for (job_type, (requests, error)) in refused {
            let are_refused = count(requests, "request is", "requests are");
            let message = format!(
                "{are_refused} refused in the outbox of `{connection}` for {job_type}: {}",
                truncate(error)
            );
            let details =
                json!({"connection": connection, "requests": requests, "error": truncate(error)});
            let alert = self.condition(kind, job_type.to_owned(), message, details, 0);
            self.raise(NewAlert { subject: format!("{prefix}{job_type}"), ..alert }).await?;
        }
        Ok(())
    }
}
