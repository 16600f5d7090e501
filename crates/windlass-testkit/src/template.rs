//! Data folders of new servers, copied from a template because initialising one takes longer than most tests.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::account::Account;
use crate::folder::Folder;

/// Fills the data folder of a new server from a template, which is kept between runs and created if missing. It is
/// created under another name and then renamed, so that no process copies an incomplete one.
pub(crate) fn fill(
    template: &Path,
    account: Account,
    folder: &Folder,
    make: impl FnOnce(&Path) -> Command,
) {
    if !template.exists() {
        let fresh = folder.path().join("template");
        must_succeed(&mut make(&fresh));
        if let Err(error) = fs::rename(&fresh, template) {
            // Another process created the template first; use that one.
            assert!(template.exists(), "{}: {error}", template.display());
            let _ = fs::remove_dir_all(&fresh);
        }
    }
    let owner = fs::metadata(template).expect("the template does not exist").uid();
    assert_eq!(owner, account.uid, "{} belongs to another user", template.display());
    must_succeed(Command::new("cp").arg("-a").arg(template).arg(folder.data()));
}

fn must_succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {complaint}");
}
