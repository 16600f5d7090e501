//! Replaces the clock, the entropy and the waiting of the operating system, for this program alone.
//!
//! The functions below have the names of functions of the C library. The linker binds every call in the program to
//! them: those of Rust's standard library (`Instant`, `SystemTime`, the keys of `HashMap`), of tokio (`select!`, its
//! timers), of `uuid` and `rand`, and of SQLite. So no other code needs a hook for time or randomness, and everything
//! follows from the seed. Until [`start`] they pass on to the kernel.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use libc::{c_int, c_long, c_uint, c_void, clockid_t, size_t, ssize_t, timespec, timeval};

static SIMULATED: AtomicBool = AtomicBool::new(false);
/// Nanoseconds since the start of the simulation.
static ELAPSED: AtomicU64 = AtomicU64::new(0);
/// How far the clock of the day was set forward or back, in nanoseconds.
static CLOCK_SET_BY: AtomicI64 = AtomicI64::new(0);
static ENTROPY: AtomicU64 = AtomicU64::new(0);

const SECOND: u64 = 1_000_000_000;
/// The time of day at which every simulation begins: 2026-01-01 00:00:30 UTC.
const START_OF_DAY: u64 = 1_767_225_630 * SECOND;
/// The monotonic clock at the start.
const UPTIME: u64 = 100_000 * SECOND;
/// What reading a clock takes, so that a loop which waits for a time without sleeping ends.
const CLOCK_READ: u64 = 100;
/// The processors that the program sees.
const PROCESSORS: u8 = 0b11;

/// Begins the simulation: from now on time passes only when every task waits.
#[allow(unsafe_code, reason = "SQLite's generator is seeded by a function of its C interface")]
pub(crate) fn start(seed: u64) {
    ENTROPY.store(seed, Relaxed);
    SIMULATED.store(true, Relaxed);
    // Zero would mean no seed.
    let seed = (seed as c_uint) | 1;
    let connection: *mut rusqlite::ffi::sqlite3 = std::ptr::null_mut();
    // SAFETY: the arguments are those that this operation documents.
    unsafe {
        rusqlite::ffi::sqlite3_test_control(
            rusqlite::ffi::SQLITE_TESTCTRL_PRNG_SEED,
            seed,
            connection,
        );
    }
}

/// The time since the start of the simulation.
pub(crate) fn elapsed() -> Duration {
    Duration::from_nanos(ELAPSED.load(Relaxed))
}

/// Sets the clock of the day forward, or back if negative. The monotonic clock is not changed.
pub(crate) fn set_clock(by: chrono::Duration) {
    CLOCK_SET_BY.fetch_add(by.num_nanoseconds().unwrap_or(0), Relaxed);
}

fn read_clock() -> u64 {
    ELAPSED.fetch_add(CLOCK_READ, Relaxed)
}

fn time_of_day() -> u64 {
    (START_OF_DAY + read_clock()).saturating_add_signed(CLOCK_SET_BY.load(Relaxed))
}

/// The next number of the SplitMix64 sequence.
pub(crate) fn entropy() -> u64 {
    let mut z = ENTROPY.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[allow(unsafe_code, reason = "they replace functions of the C library")]
mod overrides {
    use super::*;

    #[unsafe(no_mangle)]
    unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
        if !SIMULATED.load(Relaxed) {
            // SAFETY: the arguments are passed on.
            return unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) } as c_int;
        }
        let nanoseconds = match clock {
            libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => time_of_day(),
            _ => UPTIME + read_clock(),
        };
        let (seconds, rest) = (nanoseconds / SECOND, nanoseconds % SECOND);
        // SAFETY: the caller passes a valid pointer.
        unsafe { *time = timespec { tv_sec: seconds as i64, tv_nsec: rest as c_long } };
        0
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int {
        if !SIMULATED.load(Relaxed) {
            // SAFETY: the arguments are passed on.
            return unsafe { libc::syscall(libc::SYS_gettimeofday, time, zone) } as c_int;
        }
        let microseconds = time_of_day() / 1000;
        let (seconds, rest) = (microseconds / 1_000_000, microseconds % 1_000_000);
        // SAFETY: the caller passes a valid pointer.
        unsafe { *time = timeval { tv_sec: seconds as i64, tv_usec: rest as i64 } };
        0
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn getrandom(buffer: *mut c_void, length: size_t, flags: c_uint) -> ssize_t {
        if !SIMULATED.load(Relaxed) {
            // SAFETY: the arguments are passed on.
            return unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) } as ssize_t;
        }
        for at in 0..length {
            // SAFETY: the caller passes a buffer of this length.
            unsafe { *buffer.cast::<u8>().add(at) = entropy() as u8 };
        }
        length as ssize_t
    }

    /// The only place where the program waits. Nothing outside of it can wake it, so waiting means that the clock
    /// moves to the next timer.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn epoll_wait(
        epoll: c_int,
        events: *mut libc::epoll_event,
        most: c_int,
        timeout: c_int,
    ) -> c_int {
        let wait = |timeout: c_int| {
            let signals = std::ptr::null::<c_void>();
            let call = libc::SYS_epoll_pwait;
            // SAFETY: the arguments are passed on.
            unsafe { libc::syscall(call, epoll, events, most, timeout, signals, 8) as c_int }
        };
        if !SIMULATED.load(Relaxed) {
            return wait(timeout);
        }
        let ready = wait(0);
        if ready == 0 && timeout < 0 {
            eprintln!("every task waits, and none of them for a time");
            std::process::abort();
        }
        if ready == 0 {
            ELAPSED.fetch_add(timeout as u64 * (SECOND / 1000), Relaxed);
        }
        ready
    }

    /// The engine plans as many segments at once as there are processors.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn sched_getaffinity(
        process: libc::pid_t,
        size: size_t,
        set: *mut libc::cpu_set_t,
    ) -> c_int {
        if !SIMULATED.load(Relaxed) {
            let call = libc::SYS_sched_getaffinity;
            // SAFETY: the arguments are passed on. The system call returns the size, the function zero.
            return unsafe { libc::syscall(call, process, size, set) }.min(0) as c_int;
        }
        // SAFETY: the caller passes a set of this size, which is at least one byte.
        unsafe {
            std::ptr::write_bytes(set.cast::<u8>(), 0, size);
            *set.cast::<u8>() = PROCESSORS;
        }
        0
    }
}
