//! A store that is restored from a backup of the time before a job was planned.

use crate::protocol::common::*;
use windlass_core::JobStatus;

/// Records with lower keys arrive after the backup, so that the chunks are cut differently when they are planned again.
#[tokio::test]
async fn a_job_that_is_planned_again_repeats_no_effect() {
    let fixture = EngineFixture::sqlite().await;
    fixture.visits(30).await;
    let jobs = job(ADD, "chunk.items = 10");
    let engine = fixture.engine(&jobs).await;
    let id = submit(&engine).await;
    let backup = fixture.folder.path().join("backup.db");
    fixture.back_up_store(&backup).await;
    let done = work(&engine, id).await;
    assert_eq!(done.status, JobStatus::Completed);
    fixture.app.run("INSERT INTO visits (id) VALUES (-1), (-2), (-3), (-4), (-5)").await;

    let store = format!("sqlite:{}", backup.display());
    let restored = builder(&toml(&fixture.app.url(), &store, &jobs)).connect().await.unwrap();
    let found = restored.continue_after_restore().await.unwrap();
    assert_eq!(found.replanned, [("app".to_owned(), id, 3)]);
    assert_eq!(work(&restored, id).await.status, JobStatus::Cancelled);
    let changed = fixture.int("SELECT sum(amount) FROM visits WHERE id > 0").await;
    let twice = fixture.int("SELECT count(*) FROM visits WHERE amount > 1").await;
    assert_eq!((changed, twice), (30, 0), "changes, and records changed twice");
    let again = restored.continue_after_restore().await.unwrap();
    assert_eq!(again.replanned, [], "it has ended");
}
