//! No room left. In a process of its own, since the limit that stands for a full disk holds for
//! all of a process: it needs no rights that a machine of tests might not give.

#![allow(clippy::unwrap_used, reason = "a panic is how a test tells its failure")]

#[path = "parts/common.rs"]
#[expect(dead_code, reason = "the other tests use what this one does not")]
mod common;

use common::{blob_schema, folder_place, megabyte, names};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};
use std::time::Duration;
use windlass_export::{Class, Destination, Error, Format, Output, PartWriter};
use windlass_testkit::eventually;

/// Files may have this size and no more.
const ROOM: u64 = 20 * 1024 * 1024;

async fn write(place: &Destination, megabytes: i64) -> windlass_export::Result<()> {
    let (name, output) = ("part-000001-1-0000000000000007.parquet", Output::of(Format::Parquet));
    let mut writer = PartWriter::new(place, name, blob_schema(), output).unwrap();
    for number in 0..megabytes {
        writer.write(megabyte(number)).await?;
    }
    writer.finish().await.map(drop)
}

#[tokio::test]
async fn no_room_is_said_and_leaves_nothing_and_room_is_enough_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder_place(folder.path());
    let (soft, hard) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    ignore_the_signal();
    setrlimit(Resource::RLIMIT_FSIZE, ROOM, hard).unwrap();
    let error = write(&place, 60).await.unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error:?}");
    assert_eq!(error.class(), Class::Refused);
    assert!(error.to_string().contains("no room"), "{error}");
    let is_empty = async || names(&place).await.is_empty();
    eventually("the beginning is gone", Duration::from_secs(20), is_empty).await;

    // What goes in one request finds no room either.
    setrlimit(Resource::RLIMIT_FSIZE, 1024, hard).unwrap();
    let error = write(&place, 1).await.unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error:?}");
    assert!(names(&place).await.is_empty());

    setrlimit(Resource::RLIMIT_FSIZE, soft, hard).unwrap();
    write(&place, 60).await.unwrap();
    assert_eq!(names(&place).await, ["part-000001-1-0000000000000007.parquet"]);
}

/// Without it, the process would be ended in place of the write.
#[expect(unsafe_code, reason = "to set what a signal does is unsafe")]
fn ignore_the_signal() {
    // SAFETY: nothing runs on the signal.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) }.unwrap();
}
