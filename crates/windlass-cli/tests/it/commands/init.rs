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
    for data in Data::each().await {
        let data = data.with_accounts(100).await;
        data.run("CREATE TABLE \"Odd Name\" (a integer, b integer)").await;
        let sandbox = CliSandbox::empty().env("DATABASE_URL", &data.url());
        sandbox.run_words(&["init", &data.url()]).await.ok();
        let text = sandbox.read("windlass.toml");
        assert!(text.contains("\n[jobs.REFRESH_ACCOUNTS]"), "{text}");
        assert!(text.contains("step.version = \"version\""), "{text}");
        // A table without key or version is written as a comment.
        assert!(text.contains("# [jobs.REFRESH_ODD_NAME]"), "{text}");
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
