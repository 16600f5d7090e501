//! The operating-system user that test servers run as.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::unistd::{Uid, User, getgid, getuid};

/// Database servers refuse to run as root. Under root this is the user `postgres`, otherwise the current user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    pub(crate) fn find() -> Self {
        if !Uid::current().is_root() {
            return Self { uid: getuid().as_raw(), gid: getgid().as_raw() };
        }
        let user = User::from_name("postgres")
            .expect("failed to read the user database")
            .expect("there is no user `postgres`, which servers run as under root");
        Self { uid: user.uid.as_raw(), gid: user.gid.as_raw() }
    }

    /// A command that runs as this user in `folder`.
    pub(crate) fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(folder).stdin(Stdio::null());
        if Uid::current().is_root() {
            command.uid(self.uid).gid(self.gid);
        }
        command
    }
}
