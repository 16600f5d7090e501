//! A full disk. It is simulated by a limit on the size of files, which applies to the whole process, so this test is a
//! separate binary.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "parts/common.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod common;

use common::{blob_schema, folder_destination, megabyte, names};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};
use std::time::Duration;
use windlass_core::ErrorKind;
use windlass_export::{Destination, Error, Format, Output, PartWriter};
use windlass_testkit::eventually;

/// The limit on the size of files, in bytes.
const MAX_FILE_BYTES: u64 = 20 * 1024 * 1024;

async fn write(destination: &Destination, megabytes: i64) -> windlass_export::Result<()> {
    let (name, output) = ("part-000001-1-0000000000000007.parquet", Output::of(Format::Parquet));
    let mut writer = PartWriter::new(destination, name, blob_schema(), output).unwrap();
    for number in 0..megabytes {
        writer.write(megabyte(number)).await?;
    }
    writer.finish().await.map(drop)
}

#[tokio::test]
async fn a_full_disk_is_reported_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    let (soft, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    ignore_file_size_signal();
    setrlimit(Resource::RLIMIT_FSIZE, MAX_FILE_BYTES, hard).unwrap();
    let error = write(&destination, 60).await.unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Transient);
    assert!(error.to_string().contains("no space left"), "{error}");
    let is_empty = async || names(&destination).await.is_empty();
    eventually("the incomplete part is deleted", Duration::from_secs(20), is_empty).await;

    // A part that is written in one request fails too.
    setrlimit(Resource::RLIMIT_FSIZE, 1024, hard).unwrap();
    let error = write(&destination, 1).await.unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error:?}");
    assert!(names(&destination).await.is_empty());

    setrlimit(Resource::RLIMIT_FSIZE, soft, hard).unwrap();
    write(&destination, 60).await.unwrap();
    assert_eq!(names(&destination).await, ["part-000001-1-0000000000000007.parquet"]);
}

/// Without this, the signal would end the process.
#[expect(unsafe_code, reason = "setting a signal handler is unsafe")]
fn ignore_file_size_signal() {
    // SAFETY: the signal is ignored, so no handler runs.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.unwrap();
}
