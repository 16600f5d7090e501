//! What the job put out: a part for each chunk that makes one, what was made of them, and the files.

use super::verdict::Notes;
use crate::Result;
use crate::engine::Engine;
use crate::merge::destination;
use crate::merge::merge;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use windlass_core::{JobType, StepKind};
use windlass_export::{Destination, Manifest, scan_orphans};
use windlass_store::{ChunkRow, JobSnapshot, MERGED, NewPart, PartRow};

/// Walks through the parts beside the chunks.
pub(super) struct OutputCheck<'a> {
    engine: &'a Engine,
    snapshot: &'a JobSnapshot,
    parts: VecDeque<PartRow>,
    after: i64,
    /// Rows of all parts.
    rows: i64,
}

/// Parts read at once: those of a `map` carry their content.
const PAGE: u32 = 20;

impl<'a> OutputCheck<'a> {
    pub(super) fn new(engine: &'a Engine, snapshot: &'a JobSnapshot) -> OutputCheck<'a> {
        OutputCheck { engine, snapshot, parts: VecDeque::new(), after: MERGED, rows: 0 }
    }

    fn definition(&self) -> &'a JobType {
        &self.snapshot.definition
    }

    /// Looks for the parts of some chunks, in order.
    pub(super) async fn page(&mut self, chunks: &[ChunkRow], notes: &mut Notes) -> Result<()> {
        if !self.definition().step.kind.makes_parts() {
            return Ok(());
        }
        for chunk in chunks {
            while let Some(part) = self.next_upto(chunk.chunk).await? {
                match part.chunk == chunk.chunk {
                    true => self.compare(chunk, &part, notes),
                    false => unknown(&part, notes),
                }
                if part.chunk == chunk.chunk {
                    break;
                }
            }
            // The last part that was taken is this chunk's, unless there is none.
            notes.expect(self.after == chunk.chunk, || {
                format!("the part of chunk {} is missing", chunk.chunk)
            });
        }
        Ok(())
    }

    /// After the last chunk: there are no more parts, and what was made of them is there.
    pub(super) async fn end(&mut self, notes: &mut Notes) -> Result<()> {
        let definition = self.definition();
        if definition.step.kind.makes_parts() {
            while let Some(part) = self.next_upto(i64::MAX).await? {
                unknown(&part, notes);
            }
        }
        if !definition.merges() {
            return Ok(());
        }
        let Some(merged) = merge::merged(self.engine, self.snapshot.id).await? else {
            notes.finding("what was made of all parts is missing in the store");
            return Ok(());
        };
        match &definition.step.kind {
            StepKind::Export(export) => {
                notes.expect(merged.rows == self.rows, || {
                    format!("the manifest has {} rows, the parts {}", merged.rows, self.rows)
                });
                if let Err(error) = self.exported(&export.to, &merged, notes).await {
                    notes.not_judged(format!("the exported parts could not be read: {error}"));
                }
            }
            _ => notes.expect(is_whole(&merged), || "the result of the job is damaged".to_owned()),
        }
        if let Some(report) = &definition.report
            && let Err(error) = self.reported(&report.to, notes).await
        {
            notes.not_judged(format!("the report could not be looked for: {error}"));
        }
        Ok(())
    }

    fn compare(&mut self, chunk: &ChunkRow, part: &PartRow, notes: &mut Notes) {
        let number = chunk.chunk;
        self.rows += part.part.rows;
        notes.expect(part.epoch == chunk.epoch, || {
            let (part, store) = (part.epoch, chunk.epoch);
            format!("the part of chunk {number} is of epoch {part}, the chunk of {store}")
        });
        match &self.definition().step.kind {
            StepKind::Export(_) => notes.expect(part.part.rows == chunk.counts.read, || {
                let (rows, read) = (part.part.rows, chunk.counts.read);
                format!("the part of chunk {number} has {rows} rows, and {read} were read")
            }),
            _ => notes
                .expect(is_whole(&part.part), || format!("the part of chunk {number} is damaged")),
        }
    }

    /// The manifest is the one that was recorded, and every part it lists is there.
    async fn exported(&self, to: &str, merged: &NewPart, notes: &mut Notes) -> Result<()> {
        let place = Destination::open(&destination::fill(self.snapshot, to)?)?;
        let Some(found) = Manifest::read(&place).await? else {
            notes.finding(format!("the manifest in {} is missing", place.url()));
            return Ok(());
        };
        if found.job_id != self.snapshot.id.to_string() {
            let (url, other) = (place.url(), found.job_id);
            notes.not_judged(format!("{url} holds the parts of job {other} by now"));
            return Ok(());
        }
        let recorded = serde_json::from_slice(merged.content.as_deref().unwrap_or_default());
        notes.expect(recorded.is_ok_and(|recorded: Manifest| recorded == found), || {
            format!("the manifest in {} is not the one that was recorded", place.url())
        });
        for missing in scan_orphans(&place, &found).await?.missing {
            let url = place.url();
            notes.finding(format!("{missing} in {url} is missing, or has another size"));
        }
        Ok(())
    }

    /// A report may have been replaced by that of a later job, so that only its place is looked at.
    async fn reported(&self, to: &str, notes: &mut Notes) -> Result<()> {
        let url = destination::fill(self.snapshot, to)?;
        let (folder, name) = Destination::split(&url)?;
        let found = Destination::open(folder)?.list().await?;
        notes.expect(found.iter().any(|(found, _)| found == name), || {
            format!("the report {url} is missing")
        });
        Ok(())
    }

    /// The next part up to that of this chunk.
    async fn next_upto(&mut self, chunk: i64) -> Result<Option<PartRow>> {
        if self.parts.is_empty() {
            let after = self.after;
            self.parts.extend(self.engine.store().parts(self.snapshot.id, after, PAGE).await?);
        }
        match self.parts.front() {
            Some(part) if part.chunk <= chunk => {
                self.after = part.chunk;
                Ok(self.parts.pop_front())
            }
            _ => Ok(None),
        }
    }
}

/// Whether a part that the store keeps is the one that was written.
fn is_whole(part: &NewPart) -> bool {
    let content = part.content.as_deref().unwrap_or_default();
    content.len() as i64 == part.bytes && hex::encode(Sha256::digest(content)) == part.sha256
}

fn unknown(part: &PartRow, notes: &mut Notes) {
    notes.finding(format!("there is a part of chunk {}, which the store has not", part.chunk));
}
