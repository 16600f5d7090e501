//! New clusters, copied from a template because `initdb` takes longer than most tests.

use std::env;
use std::path::PathBuf;

use super::binaries::Binaries;
use crate::folder::Folder;
use crate::template::fill;

/// The superuser of every cluster. It has no password.
pub(crate) const USER: &str = "windlass";

/// Fills the data folder of a new server.
pub(super) fn create(binaries: &Binaries, folder: &Folder) {
    fill(&template(binaries), binaries.account, folder, |fresh| {
        let mut command = binaries.command("initdb", folder.path());
        command
            .args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])
            .arg(format!("--username={USER}"))
            .arg("-D")
            .arg(fresh);
        command
    });
}

/// The template of this version and user, which is kept between runs.
pub(super) fn template(binaries: &Binaries) -> PathBuf {
    let name = format!("windlass-testkit-pg-{}-{}", binaries.version(), binaries.account.uid);
    env::temp_dir().join(name)
}
