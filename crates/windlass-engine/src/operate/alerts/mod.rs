//! Alerts: what goes wrong is found in the store, raised there once, said in the log, and posted.
//!
//! Any number of servers look and post beside each other. Raising is an insert that does nothing
//! where the occurrence is there already; posting is a short lease. Nothing here is in the way of
//! work, and nothing of it is only in memory.

mod deadline;
mod detect;
mod webhook;

use crate::Result;
use crate::engine::Engine;
use std::time::{Duration, Instant};
use webhook::Poster;
use windlass_core::Delivery;
use windlass_store::{Alert, NewAlert};

/// How often it looks.
const ROUND: Duration = Duration::from_secs(2);
/// How often running jobs are held against their deadlines, which adds up their chunks.
const PROJECTING: Duration = Duration::from_secs(10);
/// How often it looks for something to post.
const POSTING: Duration = Duration::from_secs(1);
/// Whoever takes an alert and is gone for so long has not posted it. Longer than a post takes.
const LEASE: Duration = Duration::from_secs(30);
/// The longest wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// For so long an alert is tried to be posted.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

impl Engine {
    /// Raises and posts alerts, for as long as it is polled.
    pub async fn keep_alerts(&self) {
        tokio::join!(self.raise_alerts(), self.post_alerts());
    }

    async fn raise_alerts(&self) {
        let mut projected = None::<Instant>;
        loop {
            let deadlines = projected.is_none_or(|at| at.elapsed() >= PROJECTING);
            if deadlines {
                projected = Some(Instant::now());
            }
            if let Err(error) = self.look_for_alerts(deadlines).await {
                tracing::warn!(%error, "cannot look what went wrong; trying again");
            }
            tokio::time::sleep(ROUND).await;
        }
    }

    /// Raises what there is to raise now, each alert once however often this is called.
    pub async fn look_for_alerts(&self, deadlines: bool) -> Result<()> {
        self.find_failures().await?;
        self.find_dead_letters().await?;
        self.find_unworked().await?;
        if deadlines { self.find_late_jobs().await } else { Ok(()) }
    }

    /// Raises an alert, and says so in the log if nobody has before.
    async fn raise(&self, alert: NewAlert) -> Result<()> {
        if self.store().raise_alert(&alert).await? {
            let NewAlert { kind, job_type, job, message, .. } = alert;
            let job = job.map(|(id, _)| tracing::field::display(id));
            tracing::warn!(%kind, job_type, job, "alert: {message}");
        }
        Ok(())
    }

    async fn post_alerts(&self) {
        let poster = match Poster::new(&self.config().alerts) {
            Ok(Some(poster)) => poster,
            Ok(None) => return,
            Err(error) => return tracing::error!(error, "alerts cannot be posted"),
        };
        loop {
            match self.store().claim_alert(LEASE).await {
                Ok(Some(alert)) => self.post(&poster, alert).await,
                Ok(None) => tokio::time::sleep(POSTING).await,
                Err(error) => {
                    tracing::warn!(%error, "cannot look for alerts to post; trying again");
                    tokio::time::sleep(POSTING).await;
                }
            }
        }
    }

    async fn post(&self, poster: &Poster, alert: Alert) {
        let refused = poster.post(&alert).await.err();
        let wait = wait_after(alert.attempts);
        let settled =
            self.store().settle_alert(alert.id, alert.attempts, refused.as_deref(), wait, PATIENCE);
        let (id, kind, error) = (alert.id, alert.kind, refused.as_deref().unwrap_or_default());
        match settled.await {
            Ok(Some(Delivery::GivenUp)) => {
                tracing::error!(%id, %kind, error, "GIVEN UP: an alert could not be posted");
            }
            Ok(Some(Delivery::Pending)) => {
                tracing::warn!(%id, %kind, error, ?wait, "an alert cannot be posted; trying again");
            }
            Ok(_) => {}
            // Its lease runs out, and it is posted again under the same id.
            Err(error) => {
                tracing::warn!(%id, %error, "the store did not take what came of an alert")
            }
        }
    }
}

/// The wait after so many attempts: twice as long each time, as far as it goes.
fn wait_after(attempts: u32) -> Duration {
    let doubled = 1 << attempts.saturating_sub(1).min(16);
    Duration::from_secs(doubled).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_are_bounded() {
        let waits: Vec<_> = [1, 2, 5, 9, 10, 500].map(|n| wait_after(n).as_secs()).into();
        assert_eq!(waits, [1, 2, 16, 256, 300, 300]);
    }
}
