//! Checks the output of the job: the part of each chunk, the merged result, and the files.

use super::verdict::Findings;
use crate::Result;
use crate::engine::Engine;
#[cfg(feature = "export")]
use crate::merge::destination;
use crate::merge::map_export::is_intact;
use crate::merge::merge;
use std::collections::VecDeque;
use windlass_core::{JobType, StepKind};
#[cfg(feature = "export")]
use windlass_export::{Destination, Manifest, scan_orphans};
use windlass_store::{ChunkRow, JobSnapshot, MERGED, NewPart, PartRow};

/// Reads the parts in step with the chunks.
pub(super) struct OutputCheck<'a> {
    engine: &'a Engine,
    snapshot: &'a JobSnapshot,
    parts: VecDeque<PartRow>,
    after: i64,
    /// Rows of all parts.
    rows: i64,
}

/// Parts read per page. Few, because the parts of a `map` include their content.
const PARTS_PER_PAGE: u32 = 20;

impl<'a> OutputCheck<'a> {
    pub(super) fn new(engine: &'a Engine, snapshot: &'a JobSnapshot) -> OutputCheck<'a> {
        OutputCheck { engine, snapshot, parts: VecDeque::new(), after: MERGED, rows: 0 }
    }

    fn definition(&self) -> &'a JobType {
        &self.snapshot.definition
    }

    /// Checks the parts of a page of chunks, in order.
    pub(super) async fn page(
        &mut self,
        chunks: &[ChunkRow],
        findings: &mut Findings,
    ) -> Result<()> {
        if !self.definition().step.kind.makes_parts() {
            return Ok(());
        }
        for chunk in chunks {
            while let Some(part) = self.next_upto(chunk.chunk).await? {
                match part.chunk == chunk.chunk {
                    true => self.compare(chunk, &part, findings),
                    false => unknown(&part, findings),
                }
                if part.chunk == chunk.chunk {
                    break;
                }
            }
            // The last part that was read belongs to this chunk, unless it has none.
            findings.require(self.after == chunk.chunk, || {
                format!("the part of chunk {} is missing", chunk.chunk)
            });
        }
        Ok(())
    }

    /// After the last chunk: checks that there are no further parts, and that the merged result exists.
    pub(super) async fn end(&mut self, findings: &mut Findings) -> Result<()> {
        let definition = self.definition();
        if definition.step.kind.makes_parts() {
            while let Some(part) = self.next_upto(i64::MAX).await? {
                unknown(&part, findings);
            }
        }
        if !definition.merges() {
            return Ok(());
        }
        let Some(merged) = merge::stored_result(self.engine, self.snapshot.id).await? else {
            findings.contradiction("the merged result is missing in the store");
            return Ok(());
        };
        match &definition.step.kind {
            StepKind::Export(export) => {
                findings.require(merged.rows == self.rows, || {
                    format!(
                        "the manifest has {} rows, but the parts have {}",
                        merged.rows, self.rows
                    )
                });
                if let Err(error) = self.check_export(&export.to, &merged, findings).await {
                    findings.not_judged(format!("the exported parts could not be read: {error}"));
                }
            }
            _ => findings.require(is_intact(&merged), || "the stored result is damaged".to_owned()),
        }
        if let Some(report) = &definition.report
            && let Err(error) = self.check_report(&report.to, findings).await
        {
            findings.not_judged(format!("the report could not be checked: {error}"));
        }
        Ok(())
    }

    fn compare(&mut self, chunk: &ChunkRow, part: &PartRow, findings: &mut Findings) {
        let number = chunk.chunk;
        self.rows += part.part.rows;
        findings.require(part.epoch == chunk.epoch, || {
            let (part, store) = (part.epoch, chunk.epoch);
            format!("the part of chunk {number} has epoch {part}, but the chunk has {store}")
        });
        match &self.definition().step.kind {
            StepKind::Export(_) => {
                findings.require(part.part.rows == chunk.counts.processed, || {
                    let (rows, processed) = (part.part.rows, chunk.counts.processed);
                    format!(
                        "the part of chunk {number} has {rows} rows, but {processed} were processed"
                    )
                })
            }
            _ => findings.require(is_intact(&part.part), || {
                format!("the part of chunk {number} is damaged")
            }),
        }
    }

    /// Checks that the manifest is the recorded one, and that every part it lists exists.
    #[cfg(feature = "export")]
    async fn check_export(
        &self,
        to: &str,
        merged: &NewPart,
        findings: &mut Findings,
    ) -> Result<()> {
        let location = Destination::open(&destination::fill_template(self.snapshot, to)?)?;
        let Some(found) = Manifest::read(&location).await? else {
            findings.contradiction(format!("the manifest in {} is missing", location.url()));
            return Ok(());
        };
        if found.job_id != self.snapshot.id.to_string() {
            let (url, other) = (location.url(), found.job_id);
            findings.not_judged(format!("{url} now holds the parts of job {other}"));
            return Ok(());
        }
        let recorded = serde_json::from_slice(merged.content.as_deref().unwrap_or_default());
        findings.require(recorded.is_ok_and(|recorded: Manifest| recorded == found), || {
            format!("the manifest in {} differs from the recorded one", location.url())
        });
        for missing in scan_orphans(&location, &found).await?.missing {
            let url = location.url();
            findings
                .contradiction(format!("{missing} in {url} is missing or has a different size"));
        }
        Ok(())
    }

    #[cfg(not(feature = "export"))]
    async fn check_export(&self, _: &str, _: &NewPart, findings: &mut Findings) -> Result<()> {
        findings.not_judged("the exported parts: this build lacks the cargo feature `export`");
        Ok(())
    }

    #[cfg(not(feature = "export"))]
    async fn check_report(&self, _: &str, findings: &mut Findings) -> Result<()> {
        findings.not_judged("the report: this build lacks the cargo feature `export`");
        Ok(())
    }

    /// Checks that the report exists. Its content is not checked, because a later job may have replaced it.
    #[cfg(feature = "export")]
    async fn check_report(&self, to: &str, findings: &mut Findings) -> Result<()> {
        let url = destination::fill_template(self.snapshot, to)?;
        let (folder, name) = Destination::split(&url)?;
        let found = Destination::open(folder)?.list().await?;
        findings.require(found.iter().any(|(found, _)| found == name), || {
            format!("the report {url} is missing")
        });
        Ok(())
    }

    /// The next part, if it belongs to this chunk or an earlier one.
    async fn next_upto(&mut self, chunk: i64) -> Result<Option<PartRow>> {
        if self.parts.is_empty() {
            let after = self.after;
            self.parts
                .extend(self.engine.store().parts(self.snapshot.id, after, PARTS_PER_PAGE).await?);
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

fn unknown(part: &PartRow, findings: &mut Findings) {
    findings.contradiction(format!(
        "there is a part of chunk {}, which is not in the store",
        part.chunk
    ));
}
