//! Dead letters against the items that died, chunk by chunk.

use super::verdict::Notes;
use crate::Result;
use crate::engine::Engine;
use std::cell::Cell;
use std::collections::BTreeMap;
use windlass_core::{Counts, DeadLetterStatus};
use windlass_store::{ChunkRow, DeadLetterFilter, JobSnapshot};

/// How many letters each chunk has.
pub(super) struct Letters {
    of_chunk: BTreeMap<i64, i64>,
    /// Letters of the original job that this redrive has settled; none where it is no redrive.
    reprocessed: Option<i64>,
    /// Whether letters are removed by age.
    may_be_pruned: bool,
    missing: Cell<i64>,
}

/// Letters read at once.
const PAGE: u32 = 1000;

impl Letters {
    pub(super) async fn of(engine: &Engine, snapshot: &JobSnapshot) -> Result<Letters> {
        let is_redrive = snapshot.root != snapshot.id;
        let defined = engine.config().jobs.get(&snapshot.definition.name);
        let may_be_pruned = defined.is_some_and(|defined| defined.retention.dead_letters.is_some());
        let mut letters = Letters {
            of_chunk: BTreeMap::new(),
            reprocessed: is_redrive.then_some(0),
            may_be_pruned,
            missing: Cell::new(0),
        };
        // What dies again in a redrive updates the letter of the original job.
        let job = Some(snapshot.root);
        let mut filter = DeadLetterFilter { job, limit: PAGE, ..DeadLetterFilter::default() };
        loop {
            let page = engine.store().dead_letters(&filter).await?;
            let Some(last) = page.last() else { return Ok(letters) };
            filter.before = Some(last.id);
            for letter in &page {
                match &mut letters.reprocessed {
                    None => *letters.of_chunk.entry(letter.chunk).or_default() += 1,
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

    /// A chunk has as many letters as items died in it.
    pub(super) fn check(&self, chunk: &ChunkRow, notes: &mut Notes) {
        if self.reprocessed.is_some() {
            return;
        }
        let (number, dead) = (chunk.chunk, chunk.counts.dead);
        let letters = self.of_chunk.get(&number).copied().unwrap_or_default();
        if letters < dead && self.may_be_pruned {
            self.missing.set(self.missing.get() + dead - letters);
            return;
        }
        notes.expect(letters == dead, || {
            format!("{dead} items of chunk {number} died, but it has {letters} dead letters")
        });
    }

    /// What the job as a whole says: a redrive has settled a letter for each item it processed.
    pub(super) fn end(&self, counts: Counts, notes: &mut Notes) {
        let missing = match self.reprocessed {
            None => self.missing.get(),
            Some(settled) => (counts.processed - settled).max(0),
        };
        match (missing, self.reprocessed) {
            (0, _) => {}
            (missing, _) if self.may_be_pruned => notes.not_judged(format!(
                "{missing} dead letters are missing; `retention.dead_letters` may have removed them"
            )),
            (_, settled) => notes.finding(format!(
                "the redrive processed {} items, but {} dead letters are reprocessed by it",
                counts.processed,
                settled.unwrap_or_default()
            )),
        }
    }
}
