//! New clusters, copied from a template because `initdb` takes longer than most tests.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::binaries::Binaries;
use crate::folder::Folder;

/// The superuser of every cluster; it needs no password.
pub(crate) const USER: &str = "windlass";

/// Fills the data folder of a new server.
pub(super) fn create(binaries: &Binaries, folder: &Folder) {
    let template = template(binaries);
    if !template.exists() {
        make_template(binaries, folder, &template);
    }
    let owner = fs::metadata(&template).expect("the template was made").uid();
    assert_eq!(owner, binaries.account.uid, "{} belongs to somebody else", template.display());
    must_succeed(Command::new("cp").arg("-a").arg(&template).arg(folder.data()));
}

/// Where the template of this version and user is kept between runs.
pub(super) fn template(binaries: &Binaries) -> PathBuf {
    let name = format!("windlass-testkit-pg-{}-{}", binaries.version(), binaries.account.uid);
    env::temp_dir().join(name)
}

/// Makes the template elsewhere and renames it, so that nobody ever copies half of one.
fn make_template(binaries: &Binaries, folder: &Folder, template: &Path) {
    let fresh = folder.path().join("template");
    must_succeed(
        binaries
            .command("initdb", folder.path())
            .args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"])
            .arg(format!("--username={USER}"))
            .arg("-D")
            .arg(&fresh),
    );
    if let Err(error) = fs::rename(&fresh, template) {
        // Another process was faster; its template is as good as ours.
        assert!(template.exists(), "{}: {error}", template.display());
        let _ = fs::remove_dir_all(&fresh);
    }
}

fn must_succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {complaint}");
}
