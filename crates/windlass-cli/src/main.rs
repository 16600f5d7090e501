//! The `windlass` binary: parses the command line, runs the command and returns its exit code.

mod cli;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    limit_malloc_arenas();
    exit_quietly_on_broken_pipe();
    cli::main(cli::parse()).await
}

/// glibc keeps freed memory in one arena per thread, so the memory of a process that exports would keep
/// growing. Two arenas are as fast.
fn limit_malloc_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[allow(unsafe_code, reason = "mallopt has no safe wrapper")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// `windlass jobs | head` closes standard output early, which is not an error. SIGPIPE stays ignored,
/// because a pipe to a child process may break too.
fn exit_quietly_on_broken_pipe() {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>();
        if text.is_some_and(|text| text.starts_with("failed printing to stdout")) {
            std::process::exit(0);
        }
        default_hook(panic);
    }));
}
