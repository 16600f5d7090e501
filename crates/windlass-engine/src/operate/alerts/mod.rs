//! Alerts: detects failures in the store, records each as one alert, logs it and posts it to a webhook.
//!
//! Any number of servers may do this concurrently. Raising an alert is an insert that does nothing if the
//! alert exists; posting takes a short lease. All state is in the store, and alerts never delay jobs.

mod deadline;
mod detect;
mod outbox;
mod recent_progress;
mod suspended;
mod webhook;

use crate::Result;
use crate::engine::Engine;
use crate::quiet::Pause;
pub(crate) use deadline::ProgressOfJobs;
use std::time::{Duration, Instant};
use webhook::Webhook;
use windlass_core::{AlertKind, Delivery};
use windlass_store::{Alert, DeliveryAttempt, NewAlert};

/// How often failures are looked up.
const DETECT_INTERVAL: Duration = Duration::from_secs(2);
/// How often they are looked up while the store has no open work. A change is looked up at once.
const QUIET_DETECT_INTERVAL: Duration = Duration::from_secs(30);
/// How often running jobs are compared with their deadlines, and outboxes are read. Less often, because
/// this sums up chunks and queries the databases of applications.
const DEADLINE_INTERVAL: Duration = Duration::from_secs(10);
/// How often alerts to post are looked up.
const POST_INTERVAL: Duration = Duration::from_secs(1);
/// After this time another server may post an alert. Longer than the webhook timeout.
const POST_LEASE: Duration = Duration::from_secs(30);
/// Maximum backoff between two attempts to post.
const MAX_RETRY_WAIT: Duration = Duration::from_secs(300);
/// How long posting is retried.
const RETRY_FOR: Duration = Duration::from_secs(24 * 3600);

impl Engine {
    /// Raises and posts alerts. Runs until the future is dropped.
    pub async fn run_alerts(&self) {
        tokio::join!(self.run_detection(), self.run_posting());
    }

    async fn run_detection(&self) {
        let mut deadlines_checked = None::<Instant>;
        let mut pause = Pause::new(self);
        loop {
            let deadlines = deadlines_checked.is_none_or(|at| at.elapsed() >= DEADLINE_INTERVAL);
            if deadlines {
                deadlines_checked = Some(Instant::now());
            }
            if let Err(error) = self.raise_alerts(deadlines).await {
                tracing::warn!(%error, "failed to detect alerts; retrying");
            }
            pause.wait_at_most(DETECT_INTERVAL, QUIET_DETECT_INTERVAL).await;
        }
    }

    /// Raises all alerts that are due now and ends those that are over; deadlines and outboxes only if
    /// asked. Each alert is raised once, however often this is called.
    ///
    /// # Errors
    /// The store fails.
    pub async fn raise_alerts(&self, deadlines: bool) -> Result<()> {
        self.find_failures().await?;
        self.find_dead_letters().await?;
        self.find_unleasable().await?;
        self.find_suspended().await?;
        if deadlines {
            self.find_late_jobs().await?;
            self.find_refused_requests().await?;
        }
        Ok(())
    }

    /// Raises an alert, and logs it if it is new.
    async fn raise(&self, alert: NewAlert) -> Result<()> {
        if self.store().raise_alert(&alert).await? {
            let NewAlert { kind, job_type, job, message, .. } = alert;
            let job = job.map(|(id, _)| tracing::field::display(id));
            tracing::warn!(%kind, job_type, job, "alert: {message}");
        }
        Ok(())
    }

    /// Ends a condition, and logs that if its alert was raised.
    async fn clear(&self, kind: AlertKind, subject: &str, reason: &str) -> Result<()> {
        if self.store().clear_alert(kind, subject, reason).await? {
            tracing::info!(%kind, "alert cleared: {reason}");
        }
        Ok(())
    }

    async fn run_posting(&self) {
        let webhook = match Webhook::new(&self.config().alerts) {
            Ok(Some(webhook)) => webhook,
            Ok(None) => return,
            Err(error) => {
                return tracing::error!(
                    error,
                    "cannot create the webhook client; alerts are not posted"
                );
            }
        };
        loop {
            match self.store().lease_alert(POST_LEASE).await {
                Ok(Some(alert)) => self.post(&webhook, alert).await,
                Ok(None) => tokio::time::sleep(POST_INTERVAL).await,
                Err(error) => {
                    tracing::warn!(%error, "failed to read alerts to post; retrying");
                    tokio::time::sleep(POST_INTERVAL).await;
                }
            }
        }
    }

    async fn post(&self, webhook: &Webhook, alert: Alert) {
        let failure = webhook.post(&alert).await.err();
        let wait = wait_after(alert.attempts);
        let settled = self.store().settle_alert(DeliveryAttempt {
            id: alert.id,
            attempts: alert.attempts,
            error: failure.clone(),
            wait,
            give_up_after: RETRY_FOR,
        });
        let (id, kind, error) = (alert.id, alert.kind, failure.as_deref().unwrap_or_default());
        match settled.await {
            Ok(Some(Delivery::GivenUp)) => {
                tracing::error!(%id, %kind, error, "alert could not be posted for {RETRY_FOR:?}; giving up");
            }
            Ok(Some(Delivery::Pending)) => {
                tracing::warn!(%id, %kind, error, ?wait, "failed to post alert; retrying");
            }
            Ok(_) if failure.is_none() => tracing::info!(%id, %kind, "alert posted"),
            // Another server has taken over this alert.
            Ok(_) => {}
            Err(error) => tracing::warn!(%id, %error,
                "failed to record the delivery of an alert; it will be posted again with the same id"),
        }
    }
}

/// The backoff after this number of attempts: doubles each time up to the maximum.
fn wait_after(attempts: u32) -> Duration {
    let doubled = 1 << attempts.saturating_sub(1).min(16);
    Duration::from_secs(doubled).min(MAX_RETRY_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_doubles_up_to_the_maximum() {
        let waits: Vec<_> = [1, 2, 5, 9, 10, 500].map(|n| wait_after(n).as_secs()).into();
        assert_eq!(waits, [1, 2, 16, 256, 300, 300]);
    }
}
