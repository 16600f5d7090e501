//! A process that is killed while it writes.

use crate::common::{blob_schema, columns, folder_destination, megabyte, names};
use std::env;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use windlass_export::{Format, Manifest, Output, PartWriter, scan_orphans, schema};
use windlass_testkit::eventually;

const TEST: &str = "crash::a_killed_writer_leaves_no_file_that_looks_like_a_part";
/// The folder of the process that is to be killed, which is this test in a child process.
const FOLDER: &str = "WINDLASS_TEST_KILLED_IN";

#[tokio::test]
async fn a_killed_writer_leaves_no_file_that_looks_like_a_part() {
    if let Some(folder) = env::var_os(FOLDER) {
        return write_until_killed(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let destination = folder_destination(folder.path());
    let mut killed = Command::new(env::current_exe().unwrap())
        .args(["--exact", TEST])
        .env(FOLDER, folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let has_begun = async || destination.list().await.unwrap().iter().any(|(_, bytes)| *bytes > 0);
    eventually("the file has been started", Duration::from_secs(60), has_begun).await;
    killed.kill().await.unwrap();

    assert_eq!(names(&destination).await, ["part-000001-1-0000000000000007.parquet#1"]);
    assert_eq!(destination.get("part-000001-1-0000000000000007.parquet").await.unwrap(), None);
    let output = Output::of(Format::Parquet);
    let nothing = Manifest::new("j", "EXPORT", output, &schema(&columns()), Vec::new()).unwrap();
    scan_orphans(&destination, &nothing).await.unwrap().delete_orphans(&destination).await.unwrap();
    assert_eq!(names(&destination).await, [""; 0]);
}

async fn write_until_killed(folder: &Path) {
    let (destination, output) = (folder_destination(folder), Output::of(Format::Parquet));
    let mut writer = PartWriter::new(
        &destination,
        "part-000001-1-0000000000000007.parquet",
        blob_schema(),
        output,
    )
    .unwrap();
    for number in 0..60 {
        writer.write(megabyte(number)).await.unwrap();
    }
    // It also ends when the parent process is gone.
    let _ = tokio::io::stdin().read(&mut [0]).await;
}
