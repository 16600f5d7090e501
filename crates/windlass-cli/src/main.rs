//! The `windlass` binary: reads the command line and leaves with the exit code it promises.

mod cli;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    keep_memory_flat();
    leave_quietly_when_nobody_reads();
    cli::main(cli::parse()).await
}

/// The C library keeps freed memory for each of many threads, so that a process that exports grows
/// for as long as it works. Two such stores are as fast.
fn keep_memory_flat() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code, reason = "a setting of the C library, which has no safe way to it")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// `windlass jobs | head` closes our output early, which is no error. The signal for it stays
/// ignored, since a pipe to a child process may break too.
fn leave_quietly_when_nobody_reads() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>();
        if text.is_some_and(|text| text.starts_with("failed printing to stdout")) {
            std::process::exit(0);
        }
        report(panic);
    }));
}
