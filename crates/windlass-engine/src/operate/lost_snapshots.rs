//! Jobs whose read snapshot is lost: they are read again under a new snapshot, or fail.

use crate::Result;
use crate::engine::Engine;
use std::time::Duration;
use windlass_store::LostReadSnapshot;

/// A job whose snapshot was taken within this time is read again, however much was read.
const READ_AGAIN_WITHIN: Duration = Duration::from_secs(600);
/// A job that loses this many snapshots fails.
const MAX_LOSSES: i64 = 10;

/// Reads the jobs again whose snapshot is lost, or fails them.
pub(super) async fn handle(engine: &Engine) -> Result<()> {
    let store = engine.store();
    for lost in store.lost_read_snapshots().await? {
        let LostReadSnapshot { job, number, completed, chunks, .. } = lost;
        if may_read_again(&lost) {
            if store.read_again(job, number).await? {
                let worker = &lost.worker;
                tracing::warn!(%job, worker, completed, chunks, "the read snapshot of the job is lost; the job is read again under a new one");
            }
        } else {
            let reason = reason(&lost);
            if store.fail_read(job, number, &reason).await? {
                tracing::error!(%job, "{reason}");
            }
        }
    }
    Ok(())
}

/// Whether less than half of the job is read, or it was read fast.
fn may_read_again(lost: &LostReadSnapshot) -> bool {
    let is_little = lost.completed * 2 < lost.chunks || lost.age < READ_AGAIN_WITHIN;
    is_little && lost.losses + 1 < MAX_LOSSES
}

fn reason(lost: &LostReadSnapshot) -> String {
    let LostReadSnapshot { job, server, worker, completed, chunks, losses, .. } = lost;
    let times = match losses {
        0 => String::new(),
        losses => format!(", as {losses} snapshots before it"),
    };
    format!(
        "the read snapshot of the job is lost: worker {worker}, which held it on {server}, has ended or lost its \
         connection when {completed} of {chunks} chunks were read{times}; `windlass retry {job}` reads all of them \
         again under a new snapshot; with source.consistency = \"chunk\" each chunk is read at its own instant and \
         none is read again"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_read_again_before_half_of_it_or_soon() {
        let lost = |completed, minutes: u64, losses| LostReadSnapshot {
            job: windlass_core::JobId::default(),
            number: 1,
            server: "primary".to_owned(),
            worker: "w".to_owned(),
            losses,
            chunks: 100,
            completed,
            age: Duration::from_secs(60 * minutes),
        };
        assert!(may_read_again(&lost(49, 600, 0)));
        assert!(may_read_again(&lost(99, 9, 8)));
        assert!(!may_read_again(&lost(50, 10, 0)));
        assert!(!may_read_again(&lost(0, 0, 9)));
        assert!(reason(&lost(63, 10, 0)).contains("63 of 100 chunks"));
    }
}
