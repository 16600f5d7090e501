//! Ids on the command line: whole, by a unique prefix, by the last eight characters, or `last`.

use anyhow::Result;
use std::str::FromStr;
use uuid::Uuid;
use windlass::{Engine, JobId};

/// A job as a person names it.
#[derive(Clone, Debug)]
pub(super) struct JobRef(String);

impl JobRef {
    /// The job that is meant.
    pub(super) async fn find(&self, engine: &Engine) -> Result<JobId> {
        Ok(engine.find_job(&self.0).await?)
    }

    /// The whole id, where there is no store to search.
    pub(super) fn whole(&self) -> Result<JobId> {
        Ok(self.0.parse()?)
    }
}

/// The job of an optional flag.
pub(super) async fn find(job: Option<&JobRef>, engine: &Engine) -> Result<Option<JobId>> {
    match job {
        Some(job) => Ok(Some(job.find(engine).await?)),
        None => Ok(None),
    }
}

/// A dead letter as a person names it.
#[derive(Clone, Debug)]
pub(super) struct LetterRef(String);

impl LetterRef {
    /// The dead letter that is meant.
    pub(super) async fn find(&self, engine: &Engine) -> Result<Uuid> {
        Ok(engine.find_dead_letter(&self.0).await?)
    }

    /// The whole id, where there is no store to search.
    pub(super) fn whole(&self) -> Result<Uuid> {
        Ok(self.0.parse()?)
    }
}

impl FromStr for JobRef {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<JobRef, Self::Err> {
        match text.trim() {
            text if text == "last" || is_part_of_id(text) => Ok(JobRef(text.to_owned())),
            _ => Err("must be an id, its beginning, its last eight characters or `last`"),
        }
    }
}

impl FromStr for LetterRef {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<LetterRef, Self::Err> {
        match text.trim() {
            text if is_part_of_id(text) => Ok(LetterRef(text.to_owned())),
            _ => Err("must be an id, its beginning or its last eight characters"),
        }
    }
}

/// Whether the text has only characters of ids.
fn is_part_of_id(text: &str) -> bool {
    text.chars().all(|character| character.is_ascii_hexdigit() || character == '-')
}
