//! Child processes that the kernel ends together with the test process, even when it is killed.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Mutex, OnceLock, mpsc};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};

/// Starts `command`; when this process dies, the child receives `signal`.
pub(crate) fn spawn(mut command: Command, signal: Signal) -> io::Result<Child> {
    die_with_parent(&mut command, signal);
    let (answer, child) = mpsc::channel();
    spawner().lock().unwrap().send((command, answer)).expect("the spawner thread never ends");
    child.recv().expect("the spawner thread answers every request")
}

type Request = (Command, mpsc::Sender<io::Result<Child>>);

/// The kernel sends the signal when the *thread* that spawned ends, and the thread of a test ends
/// long before its process: so all children are born in one thread that never ends.
fn spawner() -> &'static Mutex<mpsc::Sender<Request>> {
    static SPAWNER: OnceLock<Mutex<mpsc::Sender<Request>>> = OnceLock::new();
    SPAWNER.get_or_init(|| {
        let (requests, inbox) = mpsc::channel::<Request>();
        std::thread::Builder::new()
            .name("testkit-spawner".into())
            .spawn(move || {
                for (mut command, answer) in inbox {
                    // A requester that is gone has no use for the child: it is not kept.
                    if let Err(mpsc::SendError(Ok(mut orphan))) = answer.send(command.spawn()) {
                        let _ = orphan.kill();
                        let _ = orphan.wait();
                    }
                }
            })
            .expect("a thread starts");
        Mutex::new(requests)
    })
}

#[expect(unsafe_code, reason = "pre_exec is the only place between fork and exec, and is unsafe")]
fn die_with_parent(command: &mut Command, signal: Signal) {
    let parent = Pid::from_raw(i32::try_from(std::process::id()).expect("a pid fits"));
    let before_exec = move || {
        set_pdeathsig(signal)?;
        // The parent may have died before the line above: then no signal would ever come.
        if getppid() != parent {
            return Err(io::Error::from_raw_os_error(nix::libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: the closure makes two system calls and allocates nothing, as it must after a fork.
    // It runs after the change of user, which would have cleared the death signal.
    unsafe {
        command.pre_exec(before_exec);
    }
}
