//! The last commit of a chunk whose step has an outcome per item: it runs outside of the chunk's slot, so that the
//! step works on another chunk meanwhile.

use crate::execute::chunk_runner::{ChunkRunner, StopReason};
use crate::execute::per_item::{BatchOrigin, PendingItem};
use windlass_connectors::Ledger;
use windlass_core::{Cursor, Outcome};

impl ChunkRunner {
    /// Whether the commit of these outcomes is expected to be the last work on the chunk: nothing failed, now or
    /// before.
    pub(super) fn ends_with(&self, from: &BatchOrigin, outcomes: &[Outcome]) -> bool {
        matches!(from, BatchOrigin::Cursor(Cursor::End, _))
            && self.is_clean()
            && !outcomes.iter().any(|outcome| matches!(outcome, Outcome::Error(_)))
    }

    /// Whether no item is deferred, dead or an exception.
    fn is_clean(&self) -> bool {
        let Ledger { cursor, counts, .. } = &self.ledger;
        counts.add_up() && counts.dead == 0 && cursor.exceptions().is_empty()
    }

    /// Leaves the slot and commits the last outcomes of the chunk. If work is left after that, because of a conflict, a
    /// rejected value or a lost connection, [`ChunkRunner::enter_slot_to_work`] waits for a slot again.
    pub(super) async fn commit_outside_of_slot(
        &mut self,
        batch: Vec<PendingItem>,
        outcomes: Vec<Outcome>,
        from: BatchOrigin,
    ) -> Result<(), StopReason> {
        if let Some(slot) = &self.slot {
            slot.leave();
        }
        self.commit_outcomes(batch, outcomes, from).await
    }

    /// Waits for a free slot, unless the chunk is in one, has lost its lease or only has to be completed. A chunk with
    /// dead letters needs a slot until its end, which may pause or fail the job.
    pub(super) async fn enter_slot_to_work(&self) {
        if self.remaining().is_some() || !self.is_clean() {
            tokio::select! {
                biased;
                () = self.enter_slot() => {}
                () = self.lease_state().lost() => {}
            }
        }
    }

    /// Waits for a free slot, unless the chunk is in one.
    pub(crate) async fn enter_slot(&self) {
        if let Some(slot) = &self.slot {
            slot.enter().await;
        }
    }
}
