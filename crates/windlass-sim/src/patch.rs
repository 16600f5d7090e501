//! Removes clauses that are code: a copy of the source tree, in which an argument of the program removes each of them, is
//! built once. So no switch exists in the code itself.

use crate::mutants::MUTANTS;
use anyhow::Context as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package of the changed program.
const PACKAGE: &str = "windlass-sim-mutants";
/// What a build needs.
const COPIED: [&str; 6] = ["Cargo.toml", "Cargo.lock", "crates", "bench", "examples", "xtask"];
/// The version of all packages, and that of the copies. Cargo names what it builds after a package's version and its
/// place in the workspace, and both are built in one target folder: with the same version, the changed program could be
/// linked with the unchanged engine.
const VERSION: (&str, &str) = (
    concat!("version = \"", env!("CARGO_PKG_VERSION"), "\""),
    concat!("version = \"", env!("CARGO_PKG_VERSION"), "+mutants\""),
);
/// What the changed code asks.
const IS_REMOVED: &str = "
/// Whether an argument of the program removes a clause of the protocol.
pub fn is_removed(clause: &str) -> bool {
    std::env::args().any(|argument| argument == clause)
}
";

/// Whether this program is the changed one.
pub(crate) fn is_patched() -> bool {
    env!("CARGO_PKG_NAME") == PACKAGE
}

/// Runs the changed program with the arguments of this one, and returns whether everything held.
pub(crate) fn run_again() -> anyhow::Result<bool> {
    Ok(Command::new(build()?).args(std::env::args_os().skip(1)).status()?.success())
}

/// Builds the changed program, beside this one.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().context("the program has no folder")?;
    // Tests run it in `debug/deps` or `debug`.
    let target = folder.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists());
    let target = target.context("the program is not in a target folder of cargo")?;
    let copy = target.join("mutants");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::create_dir_all(&copy)?;
    for name in COPIED {
        copy_changed(&root, &copy, Path::new(name))?;
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--package", PACKAGE, "--target-dir"])
        .arg(target)
        .current_dir(&copy)
        .output()
        .context("failed to start cargo")?;
    let output = String::from_utf8_lossy(&built.stderr);
    anyhow::ensure!(built.status.success(), "the changed code does not build:\n{output}");
    Ok(target.join("debug").join(PACKAGE))
}

/// Copies a file or folder with the changes of all mutants. A file that is there already is not written again, so that
/// cargo does not build it again.
fn copy_changed(root: &Path, copy: &Path, path: &Path) -> anyhow::Result<()> {
    let (from, to) = (root.join(path), copy.join(path));
    if from.is_dir() {
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(&from)? {
            copy_changed(root, copy, &path.join(entry?.file_name()))?;
        }
        return Ok(());
    }
    let content = fs::read(&from).with_context(|| from.display().to_string())?;
    let content = match std::str::from_utf8(&content) {
        Ok(text) => changed(path, text).into_bytes(),
        Err(_) => content,
    };
    if fs::read(&to).ok().as_ref() != Some(&content) {
        fs::write(&to, content).with_context(|| to.display().to_string())?;
    }
    Ok(())
}

/// The text of a file with the changes of all mutants.
fn changed(path: &Path, text: &str) -> String {
    if path == Path::new("Cargo.toml") {
        return text.replacen(VERSION.0, VERSION.1, 1);
    }
    let Ok(file) = path.strip_prefix("crates") else { return text.to_owned() };
    let patches = MUTANTS.iter().flat_map(|mutant| mutant.patches);
    let mut text = patches
        .filter(|(of, ..)| file == Path::new(of))
        .fold(text.to_owned(), |text, (_, from, to)| text.replace(from, to));
    if file == Path::new("windlass-core/src/lib.rs") {
        text += IS_REMOVED;
    }
    if file == Path::new("windlass-sim/Cargo.toml") {
        text = text.replace("name = \"windlass-sim\"", &format!("name = \"{PACKAGE}\""));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise cargo may take what it built of the one for the other.
    #[test]
    fn the_copies_of_all_packages_have_another_version() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        let changed = changed(Path::new("Cargo.toml"), &workspace);
        let package = changed.split("[workspace.package]").nth(1).unwrap();
        assert!(package.split("\n[").next().unwrap().contains(VERSION.1), "{package}");
        for package in fs::read_dir(root.join("crates")).unwrap() {
            let manifest = package.unwrap().path().join("Cargo.toml");
            let Ok(text) = fs::read_to_string(&manifest) else { continue };
            assert!(text.contains("version.workspace = true"), "{}", manifest.display());
        }
    }
}
