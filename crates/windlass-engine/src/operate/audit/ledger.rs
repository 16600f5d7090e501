//! Checks the ledger against the store: each chunk has a row, with its cursor at the end and the same
//! counts.

use super::verdict::Findings;
use crate::engine::Engine;
use std::collections::VecDeque;
use std::sync::Arc;
use windlass_connectors::{LedgerRow, Target};
use windlass_core::{Cursor, JobId, Load};
use windlass_store::{ChunkRow, JobSnapshot, MERGED};

/// Reads the ledger rows in step with the chunks.
pub(super) struct LedgerCheck<'a> {
    engine: &'a Engine,
    job: JobId,
    /// The connection of the ledger; `None` if the step only reads, or if the ledger cannot be read.
    target: Option<Arc<dyn Target>>,
    load: Option<&'a Load>,
    /// Whether the retention of the ledger has passed.
    expired: bool,
    rows: VecDeque<LedgerRow>,
    after: i64,
    compared: i64,
    pruned: bool,
    problem: Option<String>,
}

/// Ledger rows read per page.
const ROWS_PER_PAGE: u32 = 500;

impl<'a> LedgerCheck<'a> {
    /// `loads`: whether the job had to load its result.
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
            // The row before the first chunk is that of the load.
            after: MERGED,
            compared: 0,
            pruned: false,
            problem,
        }
    }

    /// Number of rows compared.
    pub(super) fn compared(&self) -> i64 {
        self.compared
    }

    /// Compares the rows of a page of chunks, in order.
    pub(super) async fn page(&mut self, chunks: &[ChunkRow], findings: &mut Findings) {
        for chunk in chunks {
            let number = chunk.chunk;
            // Rows of chunks that the store does not have.
            while let Some(row) = self.next_before(number).await {
                unknown(&row, findings);
            }
            match self.take_if(|of| of == number) {
                Some(row) => self.compare(chunk, &row, findings),
                None if self.target.is_none() => return,
                None if self.expired => self.pruned = true,
                None => findings.contradiction(format!("the ledger has no row for chunk {number}")),
            }
        }
    }

    /// After the last chunk: checks that the ledger has no further rows, and that the load has its row.
    pub(super) async fn end(&mut self, findings: &mut Findings) {
        while let Some(row) = self.next_before(i64::MAX).await {
            unknown(&row, findings);
        }
        if let Some(load) = self.load {
            self.check_load(load, findings).await;
        }
        if self.pruned {
            findings.not_judged(
                "ledger rows are missing: they are pruned when `retention.chunks` has passed since \
                 the end of a job",
            );
        }
        if let Some(problem) = self.problem.take() {
            findings.not_judged(format!("the ledger could not be read: {problem}"));
        }
    }

    /// The next row of a chunk before this one; `None` if the ledger cannot be read.
    async fn next_before(&mut self, chunk: i64) -> Option<LedgerRow> {
        if self.rows.is_empty()
            && let Some(target) = &self.target
        {
            match target.ledger_rows(self.job, self.after, ROWS_PER_PAGE).await {
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

    fn compare(&mut self, chunk: &ChunkRow, row: &LedgerRow, findings: &mut Findings) {
        self.compared += 1;
        let (number, ledger) = (chunk.chunk, &row.ledger);
        findings.require(ledger.cursor.is_at_end_of(&chunk.key_set), || {
            let cursor = ledger.cursor.to_text();
            format!("the ledger's cursor of chunk {number} is {cursor}, not at the end")
        });
        findings.require(ledger.epoch == chunk.epoch, || {
            let (ledger, store) = (ledger.epoch, chunk.epoch);
            format!("the ledger has chunk {number} at epoch {ledger}, but the store at {store}")
        });
        findings.require(ledger.counts == chunk.counts, || {
            let (ledger, store) = (ledger.counts, chunk.counts);
            format!(
                "the ledger counts {} rows read, {} processed, {} skipped, {} dead and {} \
                 conflicts for chunk {number}, but the store {}, {}, {}, {} and {}",
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
        findings.require(row.deferred == 0, || {
            format!("{} items of chunk {number} are still deferred", row.deferred)
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
            findings.require(found == counted, || {
                format!("the ledger counts {counted} {name} of chunk {number}, but has {found}")
            });
        }
    }

    /// Checks the ledger row of the load, which is beside the loaded table.
    async fn check_load(&mut self, load: &Load, findings: &mut Findings) {
        let found = match self.engine.connection(&load.connection) {
            Ok(place) => place.ledger_rows(self.job, MERGED - 1, 1).await.map_err(Into::into),
            Err(error) => Err(error),
        };
        let row = match found {
            Ok(rows) => rows.into_iter().find(|row| row.ledger.chunk.number == MERGED),
            Err(error) => {
                let table = &load.table;
                findings
                    .not_judged(format!("the ledger beside {table} could not be read: {error}"));
                return;
            }
        };
        match row {
            Some(row) if row.ledger.cursor == Cursor::End => self.compared += 1,
            None if self.expired => self.pruned = true,
            _ => findings.contradiction(format!(
                "the ledger has no committed load of the result into {}",
                load.table
            )),
        }
    }
}

fn unknown(row: &LedgerRow, findings: &mut Findings) {
    let number = row.ledger.chunk.number;
    findings.contradiction(format!(
        "the ledger has a row for chunk {number}, which is not in the store"
    ));
}
