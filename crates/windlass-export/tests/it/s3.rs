//! An S3 endpoint: objects are complete or absent, and errors are classified.

use crate::common::{blob_schema, megabyte, names, write_difficult_rows};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use windlass_core::ErrorKind;
use windlass_export::{
    Destination, Error, Format, Manifest, ManifestPart, Output, PartName, PartWriter, scan_orphans,
    schema,
};
use windlass_testkit::{Moto, eventually, free_port};

fn destination(moto: &Moto, prefix: &str) -> Destination {
    let url = format!("s3://{}/{prefix}", Moto::BUCKET);
    Destination::open_with(&url, moto.environment()).unwrap()
}

fn writer(destination: &Destination) -> PartWriter {
    PartWriter::new(
        destination,
        "part-000001-1-0000000000000007.parquet",
        blob_schema(),
        Output::of(Format::Parquet),
    )
    .unwrap()
}

/// The uploads under a prefix that are neither completed nor aborted.
fn open_uploads(moto: &Moto, prefix: &str) -> usize {
    let answer = moto.ask("GET", &format!("/{}?uploads", Moto::BUCKET), "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer.matches(&format!("<Key>{prefix}")).count()
}

#[tokio::test]
async fn a_large_part_is_uploaded_in_pieces_and_visible_when_complete() {
    let moto = Moto::shared();
    let destination = destination(moto, "large/");
    let mut writer = writer(&destination);
    for number in 0..40 {
        writer.write(megabyte(number)).await.unwrap();
    }
    assert_eq!(open_uploads(moto, "large/"), 1);
    assert!(names(&destination).await.is_empty());
    let written = writer.finish().await.unwrap();
    assert_eq!(names(&destination).await, ["part-000001-1-0000000000000007.parquet"]);
    let bytes = destination.get(&written.name).await.unwrap().unwrap();
    assert_eq!(written.bytes, bytes.len() as u64);
    let hash = ring::digest::digest(&ring::digest::SHA256, &bytes);
    assert_eq!(written.sha256, hex::encode(hash));
    assert_eq!(open_uploads(moto, "large/"), 0);
}

#[tokio::test]
async fn an_aborted_part_leaves_no_object_and_no_upload() {
    let moto = Moto::shared();
    let destination = destination(moto, "given-up/");
    let mut aborted = writer(&destination);
    for number in 0..40 {
        aborted.write(megabyte(number)).await.unwrap();
    }
    assert_eq!(open_uploads(moto, "given-up/"), 1);
    aborted.abort().await.unwrap();
    assert_eq!(open_uploads(moto, "given-up/"), 0);
    let mut dropped = writer(&destination);
    for number in 0..40 {
        dropped.write(megabyte(number)).await.unwrap();
    }
    assert_eq!(open_uploads(moto, "given-up/"), 1);
    drop(dropped);
    let is_gone = async || open_uploads(moto, "given-up/") == 0;
    eventually("the upload is aborted", Duration::from_secs(20), is_gone).await;
    assert!(names(&destination).await.is_empty());
}

#[tokio::test]
async fn parts_manifests_and_orphans_behave_as_in_a_folder() {
    let moto = Moto::shared();
    let destination = destination(moto, "job/1");
    let output = Output::of(Format::Parquet);
    let mut parts = Vec::new();
    for (chunk, epoch) in [(1, 1), (1, 2), (2, 1)] {
        let name = PartName { chunk, epoch, nonce: 7 };
        parts.push(ManifestPart::new(
            name,
            write_difficult_rows(&destination, &name.file(output), output).await,
        ));
    }
    parts.remove(0);
    assert_eq!(Manifest::read(&destination).await.unwrap(), None);
    let schema = schema(&crate::common::columns());
    let manifest = Manifest::new("j", "EXPORT", output, &schema, parts).unwrap();
    manifest.write(&destination).await.unwrap();
    assert_eq!(Manifest::read(&destination).await.unwrap(), Some(manifest.clone()));
    let found = scan_orphans(&destination, &manifest).await.unwrap();
    assert_eq!(found.orphans, ["part-000001-1-0000000000000007.parquet"]);
    assert_eq!(found.missing, [""; 0]);
    found.delete_orphans(&destination).await.unwrap();
    found.delete_orphans(&destination).await.unwrap();
    let left = [
        "manifest.json",
        "part-000001-2-0000000000000007.parquet",
        "part-000002-1-0000000000000007.parquet",
    ];
    assert_eq!(names(&destination).await, left);
}

#[tokio::test]
async fn a_missing_bucket_is_reported() {
    let moto = Moto::shared();
    let destination = Destination::open_with("s3://nowhere/x/", moto.environment()).unwrap();
    let mut large = writer(&destination);
    let mut failed = None;
    for number in 0..40 {
        failed = failed.or(large.write(megabyte(number)).await.err());
    }
    for error in [
        writer(&destination).finish().await.unwrap_err(),
        failed.unwrap(),
        Manifest::read(&destination).await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::NoBucket { .. }), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Transient);
    }
}

#[tokio::test]
async fn a_refusing_endpoint_is_reported_and_nothing_is_half_visible() {
    let moto = Moto::start();
    let destination = destination(&moto, "refused/");
    let mut large = writer(&destination);
    for number in 0..40 {
        large.write(megabyte(number)).await.unwrap();
    }
    moto.refuse();
    for error in
        [writer(&destination).finish().await.unwrap_err(), large.finish().await.unwrap_err()]
    {
        assert!(matches!(error, Error::Denied { .. }), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::Transient);
    }
    moto.allow();
    assert!(names(&destination).await.is_empty());
    let mut again = writer(&destination);
    again.write(megabyte(1)).await.unwrap();
    again.finish().await.unwrap();
    assert_eq!(names(&destination).await, ["part-000001-1-0000000000000007.parquet"]);
}

fn at(addr: SocketAddr) -> Destination {
    let variables = [
        ("AWS_ENDPOINT_URL", format!("http://{addr}")),
        ("AWS_ACCESS_KEY_ID", "a".into()),
        ("AWS_SECRET_ACCESS_KEY", "b".into()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    Destination::open_with("s3://bucket/", variables).unwrap()
}

#[tokio::test]
async fn an_unreachable_endpoint_is_retryable() {
    let error = writer(&at((Ipv4Addr::LOCALHOST, free_port()).into())).finish().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_busy_endpoint_is_retryable() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let destination = at(listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 16 * 1024];
            let _ = stream.read(&mut request).await;
            let answer = "HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let error = writer(&destination).finish().await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
}
