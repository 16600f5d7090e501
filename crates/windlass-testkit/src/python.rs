//! The Python programs that the tests use, in the environment that `cargo xtask test` makes.

use std::env;
use std::path::PathBuf;

/// Where the environment lies, beside what cargo builds: it is named after its first package.
const BIN: &str = "schemathesis/bin";

/// A program of the environment: `python`, or one that a package brings.
pub fn python_program(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a process knows its program");
    let program = test
        .ancestors()
        .skip(1)
        .map(|folder| folder.join(BIN).join(name))
        .find(|program| program.exists());
    program.unwrap_or_else(|| {
        panic!(
            "there is no {BIN}/{name} beside {}: `cargo xtask test` makes it, and says why if \
             it cannot",
            test.display()
        )
    })
}
