//! `windlass migrate` creates the tables, or prints their statements.

use crate::common::{CliSandbox, Data, printed, raise};

#[tokio::test]
async fn print_shows_the_statements_and_creates_nothing() {
    for (data, sandbox) in CliSandbox::on_each(10, &raise(5)).await {
        let output = sandbox.run("migrate --print").await.ok();
        printed(
            &output,
            &[
                "connection app",
                "CREATE TABLE",
                "windlass_ledger",
                "windlass_deferred",
                "windlass_emitted",
            ],
        );
        let there = match &data {
            Data::Postgres(_) => "SELECT count(*) FROM pg_class WHERE relname = 'windlass_ledger'",
            Data::Sqlite(_) => "SELECT count(*) FROM sqlite_master WHERE name = 'windlass_ledger'",
            Data::Mariadb(_) => {
                "SELECT count(*) FROM information_schema.tables \
                 WHERE table_schema = database() AND table_name = 'windlass_ledger'"
            }
        };
        assert_eq!(data.number(there).await, 0);

        // A DBA runs the printed statements. After that everything works.
        data.run(&output.stdout).await;
        assert_eq!(data.number(there).await, 1);
        sandbox.run("run RAISE").await.ok();
        data.raised_once(10).await;
    }
}

#[tokio::test]
async fn migrate_creates_what_is_missing_and_can_be_repeated() {
    for (data, sandbox) in CliSandbox::on_each(10, &raise(5)).await {
        for _ in 0..2 {
            let output = sandbox.run("migrate").await.ok();
            assert!(output.stdout.contains("app: ledger is up to date"), "{}", output.stdout);
            assert!(output.stdout.contains("store is up to date"), "{}", output.stdout);
        }
        assert_eq!(data.number("SELECT count(*) FROM windlass_ledger").await, 0);
    }
}

#[tokio::test]
async fn a_user_without_the_right_to_create_tables_is_referred_to_print() {
    let data = Data::postgres().await.with_accounts(10).await;
    let Data::Postgres(database) = &data else { unreachable!() };
    // Roles belong to the server, so their names contain the database's name.
    let role = format!("clerk_of_{}", database.name());
    data.run(&format!(
        "CREATE ROLE {role} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC;
         GRANT SELECT, UPDATE ON accounts TO {role}"
    ))
    .await;
    let (_, rest) = data.url().split_once('@').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let url = format!("postgres://{role}@{rest}");
    let sandbox = CliSandbox::with(&crate::common::config("sqlite:windlass.db", &url, &raise(5)));
    let refused = sandbox.run("run RAISE").await;
    crate::common::refused(&refused, &["WL0006", "windlass migrate --print"]);
    data.untouched().await;

    let print = sandbox.run("migrate --print").await.ok();
    data.run(&print.stdout).await;
    data.run(&format!(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON windlass_ledger, windlass_deferred, windlass_emitted, windlass_stores TO {role}"
    ))
    .await;
    sandbox.run("check").await.ok();
    sandbox.run("run RAISE").await.ok();
    data.raised_once(10).await;
}
