//! Decides whether a history keeps the promises. A pure function over what was found in the data, the ledger's log, the
//! logs of the workers and the store: the engine's own counters are compared with the data, never trusted.

use super::history::{History, Job, LedgerChange, Output, Status};
use std::collections::{BTreeMap, BTreeSet};

/// The table whose records each job type changes. `REFRESH` appends no token; other job types only read.
const EFFECTS: [(&str, &str); 5] = [
    ("ADD", "plain"),
    ("AFTER", "plain"),
    ("TICK", "plain"),
    ("RUN", "plain"),
    ("CALL", "guarded"),
];

/// Returns the violations, each as a sentence.
pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let index = Index::of(history);
    effects(history, &index, &mut found);
    refreshes(history, &index, &mut found);
    bystander(history, &index, &mut found);
    submits(history, &mut found);
    dependents(history, &mut found);
    ledger_order(history, &mut found);
    counts(history, &index, &mut found);
    cancelled(history, &mut found);
    completions(history, &index, &mut found);
    outputs(history, &mut found);
    audits(history, &mut found);
    found
}

/// The number of times that a token is in the trace of an item.
type Tokens<'a> = BTreeMap<(&'a str, &'a str, i64), usize>;

struct Index<'a> {
    tokens: Tokens<'a>,
    /// Whether the letter of a job's item is reprocessed.
    letters: BTreeMap<(&'a str, i64), bool>,
    /// The last change of each ledger row.
    last: BTreeMap<(&'a str, i64), &'a LedgerChange>,
}

impl<'a> Index<'a> {
    fn of(history: &'a History) -> Index<'a> {
        let mut tokens = Tokens::new();
        for record in &history.records {
            for token in &record.tokens {
                *tokens.entry((record.table, token, record.item)).or_default() += 1;
            }
        }
        let letters = history.letters.iter();
        let letters = letters.map(|letter| ((&*letter.job, letter.item), letter.is_reprocessed));
        let last = history.ledger.iter().map(|row| ((&*row.job, row.chunk), row));
        Index { tokens, letters: letters.collect(), last: last.collect() }
    }

    /// The items of all chunks that the ledger counts as processed.
    fn processed(&self, job: &Job) -> i64 {
        let rows = self.last.range((&*job.id, i64::MIN)..=(&*job.id, i64::MAX));
        rows.filter(|((_, chunk), _)| *chunk >= 0).map(|(_, row)| row.processed).sum()
    }

    fn count(&self, table: &str, token: &str, item: i64) -> usize {
        self.tokens.get(&(table, token, item)).copied().unwrap_or(0)
    }
}

fn is_original(job: &&Job) -> bool {
    !job.is_redrive
}

/// Each effect at most once; exactly once in a completed job, unless the item is a dead letter.
fn effects(history: &History, index: &Index<'_>, found: &mut Vec<String>) {
    let mut known = BTreeSet::new();
    let jobs = history.jobs.iter().filter(is_original);
    for job in jobs {
        let Some((_, table)) = EFFECTS.iter().find(|(name, _)| *name == job.job_type) else {
            continue;
        };
        let token = job.token();
        for item in 1..=history.items {
            let times = index.count(table, &token, item);
            let letter = index.letters.get(&(&*job.id, item)).copied();
            let wrong = match (job.status, letter, times) {
                (_, _, 2..) => "doubled effect",
                (_, Some(true), 0) => "lost effect of a redrive",
                (_, Some(false), 1) => "effect although the item is a dead letter",
                (Status::Completed, None, 0) => "lost effect",
                _ => continue,
            };
            found.push(format!(
                "{wrong}: {token} of job {} ({:?}) is {times} times in {table} {item}",
                job.id, job.status
            ));
        }
        if job.job_type == "CALL" {
            let mut inserted = BTreeMap::<i64, usize>::new();
            let rows = history.inserted.iter().filter(|(of, _)| *of == token);
            rows.for_each(|(_, item)| *inserted.entry(*item).or_default() += 1);
            for item in 1..=history.items {
                let rows = inserted.get(&item).copied().unwrap_or(0);
                let times = index.count(table, &token, item);
                if rows != times {
                    found.push(format!(
                        "half a commit: {token} inserted {rows} rows for item {item} and updated it {times} times"
                    ));
                }
            }
        }
        known.insert(token);
    }
    let written: BTreeSet<&str> = history.writes.iter().map(|write| &*write.token).collect();
    let tokens: BTreeSet<&str> = index.tokens.keys().map(|(_, token, _)| *token).collect();
    for token in tokens {
        if !known.contains(token) && !written.contains(token) {
            found.push(format!("effect of no known job: {token}"));
        }
    }
}

/// A refresh leaves no token, but every write increments the version.
fn refreshes(history: &History, index: &Index<'_>, found: &mut Vec<String>) {
    let of_type = |status: fn(Status) -> bool| {
        let jobs = history.jobs.iter();
        let jobs = jobs.filter(|job| job.job_type == "REFRESH" && status(job.status));
        jobs.count() as i64
    };
    let completed = of_type(|status| status == Status::Completed);
    let others = of_type(|status| status != Status::Completed);
    let mut refreshed = 0;
    for record in history.records.iter().filter(|record| record.table == "refreshed") {
        let times = record.version.unwrap_or(1) - 1 - record.tokens.len() as i64;
        refreshed += times;
        if times < completed || times > completed + others {
            found.push(format!(
                "refreshed {} was refreshed {times} times by {completed} completed and {others} other jobs",
                record.item
            ));
        }
    }
    let jobs = history.jobs.iter().filter(|job| job.job_type == "REFRESH");
    let counted: i64 = jobs.map(|job| index.processed(job)).sum();
    if counted != refreshed {
        found.push(format!(
            "the ledger counts {counted} refreshed records, the versions {refreshed}"
        ));
    }
}

/// Each confirmed write of the bystander is there once; the others as a whole or not at all.
fn bystander(history: &History, index: &Index<'_>, found: &mut Vec<String>) {
    for write in &history.writes {
        let times: BTreeSet<usize> =
            write.items.iter().map(|item| index.count(write.table, &write.token, *item)).collect();
        let is_right = match times.iter().collect::<Vec<_>>()[..] {
            [1] => true,
            [0] => !write.is_acknowledged,
            _ => false,
        };
        if !is_right {
            found.push(format!(
                "lost write of the bystander: {} in {} {:?} is there {times:?} times, confirmed: {}",
                write.token, write.table, write.items, write.is_acknowledged
            ));
        }
    }
}

/// A confirmed submit makes one job, any other at most one.
fn submits(history: &History, found: &mut Vec<String>) {
    for submit in &history.submits {
        let jobs = history.jobs.iter().filter(is_original);
        let jobs = jobs.filter(|job| job.job_type == submit.job_type && job.mark == submit.mark);
        let count = jobs.count();
        if count > 1 || count == 0 && submit.is_acknowledged {
            found.push(format!(
                "{count} jobs for the submit of {} {}, confirmed: {}",
                submit.job_type, submit.mark, submit.is_acknowledged
            ));
        }
    }
}

/// Each completed `ADD` is followed by one `AFTER`, each minute by one `TICK`.
fn dependents(history: &History, found: &mut Vec<String>) {
    let originals = || history.jobs.iter().filter(is_original);
    for parent in originals().filter(|job| job.job_type == "ADD") {
        let children = originals().filter(|job| job.job_type == "AFTER" && job.mark == parent.mark);
        let (count, expected) = (children.count(), usize::from(parent.status == Status::Completed));
        if count != expected {
            found
                .push(format!("{count} dependent jobs of job {} ({:?})", parent.id, parent.status));
        }
    }
    let ticks: Vec<&str> =
        originals().filter(|job| job.job_type == "TICK").map(|job| &*job.mark).collect();
    let different: BTreeSet<&&str> = ticks.iter().collect();
    if different.len() != ticks.len() {
        found.push(format!("a scheduled time was fired twice: {ticks:?}"));
    }
}

/// Epochs of a chunk never go back, an epoch has one leaseholder, and only the last to fence commits, one commit after
/// the other.
fn ledger_order(history: &History, found: &mut Vec<String>) {
    let mut rows = BTreeMap::<(&str, i64), &LedgerChange>::new();
    for change in &history.ledger {
        let before = rows.insert((&change.job, change.chunk), change);
        let Some(before) = before else { continue };
        let is_fence = change.epoch > before.epoch && change.commits == before.commits;
        let is_same_lease = change.epoch == before.epoch && change.nonce == before.nonce;
        let is_commit = is_same_lease && change.commits - before.commits <= 1;
        if !is_fence && !is_commit || change.commits < before.commits {
            found.push(format!("commits out of order in the ledger: {before:?}, then {change:?}"));
        }
    }
}

/// What the ledger counts is what is in the data, and a completed job counts the same.
fn counts(history: &History, index: &Index<'_>, found: &mut Vec<String>) {
    for job in history.jobs.iter().filter(is_original) {
        if job.status == Status::Open {
            found.push(format!("job {} ({}) never ended", job.id, job.job_type));
        }
        let letters =
            index.letters.range((&*job.id, i64::MIN)..=(&*job.id, i64::MAX)).count() as i64;
        if job.status == Status::Completed
            && (job.total, job.processed, job.dead)
                != (history.items, history.items - letters, letters)
        {
            found.push(format!(
                "wrong count: job {} ({}) has {} items, {} processed and {} dead, with {} records and {letters} letters",
                job.id, job.job_type, job.total, job.processed, job.dead, history.items
            ));
        }
        let Some((_, table)) = EFFECTS.iter().find(|(name, _)| *name == job.job_type) else {
            continue;
        };
        let token = job.token();
        let done: usize = (1..=history.items).map(|item| index.count(table, &token, item)).sum();
        let family = |other: &&Job| other.job_type == job.job_type && other.mark == job.mark;
        let counted: i64 = history.jobs.iter().filter(family).map(|job| index.processed(job)).sum();
        if counted != done as i64 {
            found.push(format!(
                "wrong count: the ledger has {counted} processed items of {token}, the data {done}"
            ));
        }
    }
}

/// Nothing commits after a job was seen as cancelled.
fn cancelled(history: &History, found: &mut Vec<String>) {
    for job in &history.jobs {
        let Some(before) = job.commits_when_cancelled else { continue };
        let after = commits(history, &job.id);
        if after != before {
            found.push(format!(
                "commit after cancel: job {} had {before} commits when it was cancelled, and {after} at the end",
                job.id
            ));
        }
    }
}

/// The number of commits of a job in the ledger's log.
pub(super) fn commits(history: &History, job: &str) -> usize {
    let rows: BTreeSet<(i64, i64)> = history
        .ledger
        .iter()
        .filter(|change| change.job == job && change.commits > 0)
        .map(|change| (change.chunk, change.commits))
        .collect();
    rows.len()
}

/// What a worker logged as completed is in the ledger, with the same counts.
fn completions(history: &History, index: &Index<'_>, found: &mut Vec<String>) {
    for logged in &history.completions {
        // Steps that only read have no ledger.
        let Some(row) = index.last.get(&(&*logged.job, logged.chunk)) else { continue };
        if (row.processed, row.dead) != (logged.processed, logged.dead) {
            found.push(format!("a worker logged {logged:?}, the ledger ends with {row:?}"));
        }
    }
}

/// Reports, loads and exports equal the data.
fn outputs(history: &History, found: &mut Vec<String>) {
    for job in &history.jobs {
        let is_completed = job.status == Status::Completed;
        match (&*job.job_type, &job.output) {
            ("EXPORT", Output::Exported { keys, unlisted }) if is_completed => {
                let mut keys = keys.clone();
                keys.sort_unstable();
                if keys != (1..=history.items).collect::<Vec<_>>() || *unlisted > 0 {
                    found.push(format!(
                        "wrong export: job {} has {} keys and {unlisted} unlisted files",
                        job.id,
                        keys.len()
                    ));
                }
            }
            ("EXPORT", _) if is_completed => found.push(format!("lost export of job {}", job.id)),
            ("TOTAL", output) => {
                let is_right = match output {
                    Output::Reported(rows) => *rows == history.totals,
                    _ => !is_completed,
                };
                if !is_right {
                    found.push(format!("wrong report of job {}: {output:?}", job.id));
                }
                let loaded = history.loaded.get(&job.mark).is_some_and(|rows| !rows.is_empty());
                if is_completed && !loaded {
                    found.push(format!("lost load of job {}", job.id));
                }
            }
            _ => {}
        }
    }
    for (mark, rows) in &history.loaded {
        if !rows.is_empty() && *rows != history.totals {
            found.push(format!("wrong load of {mark}: {rows:?}"));
        }
    }
}

/// A completed job whose data is right is proven.
fn audits(history: &History, found: &mut Vec<String>) {
    for job in history.jobs.iter().filter(|job| job.status == Status::Completed) {
        if let Some(verdict) = job.audit.as_deref().filter(|verdict| !verdict.starts_with("proven"))
        {
            found.push(format!("audit of job {} ({}): {verdict}", job.id, job.job_type));
        }
    }
}
