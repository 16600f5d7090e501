//! Waits for a lock of another process, and logs long waits.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::ErrorCode;

use super::holder;
use crate::Error;

/// The timeout of acquiring a lock.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// A wait is logged after this time, and again whenever it has doubled.
const FIRST_NOTICE: Duration = Duration::from_secs(2);
/// The delays between two tries, as in SQLite's own handler.
const RETRY_DELAYS_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];

/// The current wait of a thread. Thread-local, since SQLite's handler is a plain function.
struct Wait {
    file: PathBuf,
    /// The start of the current attempt.
    attempt: Instant,
    /// The start of the first attempt since the last success.
    since: Option<Instant>,
    notice_after: Duration,
}

thread_local! {
    static WAIT: RefCell<Option<Wait>> = const { RefCell::new(None) };
}

/// Sets the file of this thread, without a wait.
pub(super) fn begin(file: &Path) {
    let wait = Wait {
        file: file.to_owned(),
        attempt: Instant::now(),
        since: None,
        notice_after: FIRST_NOTICE,
    };
    WAIT.set(Some(wait));
}

/// Resets the wait after the lock was acquired.
pub(super) fn taken() {
    WAIT.with_borrow_mut(|wait| {
        if let Some(wait) = wait {
            (wait.since, wait.notice_after) = (None, FIRST_NOTICE);
        }
    });
}

/// Sleeps before the next try. Returns false when the attempt has timed out. `tries` counts from zero in each
/// attempt.
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
    // Without a file, the duration follows from the number of tries.
    let (goes_on, notice) = notice.unwrap_or((tries < 100, None));
    if let Some((file, waited)) = notice {
        tracing::warn!(
            "waiting for the write lock of {} for {} s, {}; the attempt times out after {} s",
            file.display(),
            waited.as_secs(),
            holder::describe(&file),
            LOCK_TIMEOUT.as_secs()
        );
    }
    if goes_on {
        let delay = usize::try_from(tries).ok().and_then(|tries| RETRY_DELAYS_MS.get(tries));
        std::thread::sleep(Duration::from_millis(*delay.unwrap_or(&100)));
    }
    goes_on
}

/// Adds the file and the lock holder to the error of a timed-out attempt.
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
