//! The folder of one server, removed with it, or by a later process if ours was killed.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Once;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::account::Account;

/// The name holds the process, so that anyone can tell whether the folder is still in use.
const PREFIX: &str = "windlass-testkit-of-";

/// A temporary folder that belongs to the server's user.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn create(account: Account) -> Self {
        static SWEPT: Once = Once::new();
        SWEPT.call_once(sweep);
        for number in 0.. {
            let name = format!("{PREFIX}{}-{number}", std::process::id());
            let path = env::temp_dir().join(name);
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    chown(&path, Some(account.uid), Some(account.gid))
                        .expect("a new folder can be given to its user");
                    return Self(path);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
        unreachable!("the numbers do not end")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.0.join("server.log")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes what dead processes left. Folders of other users fail to go, and are theirs to sweep.
fn sweep() {
    let Ok(entries) = fs::read_dir(env::temp_dir()) else { return };
    for entry in entries.flatten() {
        if owner(&entry.file_name().to_string_lossy()).is_some_and(is_dead) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn owner(folder: &str) -> Option<Pid> {
    let (pid, _) = folder.strip_prefix(PREFIX)?.split_once('-')?;
    pid.parse().ok().map(Pid::from_raw)
}

fn is_dead(pid: Pid) -> bool {
    kill(pid, None) == Err(Errno::ESRCH)
}
