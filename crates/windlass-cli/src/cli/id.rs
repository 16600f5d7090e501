//! Ids on the command line: whole, by a unique prefix, by the last eight characters, or `last`.

use anyhow::Result;
use std::convert::Infallible;
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
    type Err = Infallible;

    fn from_str(text: &str) -> Result<JobRef, Infallible> {
        Ok(JobRef(text.trim().to_owned()))
    }
}

impl FromStr for LetterRef {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<LetterRef, Infallible> {
        Ok(LetterRef(text.trim().to_owned()))
    }
}
