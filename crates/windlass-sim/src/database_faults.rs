//! What happens to a database as a whole: a restore from a backup, and a crash that loses the last commits.

use crate::focus::Focus;
use crate::process::Processes;
use crate::wire::Side;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// After this time no request of a stopped process is on its way any more.
const LONGEST_REQUEST: Duration = Duration::from_secs(60);

/// Restores the store from a backup that has all jobs, as docs/operations.md says.
pub(crate) async fn restore_store(processes: Arc<Processes>) {
    let env = &processes.env;
    let requests = crate::run::requests(env).count();
    while env.submitted.load(Relaxed) < requests {
        tokio::time::sleep(SECOND / 10).await;
    }
    tokio::time::sleep(env.between(Duration::ZERO, 10 * SECOND)).await;
    let Ok(backup) = env.image(Side::Store) else { return };
    env.add("oper", "store backed up");
    tokio::time::sleep(env.between(SECOND / 10, 20 * SECOND)).await;
    processes.halt();
    env.add("oper", "all processes stopped");
    if env.plan.focus == Focus::Restores {
        tokio::time::sleep(LONGEST_REQUEST).await;
        env.restored_quietly.store(true, Relaxed);
    } else {
        tokio::time::sleep(env.between(Duration::ZERO, 10 * SECOND)).await;
    }
    if let Err(error) = env.restore(Side::Store, &backup) {
        return env.violate(format!("the simulation failed: {error}"));
    }
    env.add("oper", "store restored");
    processes.continue_after_restore().await;
}

/// The database with the data flushes now and then. A crash loses what was committed since. The ledger's tables are
/// never lost: in practice they are much older, and a person would have to create them again.
pub(crate) async fn lose_data(processes: Arc<Processes>) {
    let env = &processes.env;
    loop {
        let Ok(flushed) = env.image(Side::App) else { return };
        let often = env.plan.focus == Focus::LostCommits;
        let longest = if often { SECOND } else { 10 * SECOND };
        tokio::time::sleep(env.between(SECOND / 10, longest)).await;
        if !often && env.pick(4) > 0 || !has_ledger(&flushed) {
            continue;
        }
        env.add("data", "crashes, and loses what it has not flushed");
        env.data_lost.store(true, Relaxed);
        if let Err(error) = env.restore(Side::App, &flushed) {
            return env.violate(format!("the simulation failed: {error}"));
        }
        if often {
            // Time for what is sent after a crash to arrive late, and not to be lost by the next one.
            tokio::time::sleep(env.between(Duration::ZERO, 6 * SECOND)).await;
        }
    }
}

/// Whether an image of a database has the ledger's tables. Its schema has their names as text.
fn has_ledger(image: &[u8]) -> bool {
    image.windows(LEDGER.len()).any(|part| part == LEDGER)
}

const LEDGER: &[u8] = b"windlass_ledger";
