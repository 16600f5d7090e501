//! Waiting for a lock that another process holds. A wait that takes long says what it waits for.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::ErrorCode;

use super::holder;
use crate::Error;

/// An attempt to take a lock gives up after this.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// A wait is logged after this, and again whenever it has taken twice as long.
const FIRST_NOTICE: Duration = Duration::from_secs(2);
/// The waits between two tries, as SQLite's own handler has them.
const DELAYS_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];

/// The wait of a thread. SQLite's handler is a plain function, so this cannot be a parameter.
struct Wait {
    file: PathBuf,
    /// When this attempt began.
    attempt: Instant,
    /// When the first attempt began that was followed by no success.
    since: Option<Instant>,
    notice_after: Duration,
}

thread_local! {
    static WAIT: RefCell<Option<Wait>> = const { RefCell::new(None) };
}

/// Says which file this thread works on from now on; no wait has begun.
pub(super) fn begin(file: &Path) {
    let wait = Wait {
        file: file.to_owned(),
        attempt: Instant::now(),
        since: None,
        notice_after: FIRST_NOTICE,
    };
    WAIT.set(Some(wait));
}

/// The lock was taken: the next wait is a new one.
pub(super) fn taken() {
    WAIT.with_borrow_mut(|wait| {
        if let Some(wait) = wait {
            (wait.since, wait.notice_after) = (None, FIRST_NOTICE);
        }
    });
}

/// Waits a moment before the next try; false when it is time to give up. `tries` counts those of this
/// attempt from zero.
pub(super) fn wait(tries: i32) -> bool {
    let notice = WAIT.with_borrow_mut(|wait| {
        let wait = wait.as_mut()?;
        if tries == 0 {
            wait.attempt = Instant::now();
        }
        let waited = wait.since.get_or_insert(wait.attempt).elapsed();
        let due = waited >= wait.notice_after;
        if due {
            wait.notice_after = waited * 2;
        }
        Some((wait.attempt.elapsed() < LOCK_TIMEOUT, due.then(|| (wait.file.clone(), waited))))
    });
    // Without a file nothing is known of the wait but its tries, which take as long.
    let (goes_on, notice) = notice.unwrap_or((tries < 100, None));
    if let Some((file, waited)) = notice {
        tracing::warn!(
            "waiting for the write lock of {} for {} s, {}; an attempt gives up after {} s",
            file.display(),
            waited.as_secs(),
            holder::describe(&file),
            LOCK_TIMEOUT.as_secs()
        );
    }
    if goes_on {
        let delay = usize::try_from(tries).ok().and_then(|tries| DELAYS_MS.get(tries));
        std::thread::sleep(Duration::from_millis(*delay.unwrap_or(&100)));
    }
    goes_on
}

/// Adds to the error of an attempt that gave up, what was waited for.
pub(super) fn explain(error: rusqlite::Error) -> Error {
    let gave_up = error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
    let error = Error::from(error);
    let file = WAIT.with_borrow(|wait| wait.as_ref().map(|wait| wait.file.clone()));
    match file.filter(|_| gave_up) {
        Some(file) => {
            let message = format!(
                "the write lock of {} was not free within {} s, {}",
                file.display(),
                LOCK_TIMEOUT.as_secs(),
                holder::describe(&file)
            );
            Error { message, ..error }
        }
        None => error,
    }
}
