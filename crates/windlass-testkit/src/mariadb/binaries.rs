//! The MariaDB programs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::account::Account;

/// The installation the tests use.
pub(super) struct Binaries {
    server: PathBuf,
    install: PathBuf,
    pub(super) account: Account,
}

impl Binaries {
    /// Searches PATH and /usr/sbin, which Debian puts only on root's PATH.
    pub(super) fn find() -> Self {
        let find = |program: &str| {
            let path = env::var_os("PATH").unwrap_or_default();
            let mut folders = env::split_paths(&path).chain(["/usr/sbin".into()]);
            let found = folders.find(|folder| folder.join(program).is_file());
            found.map(|folder| folder.join(program)).unwrap_or_else(|| {
                panic!(
                    "MariaDB's {program} is needed: install it (Debian: mariadb-server-core and \
                     mariadb-client-core)"
                )
            })
        };
        Self {
            server: find("mariadbd"),
            install: find("mariadb-install-db"),
            account: Account::find(),
        }
    }

    /// The server program, with its user and its working folder set.
    pub(super) fn server(&self, folder: &Path) -> Command {
        self.account.command(&self.server, folder)
    }

    /// The program that initialises a data folder.
    pub(super) fn install(&self, folder: &Path) -> Command {
        self.account.command(&self.install, folder)
    }

    /// The version in digits, such as `10.11.6`.
    pub(super) fn version(&self) -> String {
        let output = Command::new(&self.server).arg("--version").output();
        let output = output.unwrap_or_else(|error| panic!("{}: {error}", self.server.display()));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.split_whitespace().find(|word| word.starts_with(char::is_numeric));
        let version = version.expect("`mariadbd --version` prints no version");
        version.split('-').next().unwrap_or(version).to_owned()
    }
}
