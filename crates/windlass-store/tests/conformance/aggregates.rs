//! Aggregates: jobs by hour, chunks by bucket and duration, throughput, and dead letters by error.

use std::time::Duration;

use windlass_core::{ChunkStatus, DeadLetterStatus, JobId, JobStatus};
use windlass_store::{DeadLetterFilter, Progress};

use crate::dead_letters::{begin, dead, letter, redrive};
use crate::fixture::{StoreFixture, new_job};

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn jobs_are_counted_by_hour(fixture: StoreFixture) {
    let mut job = new_job();
    job.identity.name = "ada".to_owned();
    let of_ada = fixture.planned_as(job, 1).await;
    fixture.submit().await;
    fixture.store.cancel(of_ada).await.unwrap();
    let counted = async |by: Option<&str>, status| {
        let hours = fixture.store.hourly_jobs(DAY, by, None).await.unwrap();
        assert!(hours.iter().all(|hour| hour.at.timestamp() % 3600 == 0), "{hours:?}");
        let found = hours.iter().filter(|hour| hour.status == status);
        found.map(|hour| hour.jobs).sum::<i64>()
    };
    assert_eq!(counted(None, JobStatus::Cancelled).await, 1);
    assert_eq!(counted(None, JobStatus::Queued).await, 1);
    assert_eq!(counted(Some("ada"), JobStatus::Cancelled).await, 1);
    assert_eq!(counted(Some("ada"), JobStatus::Queued).await, 0);
    assert_eq!(fixture.store.hourly_jobs(Duration::ZERO, None, None).await.unwrap(), []);
}

async fn chunks_are_counted_in_buckets(fixture: StoreFixture) {
    let job = fixture.planned(7).await;
    let leased = fixture.lease(job, 2).await;
    fixture.complete(&leased[0]).await.unwrap();
    let cells = fixture.store.chunk_buckets(job, 3).await.unwrap();
    let cells: Vec<_> = cells.iter().map(|cell| (cell.bucket, cell.status, cell.chunks)).collect();
    use ChunkStatus::{Completed, Pending, Processing};
    let expected =
        [(0, Completed, 1), (0, Pending, 1), (0, Processing, 1), (1, Pending, 3), (2, Pending, 1)];
    assert_eq!(cells, expected);
    assert_eq!(fixture.store.chunk_buckets(JobId::nil(), 3).await.unwrap(), []);
}

async fn throughput_buckets_add_up(fixture: StoreFixture) {
    let job = fixture.planned(3).await;
    assert_eq!(fixture.store.throughput_buckets(job, Duration::from_secs(5)).await.unwrap(), []);
    for chunk in fixture.lease(job, 3).await {
        fixture.complete(&chunk).await.unwrap();
    }
    let items = fixture.job(job).await.items.done();
    let paces = fixture.store.throughput_buckets(job, Duration::from_secs(5)).await.unwrap();
    assert_eq!(paces.iter().map(|pace| pace.items).sum::<i64>(), items);
    assert!(paces.iter().all(|pace| pace.at.timestamp_millis() % 5000 == 0), "{paces:?}");
}

async fn completed_chunks_are_counted_by_duration(fixture: StoreFixture) {
    let job = fixture.planned(8).await;
    assert_eq!(fixture.store.duration_buckets(job).await.unwrap(), []);
    assert_eq!(fixture.store.slowest_chunks(job, 2).await.unwrap(), []);
    let leased = fixture.lease(job, 7).await;
    for (chunk, millis) in leased.iter().zip([0, 99, 123, 129, 4567, 9_876_543]) {
        fixture.complete(chunk).await.unwrap();
        let ended = match fixture.is_sqlite() {
            true => format!("started_at + {millis}"),
            false => format!("started_at + interval '{millis} milliseconds'"),
        };
        let number = chunk.lease.chunk.number;
        let chunk = format!("job_id = '{job}' AND number = {number}");
        fixture
            .run(&format!("UPDATE windlass_chunks SET finished_at = {ended} WHERE {chunk}"))
            .await;
    }
    // Neither a failed nor an unleased chunk has a duration.
    fixture.store.fail(leased[6].lease, &Progress::default(), "no", false, &[]).await.unwrap();
    let durations = fixture.store.duration_buckets(job).await.unwrap();
    let durations: Vec<_> = durations.iter().map(|took| (took.millis, took.chunks)).collect();
    assert_eq!(durations, [(0, 1), (99, 1), (120, 2), (4500, 1), (9_800_000, 1)]);
    let slowest = fixture.store.slowest_chunks(job, 2).await.unwrap();
    let expected = [5, 4].map(|place| leased[place].lease.chunk.number);
    assert_eq!(slowest.iter().map(|chunk| chunk.chunk).collect::<Vec<_>>(), expected);
}

async fn dead_letters_are_grouped_by_error(fixture: StoreFixture) {
    let job =
        dead(&fixture, &[letter(1, "too light"), letter(2, "lost"), letter(3, "too light")]).await;
    dead(&fixture, &[letter(4, "too light")]).await;
    let groups = async |filter: DeadLetterFilter| {
        let groups = fixture.store.dead_letter_groups(&filter).await.unwrap();
        groups.into_iter().map(|group| (group.error, group.letters)).collect::<Vec<_>>()
    };
    let (light, lost) = ("too light".to_owned(), "lost".to_owned());
    assert_eq!(groups(DeadLetterFilter::default()).await, [(light.clone(), 3), (lost.clone(), 1)]);
    let of_job = DeadLetterFilter { job: Some(job), ..DeadLetterFilter::default() };
    assert_eq!(groups(of_job.clone()).await, [(light, 2), (lost.clone(), 1)]);
    let found = DeadLetterFilter { error: Some("OST".to_owned()), ..of_job };
    assert_eq!(groups(found).await, [(lost, 1)]);
    assert_eq!(groups(DeadLetterFilter { limit: 1, ..DeadLetterFilter::default() }).await.len(), 1);
}

async fn errors_that_differ_only_in_values_are_one_group(fixture: StoreFixture) {
    let errors = ["row 17 is bad", "row 18 is bad", "row 18 is bad, again", "lost"];
    let letters: Vec<_> = (1..).zip(errors).map(|(key, error)| letter(key, error)).collect();
    let job = dead(&fixture, &letters).await;
    let of_job = DeadLetterFilter { job: Some(job), ..DeadLetterFilter::default() };
    let groups = fixture.store.dead_letter_groups(&of_job).await.unwrap();
    let said: Vec<_> = groups.iter().map(|group| (group.error.as_str(), group.letters)).collect();
    // A group with a single error shows it unchanged.
    assert_eq!(said, [("row … is bad", 2), ("lost", 1), ("row 18 is bad, again", 1)]);
    for group in groups {
        let filter =
            DeadLetterFilter { fingerprint: Some(group.fingerprint.clone()), ..of_job.clone() };
        let found = fixture.store.dead_letters(&filter).await.unwrap();
        assert_eq!(found.len() as i64, group.letters, "exactly its letters");
        assert!(found.iter().all(|letter| letter.fingerprint == group.fingerprint), "{found:?}");
        let marked =
            fixture.store.mark_dead_letters(&filter, DeadLetterStatus::Ignored).await.unwrap();
        assert_eq!(marked as i64, group.letters);
    }
    // An item that fails with another error moves to another group.
    let job = dead(&fixture, &[letter(5, "row 5 is bad")]).await;
    let of_job = DeadLetterFilter { job: Some(job), ..DeadLetterFilter::default() };
    let fingerprint = Some("row … is bad".to_owned());
    let filter = DeadLetterFilter { fingerprint, ..of_job.clone() };
    assert_eq!(fixture.store.redrivable(&filter).await.unwrap()[0].letters, 1);
    let (again, taken) = redrive(&fixture, job, &filter).await.unwrap();
    assert_eq!(taken, 1);
    let chunk = begin(&fixture, again).await;
    let worse = [letter(5, "row 5 is worse")];
    fixture.store.add_dead_letters(chunk.lease, &worse).await.unwrap();
    assert_eq!(
        fixture.store.dead_letter_groups(&of_job).await.unwrap()[0].fingerprint,
        "row … is worse"
    );
}

both!(
    jobs_are_counted_by_hour,
    chunks_are_counted_in_buckets,
    throughput_buckets_add_up,
    completed_chunks_are_counted_by_duration,
    dead_letters_are_grouped_by_error,
    errors_that_differ_only_in_values_are_one_group,
);
