//! Writing to a full disk. A limit on the size of files stands in for the disk: it needs no privileges.

use crate::common::{blob_schema, folder_destination, megabyte, names};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};
use std::process::Command;
use std::time::Duration;
use windlass_core::ErrorKind;
use windlass_export::{Destination, Error, Format, Output, PartWriter};
use windlass_testkit::eventually;

/// The largest file size while the disk is "full".
const MAX_FILE_BYTES: u64 = 20 * 1024 * 1024;

/// Set in the child process that runs with the limit.
const IN_CHILD: &str = "WINDLASS_TEST_FULL_DISK";

/// The path of the test, for the child process.
const TEST: &str = "full_disk::a_full_disk_is_reported_and_leaves_no_file";

/// The limit holds for a whole process, and other tests run in this one, so the test runs itself in a child process.
#[tokio::test]
async fn a_full_disk_is_reported_and_leaves_no_file() {
    if std::env::var_os(IN_CHILD).is_some() {
        return write_to_a_full_disk().await;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args([TEST, "--exact", "--nocapture"])
        .env(IN_CHILD, "1")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{output}{}", String::from_utf8_lossy(&child.stderr));
    assert!(output.contains("1 passed"), "the child ran no test: {output}");
}

async fn write_to_a_full_disk() {
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
    eventually("the incomplete file is deleted", Duration::from_secs(20), is_empty).await;

    // A part that is written in a single request fails in the same way.
    setrlimit(Resource::RLIMIT_FSIZE, 1024, hard).unwrap();
    let error = write(&destination, 1).await.unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error:?}");
    assert!(names(&destination).await.is_empty());

    setrlimit(Resource::RLIMIT_FSIZE, soft, hard).unwrap();
    write(&destination, 60).await.unwrap();
    assert_eq!(names(&destination).await, ["part-000001-1-0000000000000007.parquet"]);
}

async fn write(destination: &Destination, megabytes: i64) -> windlass_export::Result<()> {
    let (name, output) = ("part-000001-1-0000000000000007.parquet", Output::of(Format::Parquet));
    let mut writer = PartWriter::new(destination, name, blob_schema(), output).unwrap();
    for number in 0..megabytes {
        writer.write(megabyte(number)).await?;
    }
    writer.finish().await.map(drop)
}

/// By default the kernel ends a process that exceeds the limit; with the signal ignored, the write fails.
#[expect(unsafe_code, reason = "setting a signal's disposition is unsafe")]
fn ignore_file_size_signal() {
    // SAFETY: no handler runs; the signal is ignored.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.unwrap();
}
