//! The ledger against the store: a row for each chunk, at its end, with the same counts.

use super::verdict::Notes;
use crate::engine::Engine;
use std::collections::VecDeque;
use std::sync::Arc;
use windlass_connectors::{LedgerRow, Target};
use windlass_core::{Cursor, JobId, Load};
use windlass_store::{ChunkRow, JobSnapshot, MERGED};

/// Walks through the ledger beside the chunks.
pub(super) struct LedgerCheck<'a> {
    engine: &'a Engine,
    job: JobId,
    /// Where the ledger is; none where the step only reads, or when it could not be read.
    target: Option<Arc<dyn Target>>,
    load: Option<&'a Load>,
    /// Whether the ledger may be pruned by now.
    expired: bool,
    rows: VecDeque<LedgerRow>,
    after: i64,
    compared: i64,
    pruned: bool,
    problem: Option<String>,
}

/// Ledger rows read at once.
const PAGE: u32 = 500;

impl<'a> LedgerCheck<'a> {
    /// `loads` tells whether the job had to load what `load` names.
    pub(super) fn new(
        engine: &'a Engine,
        snapshot: &'a JobSnapshot,
        loads: bool,
        expired: bool,
    ) -> LedgerCheck<'a> {
        let definition = &snapshot.definition;
        let (mut target, mut problem) = (None, None);
        if !definition.step.kind.makes_parts() {
            match engine.target_of(definition) {
                Ok(found) => target = Some(found),
                Err(error) => problem = Some(error.to_string()),
            }
        }
        LedgerCheck {
            engine,
            job: snapshot.id,
            target,
            load: definition.load.as_ref().filter(|_| loads),
            expired,
            rows: VecDeque::new(),
            // What is before the first chunk is the row of a load.
            after: MERGED,
            compared: 0,
            pruned: false,
            problem,
        }
    }

    /// How many rows were compared.
    pub(super) fn compared(&self) -> i64 {
        self.compared
    }

    /// Compares the rows of some chunks, in order.
    pub(super) async fn page(&mut self, chunks: &[ChunkRow], notes: &mut Notes) {
        for chunk in chunks {
            let number = chunk.chunk;
            // Rows of chunks that the store does not have.
            while let Some(row) = self.next_before(number).await {
                unknown(&row, notes);
            }
            match self.take_if(|of| of == number) {
                Some(row) => self.compare(chunk, &row, notes),
                None if self.target.is_none() => return,
                None if self.expired => self.pruned = true,
                None => notes.finding(format!("the ledger has no row of chunk {number}")),
            }
        }
    }

    /// After the last chunk: the ledger has no more rows, and the load has its own.
    pub(super) async fn end(&mut self, notes: &mut Notes) {
        while let Some(row) = self.next_before(i64::MAX).await {
            unknown(&row, notes);
        }
        if let Some(load) = self.load {
            self.loaded(load, notes).await;
        }
        if self.pruned {
            notes.not_judged(
                "ledger rows are missing: they are pruned when a job has ended longer ago than \
                 `retention.chunks`",
            );
        }
        if let Some(problem) = self.problem.take() {
            notes.not_judged(format!("the ledger could not be read: {problem}"));
        }
    }

    /// The next row of a chunk before this one. When the ledger cannot be read there are none.
    async fn next_before(&mut self, chunk: i64) -> Option<LedgerRow> {
        if self.rows.is_empty()
            && let Some(target) = &self.target
        {
            match target.ledger_rows(self.job, self.after, PAGE).await {
                Ok(rows) => self.rows.extend(rows),
                Err(error) => {
                    self.problem = Some(error.to_string());
                    self.target = None;
                }
            }
            self.after = self.rows.back().map_or(self.after, |row| row.ledger.chunk.number);
        }
        self.take_if(|number| number < chunk)
    }

    fn take_if(&mut self, wanted: impl FnOnce(i64) -> bool) -> Option<LedgerRow> {
        let first = self.rows.front()?.ledger.chunk.number;
        if wanted(first) { self.rows.pop_front() } else { None }
    }

    fn compare(&mut self, chunk: &ChunkRow, row: &LedgerRow, notes: &mut Notes) {
        self.compared += 1;
        let (number, ledger) = (chunk.chunk, &row.ledger);
        notes.expect(ledger.cursor == Cursor::End, || {
            let cursor = ledger.cursor.to_text();
            format!("the ledger's cursor of chunk {number} is {cursor}, not at its end")
        });
        notes.expect(ledger.epoch == chunk.epoch, || {
            let (ledger, store) = (ledger.epoch, chunk.epoch);
            format!("the ledger has chunk {number} at epoch {ledger}, the store at {store}")
        });
        notes.expect(ledger.counts == chunk.counts, || {
            let (ledger, store) = (ledger.counts, chunk.counts);
            format!(
                "the ledger counts {} rows read, {} processed, {} skipped, {} dead and {} \
                 conflicts for chunk {number}, the store {}, {}, {}, {} and {}",
                ledger.read,
                ledger.processed,
                ledger.skipped,
                ledger.dead,
                ledger.conflicts,
                store.read,
                store.processed,
                store.skipped,
                store.dead,
                store.conflicts
            )
        });
        notes.expect(row.deferred == 0, || {
            format!("{} items of chunk {number} still wait for another try", row.deferred)
        });
        let rows = [
            ("dead items", ledger.counts.dead, row.dead),
            ("emitted rows", row.emitted, row.emitted_rows),
        ];
        for (name, counted, found) in rows {
            if found < counted && self.expired {
                self.pruned = true;
                continue;
            }
            notes.expect(found == counted, || {
                format!("the ledger counts {counted} {name} of chunk {number}, but has {found}")
            });
        }
    }

    /// The row of the load, beside the loaded table.
    async fn loaded(&mut self, load: &Load, notes: &mut Notes) {
        let found = match self.engine.connection(&load.connection) {
            Ok(place) => place.ledger_rows(self.job, MERGED - 1, 1).await.map_err(Into::into),
            Err(error) => Err(error),
        };
        let row = match found {
            Ok(rows) => rows.into_iter().find(|row| row.ledger.chunk.number == MERGED),
            Err(error) => {
                let table = &load.table;
                notes.not_judged(format!("the ledger beside {table} could not be read: {error}"));
                return;
            }
        };
        match row {
            Some(row) if row.ledger.cursor == Cursor::End => self.compared += 1,
            None if self.expired => self.pruned = true,
            _ => notes.finding(format!(
                "the ledger does not say that the result was loaded into {}",
                load.table
            )),
        }
    }
}

fn unknown(row: &LedgerRow, notes: &mut Notes) {
    let number = row.ledger.chunk.number;
    notes.finding(format!("the ledger has a row of chunk {number}, which the store has not"));
}
