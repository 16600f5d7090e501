//! What lies beside a manifest: parts of workers that lost their chunk, what crashes left, and
//! listed parts that are not there.

use std::collections::HashMap;

use tokio::task::{JoinError, JoinSet};

use crate::{Destination, Error, Manifest, PartName, Result};

/// Objects removed at once.
const AT_ONCE: usize = 16;

/// What a look at a place found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrphanScan {
    /// Parts that the manifest does not list, and the beginnings of some. Recognised by our names:
    /// nothing else is ever touched.
    pub orphans: Vec<String>,
    /// Parts that the manifest lists, and that are not there or have another size.
    pub missing: Vec<String>,
}

/// Compares a place with the manifest of a job. One without parts finds all that the job has put
/// out. Refused where another job's manifest lies there, since the parts could be that job's.
pub async fn survey(place: &Destination, manifest: &Manifest) -> Result<OrphanScan> {
    let other = Manifest::read(place).await?.filter(|found| found.job_id != manifest.job_id);
    if let Some(other) = other {
        let (url, job) = (place.url(), other.job_id);
        let why = "give each job a place of its own, by `{job_id}`";
        return Err(Error::Wrong(format!("`{url}` holds the parts of job {job}; {why}")));
    }
    let mut listed: HashMap<&str, u64> =
        manifest.parts.iter().map(|part| (part.name.as_str(), part.bytes)).collect();
    let mut survey = OrphanScan::default();
    for (name, bytes) in place.list().await? {
        match listed.get(name.as_str()) {
            Some(expected) if *expected == bytes => drop(listed.remove(name.as_str())),
            Some(_) => {}
            None if is_ours(&name) => survey.orphans.push(name),
            None => {}
        }
    }
    survey.missing = listed.into_keys().map(str::to_owned).collect();
    survey.missing.sort();
    Ok(survey)
}

impl OrphanScan {
    /// Removes the orphans. May be repeated.
    pub async fn sweep(&self, place: &Destination) -> Result<()> {
        let mut removing = JoinSet::new();
        for name in &self.orphans {
            if removing.len() >= AT_ONCE {
                one(removing.join_next().await)?;
            }
            let (place, name) = (place.clone(), name.clone());
            removing.spawn(async move { place.remove(&name).await });
        }
        while !removing.is_empty() {
            one(removing.join_next().await)?;
        }
        Ok(())
    }
}

/// What came of one of several tasks.
fn one(ended: Option<std::result::Result<Result<()>, JoinError>>) -> Result<()> {
    match ended {
        Some(Ok(removed)) => removed,
        Some(Err(error)) => Err(Error::GivenUp(error.to_string())),
        None => Ok(()),
    }
}

/// A part, or one that was being written when its process died: those have `#` and a number at the
/// end in a folder.
fn is_ours(name: &str) -> bool {
    let part = match name.split_once('#') {
        Some((part, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => part,
        Some(_) => return false,
        None => name,
    };
    PartName::parse(part).is_some()
}
