//! `windlass init` writes a file that passes `windlass check`.

use crate::common::{CliSandbox, Data, refused};

#[tokio::test]
async fn an_empty_folder_gets_a_commented_file() {
    let sandbox = CliSandbox::empty();
    let output = sandbox.run("init").await.ok();
    assert!(output.stdout.contains("wrote windlass.toml"), "{}", output.stdout);
    assert!(output.stdout.contains("windlass check"), "{}", output.stdout);
    let text = sandbox.read("windlass.toml");
    for part in ["[store]", "[connections.app]", "chunk.lease", "source.filters", "{chunk}"] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

#[tokio::test]
async fn an_existing_file_is_kept_unless_forced() {
    let sandbox = CliSandbox::with("# mine\n");
    refused(&sandbox.run("init").await, &["windlass.toml", "--force"]);
    assert_eq!(sandbox.read("windlass.toml"), "# mine\n");
    sandbox.run("init --force").await.ok();
    assert!(sandbox.read("windlass.toml").contains("[store]"));
}

#[tokio::test]
async fn the_tables_of_a_database_become_job_types_that_run() {
    for data in Data::each_with_accounts(100).await {
        data.run("CREATE TABLE \"Odd Name\" (a integer, b integer)").await;
        let sandbox = CliSandbox::empty().env("DATABASE_URL", &data.url());
        sandbox.run_words(&["init", &data.url()]).await.ok();
        let text = sandbox.read("windlass.toml");
        assert!(text.contains("\n[jobs.REFRESH_ACCOUNTS]"), "{text}");
        assert!(text.contains("step.version = \"version\""), "{text}");
        // A table without a key is written as a comment.
        assert!(text.contains("# [jobs.COUNT_ODD_NAME]"), "{text}");
        assert!(!text.contains("windlass_"), "its own tables are not job types:\n{text}");

        let check = sandbox.run("check").await.ok();
        assert!(check.stdout.contains("REFRESH_ACCOUNTS"), "{}", check.stdout);
        sandbox.run("run REFRESH_ACCOUNTS").await.ok();
        assert_eq!(data.number("SELECT count(*) FROM accounts WHERE version = 2").await, 100);
    }
}

#[tokio::test]
async fn init_writes_the_file_named_by_config() {
    let sandbox = CliSandbox::empty();
    sandbox.run("init --config other.toml").await.ok();
    assert!(sandbox.path("other.toml").exists());
    assert!(!sandbox.path("windlass.toml").exists());
}

#[tokio::test]
async fn a_password_is_not_written_into_the_file() {
    let data = Data::postgres().await.with_accounts(1).await;
    let sandbox = CliSandbox::empty();
    let url = data.url().replacen('@', ":hush@", 1);
    sandbox.run_words(&["init", &url]).await.ok();
    let text = sandbox.read("windlass.toml");
    assert!(!text.contains("hush"), "{text}");
    assert!(text.contains("${DATABASE_URL}"), "{text}");
    let sandbox = sandbox.env("DATABASE_URL", &url);
    sandbox.run("check").await.ok();
}

#[tokio::test]
async fn an_unusable_database_leaves_no_file() {
    let sandbox = CliSandbox::empty();
    refused(&sandbox.run("init sqlite:nothing.db").await, &["nothing.db"]);
    refused(&sandbox.run("init oracle://h/d").await, &["oracle:", "postgres://", "mysql://"]);
    refused(&sandbox.run("init mysql://user:secret@127.0.0.1:1/d").await, &["refused"]);
    refused(&sandbox.run("init postgres://user:secret@127.0.0.1:1/d").await, &["refused"]);
    let empty = Data::sqlite();
    refused(&sandbox.run_words(&["init", &empty.url()]).await, &["no tables"]);
    assert!(!sandbox.path("windlass.toml").exists());
    assert!(!sandbox.path("nothing.db").exists());
}

#[tokio::test]
async fn the_named_tables_become_job_types_and_views_do_not() {
    for data in Data::each().await {
        let data = data.with_accounts(100).await;
        let key = if matches!(data, Data::Mariadb(_)) { "varchar(20)" } else { "text" };
        data.run(&format!(
            "CREATE TABLE plain (code {key} PRIMARY KEY NOT NULL, version integer);
             CREATE VIEW seen AS SELECT * FROM accounts;"
        ))
        .await;
        // The sizes of tables are estimates of the database's statistics.
        data.run(match data {
            Data::Mariadb(_) => "ANALYZE TABLE accounts",
            _ => "ANALYZE",
        })
        .await;
        let sandbox = CliSandbox::empty().env("DATABASE_URL", &data.url());
        sandbox.run_words(&["init", &data.url(), "--table", "plain"]).await.ok();
        let text = sandbox.read("windlass.toml");
        assert!(text.contains("\n[jobs.COUNT_PLAIN]") && !text.contains("_ACCOUNTS]"), "{text}");
        // Its version may be null, so it is not offered as a lock.
        assert!(!text.contains("[jobs.REFRESH_PLAIN]"), "{text}");
        sandbox.run("check").await.ok();

        let init = sandbox.run_words(&["init", &data.url(), "--force"]).await.ok().stdout;
        let text = sandbox.read("windlass.toml");
        assert!(!text.contains("COUNT_SEEN"), "{text}");
        assert!(text.contains("{chunk:v}"), "{text}");
        // The largest table first, and a command that changes nothing.
        let (large, small) =
            (text.find("COUNT_ACCOUNTS]").unwrap(), text.find("COUNT_PLAIN]").unwrap());
        assert!(large < small, "{text}");
        assert!(init.contains("windlass run COUNT_ACCOUNTS --dry-run"), "{init}");
        sandbox.run("run COUNT_ACCOUNTS --dry-run").await.ok();
        sandbox.run("run COUNT_ACCOUNTS").await.ok();
        data.untouched().await;
        let unknown =
            sandbox.run_words(&["init", &data.url(), "--force", "--table", "accoumts"]).await;
        refused(&unknown, &["accoumts", "`accounts`"]);
        refused(&sandbox.run("init --table accounts").await, &["--table", "<URL>"]);
    }
}

#[tokio::test]
async fn a_schema_restricts_the_tables() {
    let data = Data::postgres().await.with_accounts(10).await;
    data.run("CREATE SCHEMA other; CREATE TABLE other.accounts (id integer PRIMARY KEY)").await;
    let sandbox = CliSandbox::empty().env("DATABASE_URL", &data.url());
    for (schema, table) in [("other", "other.accounts"), ("public", "public.accounts")] {
        sandbox.run_words(&["init", &data.url(), "--force", "--schema", schema]).await.ok();
        let text = sandbox.read("windlass.toml");
        assert!(text.contains(&format!("source.table = \"{table}\"")), "{text}");
        assert_eq!(text.matches("\n[jobs.COUNT_").count(), 1, "{text}");
        sandbox.run("check").await.ok();
    }
    let none = sandbox.run_words(&["init", &data.url(), "--force", "--schema", "nowhere"]).await;
    refused(&none, &["--schema nowhere", "no tables"]);
}

#[tokio::test]
async fn init_asks_for_what_it_is_not_given() {
    let data = Data::sqlite().with_accounts(10).await;
    let sandbox = CliSandbox::empty();
    let input = format!("{}\naccounts\n", data.url());
    let asked = sandbox.run_in_terminal(100, "init", &input).await;
    assert!(asked.stdout.contains("Database") && asked.stdout.contains("Tables"), "{asked:?}");
    let text = sandbox.read("windlass.toml");
    assert!(text.contains("\n[jobs.COUNT_ACCOUNTS]"), "{text}");
    sandbox.run("check").await.ok();
}
