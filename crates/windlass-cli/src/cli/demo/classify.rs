//! The demo's handler: classifies one transaction at a time. While the demo's writer runs, the handler waits for
//! it at a few records, so that a write falls between the read and the write of these records in every run.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::sync::oneshot;
use windlass::{Builder, Config, ItemContext, ItemError, Outcome};
use windlass_core::StepKind;

/// The name of the handler in the demo's configuration.
const NAME: &str = "windlass demo";

/// The longest wait of a record for the writer.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// A transaction, as far as the handler needs it.
#[derive(serde::Deserialize)]
struct Transaction {
    id: i64,
    amount: i64,
}

/// A record at which the handler waits until the writer has changed it.
pub(super) struct WaitPoint {
    pub(super) id: i64,
    pub(super) written: oneshot::Sender<()>,
}

/// The records at which the handler still has to wait, and the way to the writer.
struct WaitPoints {
    ids: HashSet<i64>,
    writer: Sender<WaitPoint>,
}

static WAIT_POINTS: Mutex<Option<WaitPoints>> = Mutex::new(None);

/// Registers the handler if a job type uses it. Every command does this, since the demo's folder stays.
pub(in crate::cli) fn register(config: &Config, builder: Builder) -> Builder {
    let uses = |kind: &StepKind| matches!(kind, StepKind::Handler(name) if name == NAME);
    match config.jobs.values().any(|job_type| uses(&job_type.step.kind)) {
        true => builder.handler(NAME, classify),
        false => builder,
    }
}

/// From now on the handler waits for the writer at these records, once each.
pub(super) fn wait_at(ids: HashSet<i64>) -> Receiver<WaitPoint> {
    let (writer, wait_points) = channel();
    *WAIT_POINTS.lock() = Some(WaitPoints { ids, writer });
    wait_points
}

async fn classify(transaction: Transaction, _: ItemContext) -> Result<Outcome, ItemError> {
    if let Some(written) = wait_point(transaction.id) {
        // Without an answer the record is classified all the same.
        let _ = tokio::time::timeout(MAX_WAIT, written).await;
    }
    let class = match transaction.amount {
        ..=1_000 => "small",
        1_001..=50_000 => "medium",
        _ => "large",
    };
    Ok(Outcome::set("class", class))
}

/// Tells the writer that a record has been read, if it is one of those at which the handler waits.
fn wait_point(id: i64) -> Option<oneshot::Receiver<()>> {
    let mut wait_points = WAIT_POINTS.lock();
    let wait_points = wait_points.as_mut().filter(|wait_points| wait_points.ids.contains(&id))?;
    wait_points.ids.remove(&id);
    let (written, answer) = oneshot::channel();
    wait_points.writer.send(WaitPoint { id, written }).ok()?;
    Some(answer)
}
