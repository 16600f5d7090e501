//! Child processes that the kernel kills when the test process dies, even if it is killed.

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
    spawner().lock().unwrap().send((command, answer)).expect("the spawner thread has ended");
    child.recv().expect("the spawner thread has ended")
}

type Request = (Command, mpsc::Sender<io::Result<Child>>);

/// The kernel sends the signal when the *thread* that spawned the child ends, and a test's thread ends before the
/// process. So one thread that never ends spawns all children.
fn spawner() -> &'static Mutex<mpsc::Sender<Request>> {
    static SPAWNER: OnceLock<Mutex<mpsc::Sender<Request>>> = OnceLock::new();
    SPAWNER.get_or_init(|| {
        let (requests, inbox) = mpsc::channel::<Request>();
        std::thread::Builder::new()
            .name("testkit-spawner".into())
            .spawn(move || {
                for (mut command, answer) in inbox {
                    // The requester is gone, so the child is not needed.
                    if let Err(mpsc::SendError(Ok(mut orphan))) = answer.send(command.spawn()) {
                        let _ = orphan.kill();
                        let _ = orphan.wait();
                    }
                }
            })
            .expect("failed to start a thread");
        Mutex::new(requests)
    })
}

#[expect(unsafe_code, reason = "only pre_exec runs between fork and exec, and it is unsafe")]
fn die_with_parent(command: &mut Command, signal: Signal) {
    let parent =
        Pid::from_raw(i32::try_from(std::process::id()).expect("a process id fits into i32"));
    let before_exec = move || {
        set_pdeathsig(signal)?;
        // If the parent died before the call above, no signal will come.
        if getppid() != parent {
            return Err(io::Error::from_raw_os_error(nix::libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: the closure makes two system calls and does not allocate, as required after a fork.
    // It runs after the change of user, which would clear the death signal.
    unsafe {
        command.pre_exec(before_exec);
    }
}
