//! The PostgreSQL programs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::account::Account;

/// The installation the tests use.
pub(super) struct Binaries {
    folder: PathBuf,
    pub(super) account: Account,
}

impl Binaries {
    /// Searches `WINDLASS_PG_BIN`, then Debian's folders (the highest version), then PATH.
    pub(super) fn find() -> Self {
        let folder = env::var_os("WINDLASS_PG_BIN")
            .map(PathBuf::from)
            .or_else(highest_debian_version)
            .or_else(in_path)
            .expect("the PostgreSQL server programs are not installed (Debian package: postgresql); WINDLASS_PG_BIN may name their folder");
        Self { folder, account: Account::find() }
    }

    /// A program of this installation, with its user and its working folder set.
    pub(super) fn command(&self, program: &str, folder: &Path) -> Command {
        self.account.command(&self.folder.join(program), folder)
    }

    /// The version in digits, such as `16.9`.
    pub(super) fn version(&self) -> String {
        let output = Command::new(self.folder.join("postgres"))
            .arg("--version")
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}", self.folder.join("postgres").display()));
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.split_whitespace().find(|word| word.starts_with(char::is_numeric));
        version.expect("`postgres --version` prints no version").to_owned()
    }
}

fn highest_debian_version() -> Option<PathBuf> {
    fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|version| version.join("bin/initdb").is_file())
        .max_by_key(|version| version.file_name()?.to_str()?.parse::<u32>().ok())
        .map(|version| version.join("bin"))
}

fn in_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}
