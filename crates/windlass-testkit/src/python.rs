//! The Python programs that the tests use, from the virtual environment that `cargo xtask test` creates.

use std::env;
use std::path::PathBuf;

/// The environment's folder in cargo's target folder, named after its first package.
const BIN: &str = "schemathesis/bin";

/// A program of the environment: `python`, or one from a package.
pub fn python_program(name: &str) -> PathBuf {
    let test = env::current_exe().expect("failed to find the path of the test program");
    let program = test
        .ancestors()
        .skip(1)
        .map(|folder| folder.join(BIN).join(name))
        .find(|program| program.exists());
    program.unwrap_or_else(|| {
        panic!(
            "{BIN}/{name} does not exist beside {}; `cargo xtask test` installs it, or prints why it \
             cannot",
            test.display()
        )
    })
}
