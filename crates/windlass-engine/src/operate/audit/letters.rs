//! Checks the dead letters against the dead items, chunk by chunk.

use super::verdict::Findings;
use crate::Result;
use crate::engine::Engine;
use std::cell::Cell;
use std::collections::BTreeMap;
use windlass_core::{Counts, DeadLetterStatus};
use windlass_store::{ChunkRow, DeadLetterFilter, JobSnapshot};

/// The dead letters of a job.
pub(super) struct DeadLetterCheck {
    /// Number of dead letters per chunk.
    per_chunk: BTreeMap<i64, i64>,
    /// Dead letters of the original job that this redrive has reprocessed; `None` if the job is no redrive.
    reprocessed: Option<i64>,
    /// Whether dead letters are pruned by age.
    may_be_pruned: bool,
    /// Whether the original job of this redrive was pruned, and its letters with it. A job is pruned only when none of
    /// its letters is `new`.
    root_was_pruned: bool,
    missing: Cell<i64>,
}

/// Dead letters read per page.
const LETTERS_PER_PAGE: u32 = 1000;

impl DeadLetterCheck {
    pub(super) async fn load(engine: &Engine, snapshot: &JobSnapshot) -> Result<DeadLetterCheck> {
        let is_redrive = snapshot.root != snapshot.id;
        let defined = engine.config().jobs.get(&snapshot.definition.name);
        let may_be_pruned = defined.is_some_and(|defined| defined.retention.dead_letters.is_some());
        let mut letters = DeadLetterCheck {
            per_chunk: BTreeMap::new(),
            reprocessed: is_redrive.then_some(0),
            may_be_pruned,
            root_was_pruned: engine.store().status(snapshot.root).await?.is_none(),
            missing: Cell::new(0),
        };
        // An item that fails again in a redrive updates the dead letter of the original job.
        let job = Some(snapshot.root);
        let mut filter =
            DeadLetterFilter { job, limit: LETTERS_PER_PAGE, ..DeadLetterFilter::default() };
        loop {
            let page = engine.store().dead_letters(&filter).await?;
            let Some(last) = page.last() else { return Ok(letters) };
            filter.before = Some(last.id);
            for letter in &page {
                match &mut letters.reprocessed {
                    None => *letters.per_chunk.entry(letter.chunk).or_default() += 1,
                    Some(settled)
                        if letter.redrive_job == Some(snapshot.id)
                            && letter.status == DeadLetterStatus::Reprocessed =>
                    {
                        *settled += 1;
                    }
                    Some(_) => {}
                }
            }
        }
    }

    /// Checks that a chunk has as many dead letters as dead items.
    pub(super) fn check(&self, chunk: &ChunkRow, findings: &mut Findings) {
        if self.reprocessed.is_some() {
            return;
        }
        let (number, dead) = (chunk.chunk, chunk.counts.dead);
        let letters = self.per_chunk.get(&number).copied().unwrap_or_default();
        if letters < dead && self.may_be_pruned {
            self.missing.set(self.missing.get() + dead - letters);
            return;
        }
        findings.require(letters == dead, || {
            format!("chunk {number} has {dead} dead items, but {letters} dead letters")
        });
    }

    /// After the last chunk: checks that a redrive has reprocessed one dead letter per processed item.
    pub(super) fn end(&self, counts: Counts, findings: &mut Findings) {
        if self.root_was_pruned {
            return;
        }
        let missing = match self.reprocessed {
            None => self.missing.get(),
            Some(settled) => (counts.processed - settled).max(0),
        };
        match (missing, self.reprocessed) {
            (0, _) => {}
            (missing, _) if self.may_be_pruned => findings.not_judged(format!(
                "{missing} dead letters are missing; `retention.dead_letters` may have pruned them"
            )),
            (_, settled) => findings.contradiction(format!(
                "the redrive processed {} items, but {} dead letters are marked as reprocessed by it",
                counts.processed,
                settled.unwrap_or_default()
            )),
        }
    }
}
