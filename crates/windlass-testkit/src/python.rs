//! The Python programs that the tests use, from the virtual environments that `cargo xtask test` creates.

use std::env;
use std::path::PathBuf;

/// A program of the environment with most packages: `python`, or one from a package.
pub fn python_program(name: &str) -> PathBuf {
    program("schemathesis", name)
}

/// A program of an environment. Its folder is in cargo's target folder, named after its first package.
pub(crate) fn program(environment: &str, name: &str) -> PathBuf {
    let bin = format!("{environment}/bin");
    let test = env::current_exe().expect("failed to find the path of the test program");
    let program = test
        .ancestors()
        .skip(1)
        .map(|folder| folder.join(&bin).join(name))
        .find(|program| program.exists());
    program.unwrap_or_else(|| {
        panic!(
            "{bin}/{name} does not exist beside {}; `cargo xtask test` installs it, or prints why it \
             cannot",
            test.display()
        )
    })
}
