//! What must hold after every commit. Triggers in the simulated databases record violations in the transaction that
//! makes them, so that no step is missed.

use crate::environment::Environment;
use crate::wire::Side;
use rusqlite::{Connection, OptionalExtension as _};
use windlass_core::{ChunkStatus, JobStatus};

/// Creates the user's tables and the triggers that watch them.
pub(crate) fn create_tables(env: &Environment) -> anyhow::Result<()> {
    env.app.with(|db| {
        db.execute_batch(include_str!("../sql/app.sql"))?;
        db.execute(include_str!("../sql/items.sql"), (env.plan.items, env.plan.bad_items))
    })?;
    env.store.with(|db| db.execute_batch("CREATE TABLE sim_violations (what TEXT NOT NULL)"))?;
    Ok(())
}

/// Watches the store's tables, which exist once the first process has connected.
pub(crate) fn watch_store(env: &Environment) -> anyhow::Result<()> {
    env.store.with(|db| {
        db.execute_batch(include_str!("../sql/store.sql"))?;
        let mut edge = db.prepare("INSERT INTO sim_edges VALUES (?1, ?2, ?3)")?;
        for (from, to) in pairs(JobStatus::ALL).filter(|(a, b)| a.check_edge(*b).is_ok()) {
            edge.execute(["job", from.as_str(), to.as_str()])?;
        }
        for (from, to) in pairs(ChunkStatus::ALL).filter(|(a, b)| a.check_edge(*b).is_ok()) {
            edge.execute(["chunk", from.as_str(), to.as_str()])?;
        }
        Ok(())
    })
}

/// Watches the ledger, once it exists.
fn watch_ledger(db: &Connection) -> rusqlite::Result<()> {
    let exists = |name: &str| {
        let sql = "SELECT 1 FROM sqlite_master WHERE name = ?1";
        db.query_row(sql, [name], |_| Ok(())).optional().map(|found| found.is_some())
    };
    if exists("windlass_ledger")? && !exists("sim_ledger")? {
        db.execute_batch(include_str!("../sql/ledger.sql"))?;
    }
    Ok(())
}

fn pairs<T: Copy>(all: &[T]) -> impl Iterator<Item = (T, T)> {
    all.iter().flat_map(|from| all.iter().map(|to| (*from, *to)))
}

/// A commit to the ledger row of a chunk.
struct LedgerCommit {
    job: String,
    chunk: i64,
    epoch: i64,
}

/// Checks what a transaction has committed, and sends the store's signal.
pub(crate) fn check_commit(env: &Environment, side: Side) {
    let checked = match side {
        Side::Store => env.store.with(|db| check_store(env, db)),
        Side::App => env.app.with(|db| watch_ledger(db).and_then(|()| drain(db))).and_then(
            |(violations, commits)| {
                violations.into_iter().for_each(|violation| env.violate(violation));
                commits.iter().try_for_each(|commit| check_ledger_commit(env, commit))
            },
        ),
    };
    if let Err(error) = checked {
        env.violate(format!("the check itself failed: {error}"));
    }
}

fn check_store(env: &Environment, db: &Connection) -> rusqlite::Result<()> {
    for violation in texts(db, "DELETE FROM sim_violations RETURNING what")? {
        env.violate(violation);
    }
    let signals = db.query_row("SELECT count FROM windlass_signal", [], |row| row.get(0))?;
    env.signals.send_if_modified(|sent| {
        let changed = *sent != signals;
        *sent = signals;
        changed
    });
    Ok(())
}

fn drain(db: &Connection) -> rusqlite::Result<(Vec<String>, Vec<LedgerCommit>)> {
    let violations = texts(db, "DELETE FROM sim_violations RETURNING what")?;
    let sql = "DELETE FROM sim_commits RETURNING job, chunk, epoch";
    let mut statement = db.prepare_cached(sql)?;
    let commits = statement.query_map([], |row| {
        Ok(LedgerCommit { job: row.get(0)?, chunk: row.get(1)?, epoch: row.get(2)? })
    })?;
    Ok((violations, commits.collect::<Result<_, _>>()?))
}

/// Nothing commits to a chunk that has ended, except the lease that failed it.
fn check_ledger_commit(env: &Environment, commit: &LedgerCommit) -> rusqlite::Result<()> {
    let LedgerCommit { job, chunk, epoch } = commit;
    let sql = "SELECT c.status, c.epoch, j.redrive FROM windlass_chunks c JOIN windlass_jobs j \
               ON j.id = c.job_id WHERE c.job_id = ?1 AND c.number = ?2";
    let found = env.store.with(|db| {
        let row = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, bool>(2)?))
        };
        db.prepare_cached(sql)?.query_row((job, chunk), row).optional()
    })?;
    let Some((status, last, redrive)) = found else { return Ok(()) };
    let forbidden = match status.as_str() {
        "CANCELLED" | "COMPLETED" => true,
        "FAILED" => redrive || *epoch != last,
        _ => false,
    };
    if forbidden {
        env.violate(format!(
            "epoch {epoch} committed to chunk {chunk} of {job}, which is {status}"
        ));
    }
    Ok(())
}

pub(crate) fn texts(db: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = db.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    rows.collect()
}

/// The function that contains a call's work, without its modules. The innermost closure is that of the work.
pub(crate) fn short_name(path: &str) -> &str {
    let work = path.split("::{{closure}}").next().unwrap_or(path);
    let (function, arguments) = match work.strip_suffix('>') {
        Some(inner) => inner.split_at(opening(inner)),
        None => (work, ""),
    };
    match function.rsplit("::").next().unwrap_or_default() {
        // A function whose work is another function, not a closure.
        "read" | "write" => arguments.rsplit("::").next().unwrap_or_default(),
        name => name,
    }
}

/// Where the last list of arguments begins, whose end was cut off.
fn opening(text: &str) -> usize {
    let mut open = 1;
    for (at, character) in text.char_indices().rev() {
        match character {
            '>' => open += 1,
            '<' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_after_the_function_with_its_work() {
        let trait_method = "a::<impl a::Store>::read<uuid::Uuid, a::<impl b::History for a::Store>::identity<'_, '_>\
                            ::{{closure}}::{{closure}}>::{{closure}}::{{closure}}";
        assert_eq!(short_name(trait_method), "identity");
        assert_eq!(
            short_name("a::execute<(&str, Option<alloc::string::String>)>::{{closure}}"),
            "execute"
        );
        assert_eq!(short_name("a::write<(), a::schema::apply>::{{closure}}::{{closure}}"), "apply");
    }
}
