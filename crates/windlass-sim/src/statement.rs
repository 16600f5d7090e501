//! Replaces SQLite's functions that compile and execute a statement, so that a mutant can change the text of one, or end
//! its transaction early.

use crate::mutant::Mutant;
use crate::system;
use rusqlite::ffi;
use std::ffi::{c_char, c_int, c_uint};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static MUTANT: OnceLock<&'static Mutant> = OnceLock::new();

/// Changes statements from now on.
pub(crate) fn mutate(mutant: &'static Mutant) {
    let _ = MUTANT.set(mutant);
}

/// Whether the statement was executed after which the transaction ends early.
static SPLIT: AtomicBool = AtomicBool::new(false);

/// How often what follows an early end fails.
const FAILURES_PER_CENT: u64 = 30;

fn mutated(sql: &[u8]) -> Option<String> {
    MUTANT.get()?.apply(std::str::from_utf8(sql).ok()?)
}

#[allow(unsafe_code, reason = "it stands for a function of SQLite's C interface")]
mod wrapped {
    use super::*;

    unsafe extern "C" {
        fn __real_sqlite3_step(statement: *mut ffi::sqlite3_stmt) -> c_int;
        fn __real_sqlite3_prepare_v3(
            db: *mut ffi::sqlite3,
            sql: *const c_char,
            length: c_int,
            flags: c_uint,
            statement: *mut *mut ffi::sqlite3_stmt,
            tail: *mut *const c_char,
        ) -> c_int;
    }

    /// Commits the transaction before the first statement that follows the one of the mutant, and may then fail.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn __wrap_sqlite3_step(statement: *mut ffi::sqlite3_stmt) -> c_int {
        let Some(marker) = MUTANT.get().and_then(|mutant| mutant.splits_after) else {
            // SAFETY: the argument is passed on.
            return unsafe { __real_sqlite3_step(statement) };
        };
        // SAFETY: the function accepts a statement without text.
        let text = unsafe { ffi::sqlite3_sql(statement) };
        let sql = match text.is_null() {
            true => Default::default(),
            // SAFETY: it is the text that the statement was compiled from, which lives as long.
            false => unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy(),
        };
        if sql.contains(marker) {
            SPLIT.store(true, Relaxed);
        } else if SPLIT.swap(false, Relaxed)
            && !sql.starts_with("COMMIT")
            && !sql.starts_with("ROLLBACK")
        {
            let (sql, none) = (c"COMMIT; BEGIN IMMEDIATE".as_ptr(), std::ptr::null_mut());
            // SAFETY: the connection is that of the statement.
            unsafe {
                ffi::sqlite3_exec(
                    ffi::sqlite3_db_handle(statement),
                    sql,
                    None,
                    none,
                    std::ptr::null_mut(),
                )
            };
            if system::entropy() % 100 < FAILURES_PER_CENT {
                return ffi::SQLITE_IOERR;
            }
        }
        // SAFETY: the argument is passed on.
        unsafe { __real_sqlite3_step(statement) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn __wrap_sqlite3_prepare_v3(
        db: *mut ffi::sqlite3,
        sql: *const c_char,
        length: c_int,
        flags: c_uint,
        statement: *mut *mut ffi::sqlite3_stmt,
        tail: *mut *const c_char,
    ) -> c_int {
        // SAFETY: rusqlite passes a text of this length.
        let text = unsafe { std::slice::from_raw_parts(sql.cast::<u8>(), length as usize) };
        let Some(changed) = mutated(text) else {
            // SAFETY: the arguments are passed on.
            return unsafe { __real_sqlite3_prepare_v3(db, sql, length, flags, statement, tail) };
        };
        let (start, size) = (changed.as_ptr().cast(), changed.len() as c_int);
        // SAFETY: the text lives until the call returns. A mutant changes single statements, so nothing follows.
        unsafe {
            let result = __real_sqlite3_prepare_v3(db, start, size, flags, statement, tail);
            if !tail.is_null() {
                *tail = sql.add(length as usize);
            }
            result
        }
    }
}
