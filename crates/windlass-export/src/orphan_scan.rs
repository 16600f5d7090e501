//! Finds orphaned parts, which belong to lost leases or to crashed processes, and missing parts.

use std::collections::HashMap;

use tokio::task::{JoinError, JoinSet};

use crate::{Destination, Error, Manifest, PartName, Result};

/// The number of concurrent deletions.
const DELETE_CONCURRENCY: usize = 16;

/// The result of comparing a destination with a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrphanScan {
    /// Complete and incomplete parts that the manifest does not list. Objects with other names than those of parts
    /// are ignored.
    pub orphans: Vec<String>,
    /// Listed parts that do not exist or have another size.
    pub missing: Vec<String>,
}

/// Compares a destination with the manifest of a job. With an empty manifest, all parts are orphans. Fails if the
/// destination has the manifest of another job, since the parts could belong to that job.
pub async fn scan_orphans(destination: &Destination, manifest: &Manifest) -> Result<OrphanScan> {
    let other = Manifest::read(destination).await?.filter(|found| found.job_id != manifest.job_id);
    if let Some(other) = other {
        let (url, job) = (destination.url(), other.job_id);
        let why = "give each job its own destination with `{job_id}`";
        return Err(Error::Invalid(format!("`{url}` has the parts of job {job}; {why}")));
    }
    let mut listed: HashMap<&str, u64> =
        manifest.parts.iter().map(|part| (part.name.as_str(), part.bytes)).collect();
    let mut scan = OrphanScan::default();
    for (name, bytes) in destination.list().await? {
        match listed.get(name.as_str()) {
            Some(expected) if *expected == bytes => drop(listed.remove(name.as_str())),
            Some(_) => {}
            None if is_part(&name) => scan.orphans.push(name),
            None => {}
        }
    }
    scan.missing = listed.into_keys().map(str::to_owned).collect();
    scan.missing.sort();
    Ok(scan)
}

impl OrphanScan {
    /// Deletes the orphans. May be repeated.
    pub async fn delete_orphans(&self, destination: &Destination) -> Result<()> {
        let mut deletions = JoinSet::new();
        for name in &self.orphans {
            if deletions.len() >= DELETE_CONCURRENCY {
                task_result(deletions.join_next().await)?;
            }
            let (destination, name) = (destination.clone(), name.clone());
            deletions.spawn(async move { destination.remove(&name).await });
        }
        while !deletions.is_empty() {
            task_result(deletions.join_next().await)?;
        }
        Ok(())
    }
}

/// The result of one of several tasks.
fn task_result(ended: Option<std::result::Result<Result<()>, JoinError>>) -> Result<()> {
    match ended {
        Some(Ok(result)) => result,
        Some(Err(error)) => Err(Error::Aborted(error.to_string())),
        None => Ok(()),
    }
}

/// Whether this is the name of a part, or of an incomplete part in a folder, which ends with `#` and a number.
fn is_part(name: &str) -> bool {
    let part = match name.split_once('#') {
        Some((part, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => part,
        Some(_) => return false,
        None => name,
    };
    PartName::parse(part).is_some()
}
