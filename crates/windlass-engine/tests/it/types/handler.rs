//! A handler that answers with what it was given changes nothing but the version.

use super::table::{TypeColumn, assert_same, fill, shown};
use super::{mariadb, postgres, sqlite};
use crate::protocol::common::*;

async fn unchanged(fixture: EngineFixture, columns: Vec<TypeColumn>) {
    fill(&fixture, &columns).await;
    let program = fixture.folder.path().join("identity.py");
    std::fs::write(&program, include_str!("identity.py")).unwrap();
    let step = format!(
        "source.table = \"types\"\nstep.command = [\"python3\", \"{}\"]\nstep.version = \"version\"",
        program.display()
    );
    let engine = fixture.engine(&job(&step, "").replace("source.table = \"visits\"\n", "")).await;
    let before = shown(&fixture, "types", &columns).await;
    let done = complete(&engine).await;
    let letters = letters(&engine, done.id).await;
    assert!(letters.is_empty(), "{:#?}", letters[0]);
    assert_eq!(done.items.processed, before[0].len() as i64);
    assert_same(&columns, &before, &shown(&fixture, "types", &columns).await);
    let raised = fixture.int("SELECT count(*) FROM types WHERE version = 1").await;
    assert_eq!(raised, done.items.processed);
}

#[tokio::test]
async fn postgres_types_come_back_unchanged() {
    unchanged(EngineFixture::postgres().await, postgres::columns()).await;
}

#[tokio::test]
async fn postgres_types_without_a_form_in_files_come_back_unchanged() {
    unchanged(EngineFixture::postgres().await, postgres::more_columns()).await;
}

#[tokio::test]
async fn mariadb_types_come_back_unchanged() {
    let columns = mariadb::columns().into_iter().chain(mariadb::more_columns());
    unchanged(EngineFixture::mariadb().await, columns.collect()).await;
}

#[tokio::test]
async fn sqlite_types_come_back_unchanged() {
    let columns = sqlite::columns().into_iter().chain(sqlite::more_columns());
    unchanged(EngineFixture::sqlite().await, columns.collect()).await;
}
