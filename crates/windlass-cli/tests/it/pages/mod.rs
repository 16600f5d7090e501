//! The documentation is correct: its commands work as printed, with the output that it shows.

mod commands;
mod links;
mod page;
mod sections;

use page::run;
use windlass_testkit::{MariaServer, PostgresServer, built_program, free_port};

#[tokio::test]
async fn the_commands_of_the_readme_work() {
    run("README.md", &[], &[]).await;
}

#[tokio::test]
async fn every_command_of_the_tutorial_works() {
    run("docs/tutorial.md", &[], &[]).await;
}

#[tokio::test]
async fn every_error_code_occurs_and_is_resolved_as_documented() {
    let database = PostgresServer::shared().database().await;
    run("docs/errors.md", &[], &[("DATABASE_URL", database.url())]).await;
}

#[tokio::test]
async fn every_alert_is_raised_and_resolved_as_documented() {
    run("docs/operations.md", &[], &[]).await;
}

#[tokio::test]
async fn the_commands_of_the_migration_guide_work() {
    run("docs/migrating.md", &[], &[]).await;
}

#[tokio::test]
async fn the_commands_of_the_visits_example_work() {
    let database = PostgresServer::shared().database().await;
    let files = ["visits.sql", "windlass.toml"];
    let environment = [("DATABASE_URL", database.url())];
    run("examples/visits/README.md", &files, &environment).await;
}

#[tokio::test]
async fn the_commands_of_the_relationships_example_work() {
    let files = [
        "analyse.py",
        "failed_pois.py",
        "failed_pois.sql",
        "resolve.py",
        "schema.sql",
        "windlass.toml",
        "sources/cart.py",
        "sources/payment.py",
        "sources/settings.py",
    ];
    run("examples/relationships/README.md", &files, &[]).await;
}

#[tokio::test]
async fn the_commands_of_the_nightly_example_work() {
    let bank = MariaServer::shared().database().await;
    let rows = include_str!("../../../../../examples/nightly/transactions.sql");
    bank.run(&format!("SET @rows = 20000;\n{rows}")).await;
    let warehouse = PostgresServer::shared().database().await;
    warehouse.run(include_str!("../../../../../examples/nightly/warehouse.sql")).await;
    let environment =
        [("SOURCE_URL", bank.url()), ("WAREHOUSE_URL", warehouse.url()), ("OUTPUT", "file:out")];
    run("examples/nightly/README.md", &["windlass.toml"], &environment).await;
}

#[tokio::test]
async fn the_commands_of_the_timesheets_example_work() {
    let database = PostgresServer::shared().database().await;
    let files = ["timesheets.sql", "windlass.toml", "report.py"];
    let [first, second] = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let environment = [("DATABASE_URL", database.url()), ("FIRST", &first), ("SECOND", &second)];
    run("examples/timesheets/README.md", &files, &environment).await;
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
    // It is built beside the binary, whose folder is first on PATH.
    built_program("windlass-candidates", "candidates-migrate");
    let listen = format!("127.0.0.1:{}", free_port());
    let environment = [
        ("DATABASE_URL", database.url()),
        ("ORIGINALS", "file:originals/"),
        ("LISTEN", listen.as_str()),
    ];
    run("examples/candidates/README.md", &files, &environment).await;
}
