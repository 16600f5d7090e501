//! Jobs and letters by who submitted them, found by an index and not among everybody's.

use serde_json::json;
use windlass_core::{JobId, LetterStatus};
use windlass_store::{JobFilter, Kept, LetterFilter};

use crate::bench::{Bench, done, new_job};
use crate::letters::{letter, redrive};

both!(jobs_are_listed_by_submitter, letters_are_listed_marked_and_redriven_by_submitter);

async fn loaded_by(bench: &Bench, name: &str) -> JobId {
    let mut job = new_job();
    job.identity.name = name.to_owned();
    bench.loaded_as(job, 1).await
}

async fn jobs_are_listed_by_submitter(bench: Bench) {
    let mut own = Vec::new();
    for _ in 0..3 {
        own.insert(0, loaded_by(&bench, "ada").await);
        loaded_by(&bench, "bob").await;
    }
    let of = |name: &str| JobFilter { submitted_by: Some(name.to_owned()), ..JobFilter::default() };
    let listed = async |filter: &JobFilter| {
        let jobs = bench.store.jobs(filter).await.unwrap();
        jobs.iter().map(|job| job.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(&of("ada")).await, own);
    assert!(listed(&of("")).await.is_empty());
    assert_eq!(listed(&JobFilter::default()).await.len(), 6);
    assert_eq!(listed(&JobFilter { limit: 2, ..of("ada") }).await, own[..2]);
    assert_eq!(listed(&JobFilter { before: Some(own[1]), ..of("ada") }).await, own[2..]);
    bench.store.cancel(own[0]).await.unwrap();
    let queued = JobFilter { status: Some(bench.status(own[1]).await), ..of("ada") };
    assert_eq!(listed(&queued).await, own[1..]);
}

async fn letters_are_listed_marked_and_redriven_by_submitter(bench: Bench) {
    let mut jobs = Vec::new();
    for name in ["ada", "bob"] {
        let job = loaded_by(&bench, name).await;
        let chunk = bench.claim(job, 1).await.remove(0);
        let letters = [letter(1, "bad"), letter(2, "bad")];
        assert_eq!(bench.store.add_letters(chunk.lease, &letters).await.unwrap(), Kept::Yes);
        assert_eq!(bench.store.complete(chunk.lease, &done(8), &[]).await.unwrap(), Kept::Yes);
        jobs.push(job);
    }
    let of = |name: &str| LetterFilter {
        submitted_by: Some(name.to_owned()),
        ..LetterFilter::default()
    };
    let listed = bench.store.letters(&of("ada")).await.unwrap();
    assert_eq!(listed.iter().map(|l| l.job_id).collect::<Vec<_>>(), [jobs[0], jobs[0]]);
    let next = LetterFilter { before: Some(listed[0].id), ..of("ada") };
    assert_eq!(bench.store.letters(&next).await.unwrap(), listed[1..]);
    assert!(bench.store.letters(&of("eve")).await.unwrap().is_empty());
    let roots = bench.store.redrivable(&of("bob")).await.unwrap();
    assert_eq!(
        roots.iter().map(|root| (root.job, root.letters)).collect::<Vec<_>>(),
        [(jobs[1], 2)]
    );
    assert_eq!(redrive(&bench, jobs[1], &of("ada")).await, None, "they are bob's");
    assert_eq!(bench.store.mark_letters(&of("eve"), LetterStatus::Ignored).await.unwrap(), 0);
    assert_eq!(bench.store.mark_letters(&of("ada"), LetterStatus::Ignored).await.unwrap(), 2);
    assert_eq!(redrive(&bench, jobs[1], &of("bob")).await.map(|(_, letters)| letters), Some(2));
    assert_eq!(
        bench.store.letters(&of("bob")).await.unwrap()[0].record,
        json!({"id": 2, "text": "ü\u{0}\""})
    );
}
