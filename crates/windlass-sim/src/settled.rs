//! What must hold when all jobs have ended, compared with the simulated data itself.

use crate::environment::Environment;
use crate::oracle::texts;
use crate::plan::DatabaseFault;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use windlass_core::{Job, JobStatus};
use windlass_engine::{Engine, Verdict};
use windlass_store::JobFilter;

/// Jobs, cancellations and triggers that have not ended.
pub(crate) fn open_work(env: &Environment) -> rusqlite::Result<Vec<String>> {
    env.store.with(|db| texts(db, include_str!("../sql/open_work.sql")))
}

pub(crate) fn paused(env: &Environment) -> rusqlite::Result<Vec<String>> {
    env.store.with(|db| texts(db, "SELECT id FROM windlass_jobs WHERE status = 'PAUSED'"))
}

/// After a restore that followed its instructions, the ledger refuses no valid lease.
pub(crate) fn check_pauses(env: &Environment) -> rusqlite::Result<()> {
    let sql = "SELECT id || ' is paused: ' || error FROM windlass_jobs \
               WHERE status = 'PAUSED' AND error LIKE 'the store was restored%'";
    if env.restored_quietly.load(Relaxed) {
        env.store.with(|db| texts(db, sql))?.into_iter().for_each(|pause| env.violate(pause));
    }
    Ok(())
}

/// Checks every job.
pub(crate) async fn check(env: &Environment, engine: &Engine) -> anyhow::Result<()> {
    let jobs = engine.store().jobs(&JobFilter { limit: 10_000, ..JobFilter::default() }).await?;
    for job in &jobs {
        let root: String = env.store.with(|db| {
            db.query_row(
                "SELECT root FROM windlass_jobs WHERE id = ?1",
                [job.id.to_string()],
                |row| row.get(0),
            )
        })?;
        let outcome = format!("{} {} {:?}", job.job_type, job.status, job.items);
        env.add("end", &format!("{}: {outcome}", job.id));
        let is_redrive = root != job.id.to_string();
        let wrong = match job.job_type.as_str() {
            _ if is_redrive => None,
            "MAP" => check_load(env, job)?,
            _ => check_effects(env, job)?,
        };
        check_audit(env, engine, job, wrong).await?;
    }
    // There are none where the store is restored.
    if env.plan.database_fault != DatabaseFault::StoreRestored {
        check_dependents(env, &jobs);
    }
    check_once(env)?;
    Ok(())
}

fn tag(job: &Job) -> String {
    let tag = job.request.params.get("tag").and_then(|tag| tag.as_str()).unwrap_or_default();
    if job.job_type == "CHILD" { format!("c{tag}") } else { tag.to_owned() }
}

/// Each item's effect happened exactly once in a completed job, or the item is a dead letter. Returns what is wrong.
fn check_effects(env: &Environment, job: &Job) -> anyhow::Result<Option<String>> {
    let (id, tag) = (job.id.to_string(), tag(job));
    let effects: BTreeMap<i64, i64> = env.app.with(|db| {
        let sql = "SELECT item, count(*) FROM sim_effects WHERE tag = ?1 GROUP BY item";
        pairs(db, sql, &tag)
    })?;
    let logged: BTreeMap<i64, i64> = env.app.with(|db| {
        pairs(db, "SELECT item, count(*) FROM log WHERE tag = ?1 GROUP BY item", &tag)
    })?;
    let effects = if job.job_type == "INSERT" { logged.clone() } else { effects };
    let letters: BTreeMap<i64, String> = env.store.with(|db| {
        pairs(
            db,
            "SELECT json_extract(key, '$[0]'), status FROM windlass_dead_letters WHERE job_id = ?1",
            &id,
        )
    })?;
    let mut wrong = None;
    let mut violate = |what: String| {
        wrong.get_or_insert(format!("{} {tag} {id}: {what}", job.job_type));
    };
    let mut done = 0;
    for item in 1..=env.plan.items {
        let count = effects.get(&item).copied().unwrap_or(0);
        let letter = letters.get(&item).map(String::as_str);
        let expected = match letter {
            Some("reprocessed") => Some(1),
            Some(_) => Some(0),
            None if job.status == JobStatus::Completed => Some(1),
            None => None,
        };
        if expected.is_some_and(|expected| expected != count) {
            violate(format!("item {item} has {count} effects, its dead letter is {letter:?}"));
        }
        if job.job_type == "HANDLER" && logged.get(&item).copied().unwrap_or(0) != count {
            violate(format!("item {item} has {count} effects and another number of inserts"));
        }
        done += i64::from(letter.is_none()) * count;
    }
    let items = job.items;
    if job.status == JobStatus::Completed {
        let (total, outcomes) = (items.total, items.processed + items.skipped + items.dead);
        if total != env.plan.items || outcomes != total {
            violate(format!("{total} items with {outcomes} outcomes of {}", env.plan.items));
        }
        if items.processed != done {
            violate(format!("{} items are counted as processed, but are {done}", items.processed));
        }
    }
    Ok(wrong)
}

fn pairs<K: rusqlite::types::FromSql + Ord, V: rusqlite::types::FromSql>(
    db: &Connection,
    sql: &str,
    parameter: &str,
) -> rusqlite::Result<BTreeMap<K, V>> {
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([parameter], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// What a cancelled job says whose load was committed before.
const TOO_LATE: &str = "was committed before the job was cancelled";

/// The result of a completed fan-in is loaded as it should be. That of a cancelled one is not, unless the job says that
/// it was cancelled too late.
fn check_load(env: &Environment, job: &Job) -> anyhow::Result<Option<String>> {
    let tag = tag(job);
    let loaded: BTreeMap<i64, i64> =
        env.app.with(|db| pairs(db, "SELECT grp, n FROM totals WHERE tag = ?1", &tag))?;
    let right: BTreeMap<i64, i64> = env.app.with(|db| {
        pairs(db, "SELECT grp, count(*) FROM items WHERE ?1 <> '' GROUP BY grp", &tag)
    })?;
    let is_right = match job.status {
        JobStatus::Completed => loaded == right,
        JobStatus::Cancelled => {
            let too_late = job.error.as_ref().is_some_and(|error| error.contains(TOO_LATE));
            if too_late { loaded == right } else { loaded.is_empty() }
        }
        _ => true,
    };
    let (id, status) = (job.id, job.status);
    let wrong = || format!("{id} is {status} and has loaded {loaded:?}; right is {right:?}");
    Ok((!is_right).then(wrong))
}

/// The audit says *proven* for a completed job exactly if the job is right, unless its chunks were pruned. Only a
/// database that has lost commits may make a job wrong.
async fn check_audit(
    env: &Environment,
    engine: &Engine,
    job: &Job,
    wrong: Option<String>,
) -> anyhow::Result<()> {
    let lost = env.data_lost.load(Relaxed);
    if let (Some(wrong), false) = (&wrong, lost) {
        env.violate(wrong.clone());
    }
    if job.status != JobStatus::Completed {
        return Ok(());
    }
    let audit = engine.audit(job.id).await?;
    let pruned = audit.verdict == Verdict::CannotBeJudged && audit.chunks == 0;
    match wrong {
        Some(wrong) if audit.is_proven() => env.violate(format!("proven, but {wrong}")),
        None if !audit.is_proven() && !pruned && !lost => {
            let why = [audit.findings, audit.not_judged].concat().join("; ");
            let verdict = audit.verdict.as_str();
            env.violate(format!("{} is {verdict} although it is right: {why}", job.id));
        }
        _ => {}
    }
    Ok(())
}

/// A dependent exists once where all its parents have completed, and nowhere else.
fn check_dependents(env: &Environment, jobs: &[Job]) {
    let of = |job_type: &str, wanted: &str| -> Vec<&Job> {
        let tagged = |job: &&Job| job.request.params.get("tag").is_some_and(|tag| tag == wanted);
        jobs.iter().filter(|job| job.job_type == job_type).filter(tagged).collect()
    };
    for number in 0..env.plan.requests {
        let tag = format!("a{number};");
        let (sql, map, children) = (of("SQL", &tag), of("MAP", &tag), of("CHILD", &tag));
        // Redrives are jobs of the same type, but are no parents; pruned jobs cannot be judged.
        let originals =
            |jobs: &[&Job]| jobs.iter().filter(|j| j.request.idempotency_key.is_some()).count();
        if originals(&sql) != 1 || originals(&map) != 1 {
            continue;
        }
        let completed = |jobs: &[&Job]| {
            jobs.iter()
                .any(|j| j.request.idempotency_key.is_some() && j.status == JobStatus::Completed)
        };
        let due = usize::from(completed(&sql) && completed(&map));
        let children = children.iter().filter(|j| j.request.after.is_some()).count();
        // Operators may have pruned it.
        let prunes = env.plan.operators.or(env.plan.pruner).is_some();
        let pruned = children == 0 && prunes;
        if children != due && !pruned {
            env.violate(format!("{tag}: {children} dependents instead of {due}"));
        }
    }
}

/// What is submitted once is there once.
fn check_once(env: &Environment) -> rusqlite::Result<()> {
    let sql = "SELECT job_type || ' ' || idempotency_key || ' is there ' || count(*) || ' times' FROM windlass_jobs \
               WHERE idempotency_key IS NOT NULL GROUP BY job_type, submitter, idempotency_key HAVING count(*) > 1";
    for twice in env.store.with(|db| texts(db, sql))? {
        env.violate(twice);
    }
    Ok(())
}
