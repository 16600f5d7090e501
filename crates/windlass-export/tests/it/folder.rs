//! Folders: a file is visible only when it is complete, and an aborted write leaves nothing.

use crate::common::{blob_schema, folder_destination, megabyte, names};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::time::Duration;
use windlass_core::ErrorKind;
use windlass_export::{Destination, Error, Format, Output, PartWriter};
use windlass_testkit::eventually;

fn writer(destination: &Destination) -> PartWriter {
    PartWriter::new(
        destination,
        "part-000001-1-0000000000000007.parquet",
        blob_schema(),
        Output::of(Format::Parquet),
    )
    .unwrap()
}

#[tokio::test]
async fn a_part_is_visible_only_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(&folder.path().join("made/on demand"));
    let mut writer = writer(&destination);
    assert!(names(&destination).await.is_empty());
    for number in 0..40 {
        writer.write(megabyte(number)).await.unwrap();
    }
    // An incomplete file has a name that no reader takes for a part.
    let begun = names(&destination).await;
    assert_eq!(
        begun,
        ["part-000001-1-0000000000000007.parquet#1"],
        "40 MB are not buffered in memory"
    );
    let written = writer.finish().await.unwrap();
    assert_eq!(names(&destination).await, ["part-000001-1-0000000000000007.parquet"]);
    let bytes = destination.get(&written.name).await.unwrap().unwrap();
    assert_eq!(written.bytes, bytes.len() as u64);
    assert_eq!(written.rows, 640);
    let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(written.sha256, hash);
}

#[tokio::test]
async fn an_aborted_part_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    let mut aborted = writer(&destination);
    for number in 0..40 {
        aborted.write(megabyte(number)).await.unwrap();
    }
    aborted.abort().await.unwrap();
    assert_eq!(names(&destination).await, [""; 0]);
    let mut dropped = writer(&destination);
    for number in 0..40 {
        dropped.write(megabyte(number)).await.unwrap();
    }
    assert_eq!(names(&destination).await.len(), 1);
    drop(dropped);
    let is_empty = async || names(&destination).await.is_empty();
    eventually("the incomplete file is deleted", Duration::from_secs(20), is_empty).await;
}

#[tokio::test]
async fn a_later_part_with_the_same_name_replaces_the_first_atomically() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    for number in [1, 2] {
        let mut writer = writer(&destination);
        writer.write(megabyte(number)).await.unwrap();
        let written = writer.finish().await.unwrap();
        let bytes = destination.get(&written.name).await.unwrap().unwrap();
        assert_eq!(bytes.len() as u64, written.bytes);
    }
    assert_eq!(names(&destination).await.len(), 1);
}

#[tokio::test]
async fn a_destination_that_is_not_a_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = writer(&folder_destination(&file.join("below"))).finish().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transient, "{error}");
}

#[tokio::test]
async fn a_batch_with_other_columns_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    let schema = windlass_export::schema(&crate::common::columns());
    let mut writer = PartWriter::new(&destination, "x", schema, Output::of(Format::Csv)).unwrap();
    let error = writer.write(megabyte(1)).await.unwrap_err();
    assert!(matches!(error, Error::Encoding(_)), "{error}");
}
