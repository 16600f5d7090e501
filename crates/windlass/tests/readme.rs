//! The commands of README.md, and of an example's, work as they stand there.
//!
//! A line `<!-- test -->` directly before a block of shell commands means: run every line of the
//! block, in a folder of its own, with the built binary first on the PATH.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test tells its failure"
)]

use std::path::Path;
use windlass_testkit::{MariaServer, PostgresServer, Windlass, built_program, free_port};

const MARK: &str = "<!-- test -->";

#[tokio::test]
async fn the_readmes_commands_work() {
    run_marked("README.md", &[], &[]).await;
}

#[tokio::test]
async fn the_commands_of_the_visits_example_work() {
    let database = PostgresServer::shared().database().await;
    let files = ["visits.sql", "windlass.toml"];
    let environment = [("DATABASE_URL", database.url())];
    run_marked("examples/visits/README.md", &files, &environment).await;
}

#[tokio::test]
async fn the_commands_of_the_relationships_example_work() {
    let files = [
        "analyse.py",
        "resolve.py",
        "schema.sql",
        "windlass.toml",
        "sources/cart.py",
        "sources/payment.py",
        "sources/settings.py",
    ];
    run_marked("examples/relationships/README.md", &files, &[]).await;
}

#[tokio::test]
async fn the_commands_of_the_nightly_example_work() {
    let bank = MariaServer::shared().database().await;
    let rows = include_str!("../../../examples/nightly/transactions.sql");
    bank.run(&format!("SET @rows = 20000;\n{rows}")).await;
    let warehouse = PostgresServer::shared().database().await;
    warehouse.run(include_str!("../../../examples/nightly/warehouse.sql")).await;
    let environment =
        [("SOURCE_URL", bank.url()), ("WAREHOUSE_URL", warehouse.url()), ("OUTPUT", "file:out")];
    run_marked("examples/nightly/README.md", &["windlass.toml"], &environment).await;
}

#[tokio::test]
async fn the_commands_of_the_timesheets_example_work() {
    let database = PostgresServer::shared().database().await;
    let files = ["timesheets.sql", "windlass.toml", "report.py"];
    let [first, second] = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let environment = [("DATABASE_URL", database.url()), ("FIRST", &first), ("SECOND", &second)];
    run_marked("examples/timesheets/README.md", &files, &environment).await;
}

#[tokio::test]
async fn the_commands_of_the_candidates_example_work() {
    let database = PostgresServer::shared().database().await;
    let files = [
        "candidates.sql",
        "generate.py",
        "windlass.toml",
        "requests/exact-count.json",
        "requests/limited-segments.json",
        "requests/years.json",
    ];
    // It lies beside the binary that is first on the PATH.
    built_program("windlass-candidates", "candidates-migrate");
    let listen = format!("127.0.0.1:{}", free_port());
    let environment = [
        ("DATABASE_URL", database.url()),
        ("ORIGINALS", "file:originals/"),
        ("LISTEN", listen.as_str()),
    ];
    run_marked("examples/candidates/README.md", &files, &environment).await;
}

/// Runs the marked blocks of a page, each in a folder with these files from beside the page, and
/// with this environment.
async fn run_marked(page: &str, files: &[&str], environment: &[(&str, &str)]) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = std::fs::read_to_string(&page)
        .unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let scripts = scripts(&text);
    assert!(!scripts.is_empty(), "{} has no {MARK} before a ```sh block", page.display());

    let binary = Path::new(env!("CARGO_BIN_EXE_windlass"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", binary.parent().unwrap().display());
    for script in scripts {
        let folder = tempfile::TempDir::new().unwrap();
        for file in files {
            let copy = folder.path().join(file);
            std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
            std::fs::copy(page.with_file_name(file), copy).unwrap();
        }
        let shell = Windlass::new(folder.path()).binary("/bin/sh").env("PATH", &path);
        let shell = environment.iter().fold(shell, |shell, (name, value)| shell.env(name, value));
        // One shell for the block, so that `cd` and variables last; it stops at what fails.
        let output = shell.run(["-e", "-u", "-c", &script]).await;
        assert_eq!(
            output.code,
            Some(0),
            "{script}\nstdout:\n{}\nstderr:\n{}",
            output.stdout,
            output.stderr
        );
    }
}

/// The marked blocks as scripts, without prompts and without lines that only explain.
fn scripts(readme: &str) -> Vec<String> {
    let mut scripts = Vec::new();
    let mut lines = readme.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line != MARK {
            continue;
        }
        let fence = lines.next().unwrap_or_default();
        assert!(
            ["```sh", "```bash", "```shell", "```console"].contains(&fence),
            "{MARK} stands directly before a ```sh block, not before `{fence}`"
        );
        let block: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        // Where there are prompts, the other lines are what the commands answer.
        let prompts = block.iter().any(|line| line.starts_with("$ "));
        let command = |line: &&str| match line.strip_prefix("$ ") {
            Some(command) => Some(command.to_owned()),
            None if prompts || line.is_empty() || line.starts_with('#') => None,
            None => Some((*line).to_owned()),
        };
        let commands: Vec<String> = block.iter().filter_map(command).collect();
        assert!(!commands.is_empty(), "a block marked {MARK} has no command");
        scripts.push(commands.join("\n") + "\n");
    }
    scripts
}

#[test]
fn only_marked_blocks_are_run_and_only_their_commands() {
    let readme = "# W\n```sh\nrm -r everything\n```\n<!-- test -->\n```sh\n# Look:\n\
                  windlass demo\ncd shop\n\n```\ntext\n<!-- test -->\n```console\n\
                  $ windlass jobs\nno jobs\n```\n";
    assert_eq!(scripts(readme), ["windlass demo\ncd shop\n", "windlass jobs\n"]);
    assert!(scripts("# Nothing\n").is_empty());
}
