//! The folder of one test server. It is removed with the server, or by a later test process if this one is killed.

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

/// The name contains the process id, so that other processes can tell whether the folder is in use.
const PREFIX: &str = "windlass-testkit-of-";

/// A temporary folder that is owned by the user of the server.
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
                        .expect("failed to change the owner of a folder");
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

/// Removes the folders of dead processes. Removing another user's folder fails, which is ignored.
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
