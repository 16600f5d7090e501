//! Dead letters are written once, listed, redriven by one job at a time, and settled.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use windlass_core::{DeadLetterStatus, JobId, JobStatus, Key, PaginationState, Value};
use windlass_store::{DeadLetter, DeadLetterFilter, LeasedChunk, NewDeadLetter, NewJob};

use crate::fixture::{StoreFixture, by, cut, done, last_page, new_job, scan, with_dead};

pub(crate) fn letter(number: i64, error: &str) -> NewDeadLetter {
    NewDeadLetter {
        key: Key(vec![Value::Int(number)]).to_text(),
        record: json!({ "id": number, "text": "ü\u{0}\"" }),
        error: error.to_owned(),
        context: json!({ "line": number }),
        attempts: 3,
    }
}

async fn all(fixture: &StoreFixture) -> Vec<DeadLetter> {
    let mut letters = fixture.store.dead_letters(&DeadLetterFilter::default()).await.unwrap();
    letters.sort_by_key(|letter| letter.key.as_i64());
    letters
}

/// A completed job with these letters.
pub(crate) async fn dead(fixture: &StoreFixture, letters: &[NewDeadLetter]) -> JobId {
    let job = fixture.planned(1).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    fixture.store.add_dead_letters(chunk.lease, letters).await.unwrap();
    let progress = with_dead(letters.len() as i64);
    fixture.store.complete(chunk.lease, &progress, &[]).await.unwrap();
    job
}

fn redriving(original: JobId) -> NewJob {
    NewJob { root: original, ..new_job() }
}

pub(crate) async fn redrive(
    fixture: &StoreFixture,
    original: JobId,
    filter: &DeadLetterFilter,
) -> Option<(JobId, u64)> {
    fixture.store.redrive(original, filter, redriving(original)).await.unwrap()
}

/// Plans a redrive with one chunk and leases it.
pub(crate) async fn begin(fixture: &StoreFixture, job: JobId) -> LeasedChunk {
    let plan = fixture.segment_of(job).await;
    let page = last_page(plan.lease, PaginationState::Plan, scan(10), cut(1));
    fixture.store.commit_page(page).await.unwrap();
    fixture.lease(job, 1).await.remove(0)
}

async fn a_redrive_chain_lists_a_job_and_its_redrives(fixture: StoreFixture) {
    let job = dead(&fixture, &[letter(1, "bad"), letter(2, "worse")]).await;
    dead(&fixture, &[letter(3, "bad")]).await;
    let of = |error: &str| DeadLetterFilter {
        job: Some(job),
        error: Some(error.to_owned()),
        ..DeadLetterFilter::default()
    };
    let (one, _) = redrive(&fixture, job, &of("bad")).await.unwrap();
    let (two, _) = redrive(&fixture, job, &of("worse")).await.unwrap();
    let chunk = begin(&fixture, one).await;
    fixture.store.complete(chunk.lease, &done(1), &[]).await.unwrap();
    let redrive_chain = fixture.store.redrive_chain(job).await.unwrap();
    let states = [JobStatus::Completed, JobStatus::Completed, JobStatus::Queued];
    assert_eq!(redrive_chain, [job, one, two].into_iter().zip(states).collect::<Vec<_>>());
    assert!(
        fixture.store.redrive_chain(two).await.unwrap().len() == 1,
        "a redrive has none of its own"
    );
}

async fn a_letter_is_written_once(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    let letters = [letter(1, "bad"), letter(2, "worse\0")];
    for _ in 0..3 {
        fixture.store.add_dead_letters(chunk.lease, &letters).await.unwrap();
    }
    fixture.store.add_dead_letters(chunk.lease, &[]).await.unwrap();
    let written = all(&fixture).await;
    assert_eq!(written.len(), 2);
    let first = &written[0];
    assert_eq!((first.job_id, first.job_type.as_str(), first.chunk), (job, "REFRESH", 0));
    assert_eq!((&first.key, &first.record), (&json!(1), &letters[0].record));
    assert_eq!((&first.context, first.attempts), (&letters[0].context, 3));
    assert_eq!((first.status, first.redrive_job), (DeadLetterStatus::New, None));
    assert_eq!(first.created_at, first.updated_at, "a repeated call changes nothing");
    assert_eq!(written[1].error, "worse\u{fffd}");
}

async fn dead_letters_are_filtered(fixture: StoreFixture) {
    let one = dead(&fixture, &[letter(1, "100% BAD"), letter(2, "a_b")]).await;
    let other = dead(&fixture, &[letter(3, "Bad\\path")]).await;
    let found = async |filter: DeadLetterFilter| {
        let mut keys: Vec<_> = (fixture.store.dead_letters(&filter).await.unwrap().iter())
            .map(|letter| letter.key.as_i64().unwrap())
            .collect();
        keys.sort_unstable();
        keys
    };
    let error = |text: &str| DeadLetterFilter { error: Some(text.into()), ..Default::default() };
    assert_eq!(found(error("bad")).await, [1, 3]);
    assert_eq!(found(error("0% b")).await, [1]);
    assert_eq!(found(error("%")).await, [1]);
    assert_eq!(found(error("_")).await, [2]);
    assert_eq!(found(error("\\P")).await, [3]);
    let none = DeadLetterFilter::default();
    assert_eq!(found(DeadLetterFilter { job: Some(other), ..none.clone() }).await, [3]);
    let typed = |name: &str| DeadLetterFilter { job_type: Some(name.into()), ..Default::default() };
    assert_eq!(found(typed("REFRESH")).await, [1, 2, 3]);
    assert!(found(typed("OTHER")).await.is_empty());
    let ids = all(&fixture).await.iter().take(2).map(|letter| letter.id).collect();
    assert_eq!(found(DeadLetterFilter { ids, ..none.clone() }).await, [1, 2]);
    let old = |age| DeadLetterFilter { older_than: Some(age), ..Default::default() };
    assert_eq!(found(old(Duration::ZERO)).await, [1, 2, 3]);
    assert!(found(old(Duration::from_secs(3600))).await.is_empty());
    assert!(found(old(Duration::MAX)).await.is_empty());

    let ignored = DeadLetterFilter { job: Some(one), ..none.clone() };
    let marked =
        fixture.store.mark_dead_letters(&ignored, DeadLetterStatus::Ignored).await.unwrap();
    assert_eq!(marked, 2);
    let status = |status| DeadLetterFilter { status: Some(status), ..Default::default() };
    assert_eq!(found(status(DeadLetterStatus::Ignored)).await, [1, 2]);
    assert_eq!(found(status(DeadLetterStatus::New)).await, [3]);
    assert_eq!(found(none).await, [1, 2, 3]);
}

async fn letters_are_listed_newest_first_in_pages(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    for number in 0..7 {
        fixture.store.add_dead_letters(chunk.lease, &[letter(number, "bad")]).await.unwrap();
    }
    let mut keys = Vec::new();
    let mut before = None;
    loop {
        let filter = DeadLetterFilter { before, limit: 3, ..DeadLetterFilter::default() };
        let page = fixture.store.dead_letters(&filter).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        keys.extend(page.iter().map(|letter| letter.key.as_i64().unwrap()));
    }
    assert_eq!(keys, [6, 5, 4, 3, 2, 1, 0]);
}

async fn a_redrive_takes_letters_and_settles_them(fixture: StoreFixture) {
    let original = dead(&fixture, &[letter(1, "bad"), letter(2, "bad"), letter(3, "other")]).await;
    let filter = DeadLetterFilter { error: Some("bad".into()), ..DeadLetterFilter::default() };
    let roots = fixture.store.redrivable(&filter).await.unwrap();
    assert_eq!((roots.len(), roots[0].job, roots[0].letters), (1, original, 2));

    let (job, count) = redrive(&fixture, original, &filter).await.unwrap();
    assert_eq!(count, 2);
    let mut ids = fixture.job(job).await.request.ids.unwrap();
    ids.sort_by_key(|id| id.as_i64());
    assert_eq!(ids, [json!(1), json!(2)]);
    assert_eq!(fixture.store.snapshot(job).await.unwrap().unwrap().root, original);
    let letters = all(&fixture).await;
    assert_eq!(letters[0].status, DeadLetterStatus::New, "until its item is processed");
    assert_eq!([letters[0].redrive_job, letters[2].redrive_job], [Some(job), None]);
    assert!(fixture.store.redrivable(&filter).await.unwrap().is_empty());
    assert!(redrive(&fixture, original, &filter).await.is_none(), "another redrive has taken them");

    let chunk = begin(&fixture, job).await;
    let settled = [letter(1, "").key, letter(2, "").key, letter(3, "").key];
    fixture.store.complete(chunk.lease, &done(2), &settled).await.unwrap();
    let letters = all(&fixture).await;
    let statuses: Vec<_> = letters.iter().map(|letter| letter.status).collect();
    assert_eq!(
        statuses,
        [DeadLetterStatus::Reprocessed, DeadLetterStatus::Reprocessed, DeadLetterStatus::New],
        "only those that name the redrive"
    );
    assert_eq!(letters[0].redrive_job, Some(job), "it names the redrive");
    fixture.check(job).await;
}

async fn an_item_that_fails_again_updates_its_letter(fixture: StoreFixture) {
    let original = dead(&fixture, &[letter(1, "bad"), letter(2, "bad")]).await;
    let before = all(&fixture).await;
    let (job, _) = redrive(&fixture, original, &DeadLetterFilter::default()).await.unwrap();
    let chunk = begin(&fixture, job).await;
    for _ in 0..2 {
        let again = [letter(1, "still bad")];
        fixture.store.add_dead_letters(chunk.lease, &again).await.unwrap();
    }
    let settled = [letter(1, "").key, letter(2, "").key];
    fixture.store.complete(chunk.lease, &with_dead(1), &settled).await.unwrap();
    let after = all(&fixture).await;
    assert_eq!(after.len(), 2);
    assert_eq!((after[0].id, after[0].job_id), (before[0].id, original));
    assert_eq!((after[0].error.as_str(), after[0].attempts), ("still bad", 6));
    assert_eq!((after[0].status, after[0].redrive_job), (DeadLetterStatus::New, None));
    assert!(after[0].updated_at > before[0].updated_at);
    assert_eq!(after[1].status, DeadLetterStatus::Reprocessed);
    // It can be redriven again.
    assert_eq!(redrive(&fixture, original, &DeadLetterFilter::default()).await.unwrap().1, 1);
}

async fn concurrent_redrives_take_each_letter_once(fixture: StoreFixture) {
    let letters: Vec<_> = (0..40).map(|number| letter(number, "bad")).collect();
    let original = dead(&fixture, &letters).await;
    let redrives = (0..6).map(|_| {
        let settings = fixture.settings.clone();
        tokio::spawn(async move {
            let store = windlass_store::connect_with(&settings).await.unwrap();
            let filter = DeadLetterFilter { limit: 10, ..DeadLetterFilter::default() };
            store.redrive(original, &filter, redriving(original)).await.unwrap()
        })
    });
    let taken: Vec<_> =
        join_all(redrives).await.into_iter().filter_map(|outcome| outcome.unwrap()).collect();
    let mut ids = Vec::new();
    for (job, count) in &taken {
        let keys = fixture.job(*job).await.request.ids.unwrap();
        assert_eq!(keys.len() as u64, *count);
        ids.extend(keys.iter().map(|key| key.as_i64().unwrap()));
        let named = all(&fixture).await.iter().filter(|l| l.redrive_job == Some(*job)).count();
        assert_eq!(named as u64, *count);
    }
    let distinct: HashSet<_> = ids.iter().collect();
    assert_eq!(ids.len(), distinct.len(), "no letter twice");
    // A redrive may have got no letters, but no letter is left over.
    while redrive(&fixture, original, &DeadLetterFilter::default()).await.is_some() {}
    assert!(all(&fixture).await.iter().all(|letter| letter.redrive_job.is_some()));
}

async fn a_cancelled_redrive_releases_its_letters(fixture: StoreFixture) {
    let original = dead(&fixture, &[letter(1, "bad")]).await;
    let (job, _) = redrive(&fixture, original, &DeadLetterFilter::default()).await.unwrap();
    begin(&fixture, job).await;
    fixture.store.cancel(job).await.unwrap();
    assert_eq!(all(&fixture).await[0].redrive_job, Some(job), "a worker may still commit");
    let ending = fixture.store.lease_cancelled(&by(), 1).await.unwrap().remove(0);
    fixture.store.end_cancelled(ending.lease, &done(0), &[]).await.unwrap();
    assert_eq!(all(&fixture).await[0].redrive_job, None);
    let (job, _) = redrive(&fixture, original, &DeadLetterFilter::default()).await.unwrap();

    // A failed redrive releases its letters, too.
    let chunk = begin(&fixture, job).await;
    fixture.store.fail(chunk.lease, &done(0), "bad", false, &[]).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Failed);
    assert_eq!(fixture.store.redrivable(&DeadLetterFilter::default()).await.unwrap().len(), 1);
    assert!(redrive(&fixture, original, &DeadLetterFilter::default()).await.is_some());
}

async fn a_stopped_redrive_settles_done_items_and_releases_the_others(fixture: StoreFixture) {
    for fails in [true, false] {
        let written = [letter(1, "bad"), letter(2, "bad"), letter(3, "bad")];
        let original = dead(&fixture, &written).await;
        let of = DeadLetterFilter { job: Some(original), ..DeadLetterFilter::default() };
        let (job, _) = redrive(&fixture, original, &of).await.unwrap();
        let mut chunk = begin(&fixture, job).await;
        if !fails {
            fixture.store.cancel(job).await.unwrap();
            chunk = fixture.store.lease_cancelled(&by(), 1).await.unwrap().remove(0);
        }
        let again = [letter(3, "worse")];
        fixture.store.add_dead_letters(chunk.lease, &again).await.unwrap();
        let settled = [letter(1, "").key];
        // A repeated call succeeds.
        for _ in 0..2 {
            let kept = match fails {
                true => fixture.store.fail(chunk.lease, &done(1), "no", false, &settled).await,
                false => fixture.store.end_cancelled(chunk.lease, &done(1), &settled).await,
            };
            kept.unwrap();
        }
        let ended = if fails { JobStatus::Failed } else { JobStatus::Cancelled };
        assert_eq!(fixture.status(job).await, ended);
        let mut after = fixture.store.dead_letters(&of).await.unwrap();
        after.sort_by_key(|letter| letter.key.as_i64());
        let statuses: Vec<_> = after.iter().map(|letter| letter.status).collect();
        assert_eq!(
            statuses,
            [DeadLetterStatus::Reprocessed, DeadLetterStatus::New, DeadLetterStatus::New]
        );
        assert_eq!((after[0].redrive_job, after[2].error.as_str()), (Some(job), "worse"));
        assert_eq!(redrive(&fixture, original, &of).await.unwrap().1, 2, "exactly the others");
        fixture.check(job).await;
    }
}

/// A redrive of two chunks that failed with its first chunk.
async fn half_failed(fixture: &StoreFixture) -> (JobId, JobId) {
    let original = dead(fixture, &[letter(1, "bad"), letter(2, "bad")]).await;
    let of = DeadLetterFilter { job: Some(original), ..DeadLetterFilter::default() };
    let (job, _) = redrive(fixture, original, &of).await.unwrap();
    let plan = fixture.segment_of(job).await;
    let page = last_page(plan.lease, PaginationState::Plan, scan(10), cut(2));
    fixture.store.commit_page(page).await.unwrap();
    let chunk = fixture.lease(job, 1).await.remove(0);
    fixture.store.fail(chunk.lease, &done(0), "no such column", true, &[]).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Failed);
    (original, job)
}

async fn a_failed_redrive_with_open_chunks_keeps_its_letters_until_it_is_cancelled(
    fixture: StoreFixture,
) {
    let (original, job) = half_failed(&fixture).await;
    let error = fixture.job(job).await.error.unwrap();
    assert!(error.contains(&format!("no such column; after `windlass cancel {job}`")), "{error}");
    let of = DeadLetterFilter { job: Some(original), ..DeadLetterFilter::default() };
    assert!(redrive(&fixture, original, &of).await.is_none());
    assert_eq!(fixture.store.mark_dead_letters(&of, DeadLetterStatus::Ignored).await.unwrap(), 0);

    assert_eq!(fixture.store.cancel(job).await.unwrap(), JobStatus::Cancelled);
    let cancelled = fixture.job(job).await;
    assert_eq!((cancelled.chunks.failed, cancelled.chunks.cancelled), (1, 1));
    assert_eq!(cancelled.error.unwrap(), error, "it keeps its error");
    fixture.check(job).await;
    assert!(fixture.store.retry(job).await.is_err());
    assert_eq!(redrive(&fixture, original, &of).await.unwrap().1, 2);

    // Other failed jobs can be retried or submitted again, but not cancelled.
    let other = fixture.planned(2).await;
    let chunk = fixture.lease(other, 1).await.remove(0);
    fixture.store.fail(chunk.lease, &done(0), "no", true, &[]).await.unwrap();
    assert!(fixture.store.cancel(other).await.unwrap_err().to_string().contains("FAILED"));
}

async fn a_failed_redrive_with_open_chunks_is_not_pruned(fixture: StoreFixture) {
    let (_, job) = half_failed(&fixture).await;
    assert!(!fixture.store.close_job(job, Duration::ZERO).await.unwrap());
    fixture.store.cancel(job).await.unwrap();
    assert!(fixture.store.close_job(job, Duration::ZERO).await.unwrap());
}

async fn a_repeated_redrive_gives_the_same_job(fixture: StoreFixture) {
    let original = dead(&fixture, &[letter(1, "bad"), letter(2, "bad")]).await;
    let job = redriving(original);
    for _ in 0..2 {
        let made = fixture.store.redrive(original, &DeadLetterFilter::default(), job.clone()).await;
        assert_eq!(made.unwrap(), Some((job.id, 2)));
    }
    let nothing =
        fixture.store.redrive(new_job().id, &DeadLetterFilter::default(), new_job()).await;
    assert_eq!(nothing.unwrap(), None);
}

async fn letters_being_redriven_are_not_marked(fixture: StoreFixture) {
    let original = dead(&fixture, &[letter(1, "bad"), letter(2, "bad"), letter(3, "bad")]).await;
    let one = DeadLetterFilter { limit: 1, ..DeadLetterFilter::default() };
    redrive(&fixture, original, &one).await.unwrap();
    let mark = async |filter: DeadLetterFilter| {
        fixture.store.mark_dead_letters(&filter, DeadLetterStatus::Ignored).await.unwrap()
    };
    assert_eq!(mark(one.clone()).await, 1);
    assert_eq!(mark(DeadLetterFilter::default()).await, 1);
    assert_eq!(mark(DeadLetterFilter::default()).await, 0);
    let new =
        DeadLetterFilter { status: Some(DeadLetterStatus::New), ..DeadLetterFilter::default() };
    let left = fixture.store.dead_letters(&new).await.unwrap();
    assert_eq!(left.len(), 1);
    assert!(left[0].redrive_job.is_some());
    assert!(redrive(&fixture, original, &DeadLetterFilter::default()).await.is_none());
}

async fn a_composite_key_is_redriven_as_a_list(fixture: StoreFixture) {
    let key = Key(vec![Value::Text("a".repeat(5000)), Value::Int(2)]);
    let composite = NewDeadLetter { key: key.to_text(), ..letter(1, "bad") };
    let original = dead(&fixture, &[composite]).await;
    let (job, _) = redrive(&fixture, original, &DeadLetterFilter::default()).await.unwrap();
    assert_eq!(fixture.job(job).await.request.ids.unwrap(), [key.to_id()]);
    assert_eq!(all(&fixture).await[0].key, key.to_id());
}

both!(
    a_letter_is_written_once,
    dead_letters_are_filtered,
    letters_are_listed_newest_first_in_pages,
    a_redrive_takes_letters_and_settles_them,
    an_item_that_fails_again_updates_its_letter,
    concurrent_redrives_take_each_letter_once,
    a_cancelled_redrive_releases_its_letters,
    a_stopped_redrive_settles_done_items_and_releases_the_others,
    a_failed_redrive_with_open_chunks_keeps_its_letters_until_it_is_cancelled,
    a_failed_redrive_with_open_chunks_is_not_pruned,
    a_repeated_redrive_gives_the_same_job,
    a_redrive_chain_lists_a_job_and_its_redrives,
    letters_being_redriven_are_not_marked,
    a_composite_key_is_redriven_as_a_list,
);
