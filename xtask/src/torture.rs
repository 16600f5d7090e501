//! `cargo xtask torture`: jobs, faults and operators at random on real databases, and a checker of the history.

use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;

use crate::{cargo, needs};

/// The database that has the records.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Database {
    Postgres,
    Mariadb,
    Sqlite,
}

impl Database {
    /// The name of its test, which runs longer than in the ordinary tests.
    fn test(self) -> &'static str {
        match self {
            Database::Postgres => "torture::postgresql",
            Database::Mariadb => "torture::mariadb",
            Database::Sqlite => "torture::sqlite",
        }
    }
}

/// Runs for this long, on one database or for a third of the time on each.
pub(crate) fn run(minutes: u64, seed: u64, on: Option<Database>) -> anyhow::Result<ExitCode> {
    if !needs::install(needs::For::AllTests) {
        return Ok(ExitCode::from(2));
    }
    let databases = match &on {
        Some(database) => std::slice::from_ref(database),
        None => Database::value_variants(),
    };
    let seconds = minutes * 60 / databases.len() as u64;
    let mut passed = true;
    for database in databases {
        let test = ["--test", "it", database.test(), "--", "--nocapture"];
        let mut args = vec!["test", "--workspace", "--all-features"];
        args.extend(test);
        let mut command = cargo::command(&args);
        command.env("WINDLASS_TORTURE_SECONDS", seconds.to_string());
        command.env("WINDLASS_TORTURE_SEED", seed.to_string());
        passed &= command.status().context("failed to start cargo")?.success();
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
