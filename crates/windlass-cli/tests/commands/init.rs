//! `windlass init`: the file it writes is right at once.

use crate::common::{Data, Place, refused};

#[tokio::test]
async fn an_empty_folder_gets_a_commented_file() {
    let place = Place::empty();
    let output = place.run("init").await.ok();
    assert!(output.stdout.contains("wrote windlass.toml"), "{}", output.stdout);
    assert!(output.stdout.contains("windlass check"), "{}", output.stdout);
    let text = place.read("windlass.toml");
    for part in ["[store]", "[connections.app]", "chunk.lease", "source.filters", "{chunk}"] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

#[tokio::test]
async fn a_file_that_is_there_is_kept_unless_forced() {
    let place = Place::with("# mine\n");
    refused(&place.run("init").await, &["windlass.toml", "--force"]);
    assert_eq!(place.read("windlass.toml"), "# mine\n");
    place.run("init --force").await.ok();
    assert!(place.read("windlass.toml").contains("[store]"));
}

#[tokio::test]
async fn a_databases_tables_become_job_types_that_run() {
    for data in Data::each().await {
        let data = data.with_accounts(100).await;
        data.run("CREATE TABLE \"Odd Name\" (a integer, b integer)").await;
        let place = Place::empty().env("DATABASE_URL", &data.url());
        place.run_words(&["init", &data.url()]).await.ok();
        let text = place.read("windlass.toml");
        assert!(text.contains("\n[jobs.REFRESH_ACCOUNTS]"), "{text}");
        assert!(text.contains("step.version = \"version\""), "{text}");
        // What has neither key nor version is there as a comment.
        assert!(text.contains("# [jobs.REFRESH_ODD_NAME]"), "{text}");
        assert!(!text.contains("windlass_"), "its own tables are no job types:\n{text}");

        let check = place.run("check").await.ok();
        assert!(check.stdout.contains("REFRESH_ACCOUNTS"), "{}", check.stdout);
        place.run("run REFRESH_ACCOUNTS").await.ok();
        assert_eq!(data.number("SELECT count(*) FROM accounts WHERE version = 2").await, 100);
    }
}

#[tokio::test]
async fn it_writes_where_the_configuration_is_expected() {
    let place = Place::empty();
    place.run("init --config other.toml").await.ok();
    assert!(place.path("other.toml").exists());
    assert!(!place.path("windlass.toml").exists());
}

#[tokio::test]
async fn a_password_is_not_written_into_the_file() {
    let data = Data::postgres().await.with_accounts(1).await;
    let place = Place::empty();
    let url = data.url().replacen('@', ":hush@", 1);
    place.run_words(&["init", &url]).await.ok();
    let text = place.read("windlass.toml");
    assert!(!text.contains("hush"), "{text}");
    assert!(text.contains("${DATABASE_URL}"), "{text}");
    let place = place.env("DATABASE_URL", &url);
    place.run("check").await.ok();
}

#[tokio::test]
async fn a_database_it_cannot_use_leaves_no_file() {
    let place = Place::empty();
    refused(&place.run("init sqlite:nothing.db").await, &["nothing.db"]);
    refused(&place.run("init oracle://h/d").await, &["oracle:", "postgres://", "mysql://"]);
    refused(&place.run("init mysql://nobody:hush@127.0.0.1:1/d").await, &["refused"]);
    refused(&place.run("init postgres://nobody:hush@127.0.0.1:1/d").await, &["refused"]);
    let empty = Data::sqlite();
    refused(&place.run_words(&["init", &empty.url()]).await, &["no tables"]);
    assert!(!place.path("windlass.toml").exists());
    assert!(!place.path("nothing.db").exists());
}
