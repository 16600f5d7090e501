//! Ensures that child processes never outlive Windlass, however it ends.
//!
//! Each child leads its own process group. A small shell process, the guard, knows all groups and reads
//! from a pipe that only this process holds open. When this process ends, also by `kill -9`, the pipe
//! closes and the guard kills every group.

use nix::unistd::{Pid, getpid, write};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Reads lines `+ GROUP` and `- GROUP`; at the end of its input it kills the remaining groups. It ignores
/// the signals that a terminal sends to its processes, so that it ends after this process.
const SCRIPT: &str = "
trap '' HUP INT TERM
groups=
while read -r sign group; do
    left=
    for known in $groups; do
        [ \"$known\" = \"$group\" ] || left=\"$left $known\"
    done
    groups=$left
    [ \"$sign\" = + ] && groups=\"$groups $group\"
done
for group in $groups; do
    kill -s KILL -- \"-$group\"
done
";

struct Guard {
    shell: Child,
    pipe: ChildStdin,
}

/// The guard and the groups it knows. A new guard that replaces it must learn them too.
struct Registry {
    guard: Option<Guard>,
    groups: BTreeSet<i32>,
}

/// Starts a child whose process group the guard knows.
pub(super) fn spawn(mut command: tokio::process::Command) -> io::Result<tokio::process::Child> {
    let mut registry = registry();
    if !registry.guard.as_mut().is_some_and(Guard::is_alive) {
        let mut guard = Guard::start()?;
        for group in &registry.groups {
            writeln!(guard.pipe, "+ {group}")?;
        }
        registry.guard = Some(guard);
    }
    if let Some(guard) = &registry.guard {
        register_before_exec(&mut command, &guard.pipe)?;
    }
    let child = command.process_group(0).spawn()?;
    registry.groups.extend(child.id().map(|id| id as i32));
    Ok(child)
}

/// Removes a group that no longer exists. Its id may soon belong to another group.
pub(super) fn unregister(group: Pid) {
    let mut registry = registry();
    registry.groups.remove(&group.as_raw());
    if let Some(guard) = &mut registry.guard {
        let _ = writeln!(guard.pipe, "- {group}");
    }
}

/// The child sends its group to the guard between fork and exec. So the user's program never runs without
/// the guard knowing it, and does not start if the guard cannot be told.
#[expect(unsafe_code, reason = "pre_exec is the only place between fork and exec, and is unsafe")]
fn register_before_exec(
    command: &mut tokio::process::Command,
    pipe: &ChildStdin,
) -> io::Result<()> {
    let pipe = pipe.as_fd().try_clone_to_owned()?;
    let before_exec = move || {
        let mut line = [0u8; 16];
        let mut unused = &mut line[..];
        writeln!(unused, "+ {}", getpid())?;
        let unused = unused.len();
        write(&pipe, &line[..16 - unused])?;
        Ok(())
    };
    // SAFETY: the closure formats a number on its stack and makes two system calls. It does not
    // allocate, which is forbidden after a fork.
    unsafe {
        command.pre_exec(before_exec);
    }
    Ok(())
}

impl Guard {
    fn start() -> io::Result<Guard> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "windlass-guard"]).current_dir("/").env_clear();
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut shell = command.spawn()?;
        let pipe = shell.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Guard { shell, pipe })
    }

    /// Whether the shell is still running; it may have been killed.
    fn is_alive(&mut self) -> bool {
        matches!(self.shell.try_wait(), Ok(None))
    }
}

fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: Mutex<Registry> =
        Mutex::new(Registry { guard: None, groups: BTreeSet::new() });
    REGISTRY.lock()
}
