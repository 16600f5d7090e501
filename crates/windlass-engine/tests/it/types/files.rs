//! What is exported and read by another program can be inserted again and is the same.

use super::table::{TypeColumn, assert_same, create, fill, insert, shown};
use super::{mariadb, postgres, sqlite};
use crate::protocol::common::*;
use std::path::PathBuf;
use tokio::process::Command;

type Texts = Vec<Vec<Option<String>>>;

/// Exports `types` and returns the files of the manifest in order.
async fn export(fixture: &EngineFixture, format: &str) -> Vec<PathBuf> {
    let folder = fixture.folder.path().join(format);
    let step = format!(
        "source.table = \"types\"\nstep.export = {{ to = \"file:{}/{{job_id}}/\", format = \"{format}\" }}",
        folder.display()
    );
    let engine = fixture.engine(&job(&step, "").replace("source.table = \"visits\"\n", "")).await;
    let done = complete(&engine).await;
    let letters = letters(&engine, done.id).await;
    assert!(letters.is_empty(), "{:#?}", letters[0]);
    let folder = folder.join(done.id.to_string());
    let destination = format!("file:{}/", folder.display());
    let destination = windlass_export::Destination::open(&destination).unwrap();
    let manifest = windlass_export::Manifest::read(&destination).await.unwrap().unwrap();
    manifest.parts.iter().map(|part| folder.join(&part.name)).collect()
}

/// Inserts the rows of a file into another table and compares it.
async fn restored(fixture: &EngineFixture, columns: &[TypeColumn], rows: Texts) {
    let restore = |row: Vec<Option<String>>| {
        let (key, values) = row.split_at(2);
        let value = |(text, column): (&Option<String>, &TypeColumn)| match text {
            None => "NULL".to_owned(),
            Some(text) => (column.restored)(text, column.sql_type),
        };
        let key = key.iter().map(|text| text.clone().unwrap());
        key.chain(values.iter().zip(columns).map(value)).collect()
    };
    let rows: Vec<Vec<String>> = rows.into_iter().map(restore).collect();
    create(fixture, "restored", columns).await;
    insert(fixture, "restored", &rows).await;
    let before = shown(fixture, "types", columns).await;
    assert_same(columns, &before, &shown(fixture, "restored", columns).await);
}

/// PyArrow shares no code with the writer.
async fn through_parquet(fixture: EngineFixture, columns: Vec<TypeColumn>) {
    fill(&fixture, &columns).await;
    let files = export(&fixture, "parquet").await;
    let read = Command::new(windlass_testkit::python_program("python"))
        .args(["-c", include_str!("read.py")])
        .args(files)
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let lines = String::from_utf8(read.stdout).unwrap();
    let rows = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    restored(&fixture, &columns, rows).await;
}

async fn through_csv(fixture: EngineFixture, columns: Vec<TypeColumn>) {
    fill(&fixture, &columns).await;
    let mut rows = Vec::new();
    for file in export(&fixture, "csv").await {
        rows.extend(parse_csv(&std::fs::read_to_string(file).unwrap()).into_iter().skip(1));
    }
    restored(&fixture, &columns, rows).await;
}

/// The fields of a CSV file. An empty field without quotes is null.
fn parse_csv(text: &str) -> Texts {
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let mut field = String::new();
                let mut after = quoted;
                loop {
                    let (part, next) = after.split_once('"').unwrap();
                    field.push_str(part);
                    match next.strip_prefix('"') {
                        Some(more) => {
                            field.push('"');
                            after = more;
                        }
                        None => break (Some(field), next),
                    }
                }
            }
            None => {
                let end = rest.find([',', '\n']).unwrap();
                (Some(rest[..end].to_owned()).filter(|field| !field.is_empty()), &rest[end..])
            }
        };
        row.push(field);
        if after.starts_with('\n') {
            rows.push(std::mem::take(&mut row));
        }
        rest = &after[1..];
    }
    rows
}

#[tokio::test]
async fn postgres_types_come_back_from_parquet() {
    through_parquet(EngineFixture::postgres().await, postgres::columns()).await;
}

#[tokio::test]
async fn postgres_types_come_back_from_csv() {
    through_csv(EngineFixture::postgres().await, postgres::columns()).await;
}

#[tokio::test]
async fn mariadb_types_come_back_from_parquet() {
    through_parquet(EngineFixture::mariadb().await, mariadb::columns()).await;
}

#[tokio::test]
async fn mariadb_types_come_back_from_csv() {
    through_csv(EngineFixture::mariadb().await, mariadb::columns()).await;
}

#[tokio::test]
async fn sqlite_types_come_back_from_parquet() {
    through_parquet(EngineFixture::sqlite().await, sqlite::columns()).await;
}

#[tokio::test]
async fn sqlite_types_come_back_from_csv() {
    through_csv(EngineFixture::sqlite().await, sqlite::columns()).await;
}
