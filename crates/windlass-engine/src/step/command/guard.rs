//! Children never outlive Windlass, however it ends.
//!
//! Each child leads a process group of its own. A small shell, the guard, knows all of them and
//! waits on a pipe that only this process holds open. When this process ends, by `kill -9` too, the
//! pipe ends and the guard kills every group it knows.

use nix::unistd::{Pid, getpid, write};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reads `+ GROUP` and `- GROUP`, and at the end kills the groups that are left. Signals to the
/// terminal's processes are not for it: it ends with us, and not before.
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

/// The guard, and the groups it knows: one that takes its place must know them too.
struct Post {
    guard: Option<Guard>,
    groups: BTreeSet<i32>,
}

/// Starts a child under guard.
pub(super) fn spawn(mut command: tokio::process::Command) -> io::Result<tokio::process::Child> {
    let mut post = post();
    if !post.guard.as_mut().is_some_and(Guard::lives) {
        let mut guard = Guard::start()?;
        for group in &post.groups {
            writeln!(guard.pipe, "+ {group}")?;
        }
        post.guard = Some(guard);
    }
    if let Some(guard) = &post.guard {
        report_to(&mut command, &guard.pipe)?;
    }
    let child = command.process_group(0).spawn()?;
    post.groups.extend(child.id().map(|id| id as i32));
    Ok(child)
}

/// The group is gone, and its number may soon be another's.
pub(super) fn forget(group: Pid) {
    let mut post = post();
    post.groups.remove(&group.as_raw());
    if let Some(guard) = &mut post.guard {
        let _ = writeln!(guard.pipe, "- {group}");
    }
}

/// The child names its group to the guard before it becomes the user's program: there is no moment
/// in which it runs unknown, and without a guard to tell it does not run at all.
#[expect(unsafe_code, reason = "pre_exec is the only place between fork and exec, and is unsafe")]
fn report_to(command: &mut tokio::process::Command, pipe: &ChildStdin) -> io::Result<()> {
    let pipe = pipe.as_fd().try_clone_to_owned()?;
    let before_exec = move || {
        let mut line = [0u8; 16];
        let mut rest = &mut line[..];
        writeln!(rest, "+ {}", getpid())?;
        let left = rest.len();
        write(&pipe, &line[..16 - left])?;
        Ok(())
    };
    // SAFETY: the closure formats a number on its stack and makes two system calls; it allocates
    // nothing, as it must not after a fork.
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

    /// Somebody may have killed it.
    fn lives(&mut self) -> bool {
        matches!(self.shell.try_wait(), Ok(None))
    }
}

fn post() -> MutexGuard<'static, Post> {
    static POST: Mutex<Post> = Mutex::new(Post { guard: None, groups: BTreeSet::new() });
    POST.lock().unwrap_or_else(PoisonError::into_inner)
}
