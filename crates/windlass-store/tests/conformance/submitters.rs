//! Jobs and dead letters by submitter and job type.

use serde_json::json;
use std::time::Duration;
use windlass_core::{DeadLetterStatus, JobId};
use windlass_store::{AlertFilter, DeadLetterFilter, JobFilter, Owner};

use crate::dead_letters::{letter, redrive};
use crate::fixture::{StoreFixture, done, new_job};

async fn planned_by(fixture: &StoreFixture, name: &str) -> JobId {
    let mut job = new_job();
    job.identity.name = name.to_owned();
    fixture.planned_as(job, 1).await
}

async fn jobs_are_listed_by_submitter(fixture: StoreFixture) {
    let mut own = Vec::new();
    for _ in 0..3 {
        own.insert(0, planned_by(&fixture, "ada").await);
        planned_by(&fixture, "bob").await;
    }
    let of = |name: &str| JobFilter { submitted_by: Some(name.to_owned()), ..JobFilter::default() };
    let listed = async |filter: &JobFilter| {
        let jobs = fixture.store.jobs(filter).await.unwrap();
        jobs.iter().map(|job| job.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(&of("ada")).await, own);
    assert!(listed(&of("")).await.is_empty());
    assert_eq!(listed(&JobFilter::default()).await.len(), 6);
    assert_eq!(listed(&JobFilter { limit: 2, ..of("ada") }).await, own[..2]);
    assert_eq!(listed(&JobFilter { before: Some(own[1]), ..of("ada") }).await, own[2..]);
    fixture.store.cancel(own[0]).await.unwrap();
    let queued = JobFilter { status: Some(fixture.status(own[1]).await), ..of("ada") };
    assert_eq!(listed(&queued).await, own[1..]);
}

async fn letters_are_listed_marked_and_redriven_by_submitter(fixture: StoreFixture) {
    let mut jobs = Vec::new();
    for name in ["ada", "bob"] {
        let job = planned_by(&fixture, name).await;
        let chunk = fixture.lease(job, 1).await.remove(0);
        let letters = [letter(1, "bad"), letter(2, "bad")];
        fixture.store.add_dead_letters(chunk.lease, &letters).await.unwrap();
        fixture.store.complete(chunk.lease, &done(8), &[]).await.unwrap();
        jobs.push(job);
    }
    let of = |name: &str| DeadLetterFilter {
        submitted_by: Some(name.to_owned()),
        ..DeadLetterFilter::default()
    };
    let listed = fixture.store.dead_letters(&of("ada")).await.unwrap();
    assert_eq!(listed.iter().map(|l| l.job_id).collect::<Vec<_>>(), [jobs[0], jobs[0]]);
    let next = DeadLetterFilter { before: Some(listed[0].id), ..of("ada") };
    assert_eq!(fixture.store.dead_letters(&next).await.unwrap(), listed[1..]);
    assert!(fixture.store.dead_letters(&of("eve")).await.unwrap().is_empty());
    let roots = fixture.store.redrivable(&of("bob")).await.unwrap();
    assert_eq!(
        roots.iter().map(|root| (root.job, root.letters)).collect::<Vec<_>>(),
        [(jobs[1], 2)]
    );
    assert_eq!(redrive(&fixture, jobs[1], &of("ada")).await, None, "they belong to bob");
    assert_eq!(
        fixture.store.mark_dead_letters(&of("eve"), DeadLetterStatus::Ignored).await.unwrap(),
        0
    );
    assert_eq!(
        fixture.store.mark_dead_letters(&of("ada"), DeadLetterStatus::Ignored).await.unwrap(),
        2
    );
    assert_eq!(redrive(&fixture, jobs[1], &of("bob")).await.map(|(_, letters)| letters), Some(2));
    assert_eq!(
        fixture.store.dead_letters(&of("bob")).await.unwrap()[0].record,
        json!({"id": 2, "text": "ü\u{0}\""})
    );
}

async fn jobs_and_letters_are_listed_by_job_types(fixture: StoreFixture) {
    let mut jobs = Vec::new();
    for name in ["A", "B", "C"] {
        let mut job = new_job();
        job.definition.name = name.to_owned();
        job.request.job_type = name.to_owned();
        let id = fixture.planned_as(job, 1).await;
        let chunk = fixture.lease(id, 1).await.remove(0);
        fixture.store.add_dead_letters(chunk.lease, &[letter(1, "bad")]).await.unwrap();
        fixture.store.complete(chunk.lease, &done(9), &[]).await.unwrap();
        jobs.push(id);
    }
    let types = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    for (names, expected) in [(&["A", "C"][..], vec![jobs[2], jobs[0]]), (&[][..], vec![])] {
        let filter = JobFilter { job_types: types(names), ..JobFilter::default() };
        let listed = fixture.store.jobs(&filter).await.unwrap();
        assert_eq!(listed.iter().map(|job| job.id).collect::<Vec<_>>(), expected);
        let filter = DeadLetterFilter { job_types: types(names), ..DeadLetterFilter::default() };
        let listed = fixture.store.dead_letters(&filter).await.unwrap();
        assert_eq!(listed.iter().map(|letter| letter.job_id).collect::<Vec<_>>(), expected);
        let both = DeadLetterFilter { job_type: Some("B".to_owned()), ..filter.clone() };
        assert_eq!(fixture.store.dead_letters(&both).await.unwrap(), []);
        assert_eq!(fixture.store.dead_letter_groups(&filter).await.unwrap().len(), expected.len());
        assert_eq!(fixture.store.redrivable(&filter).await.unwrap().len(), expected.len());
        assert_eq!(redrive(&fixture, jobs[1], &filter).await, None, "they are of another type");
        let day = Duration::from_secs(24 * 3600);
        let names: Vec<String> = types(names).unwrap();
        let hours = fixture.store.hourly_jobs(day, None, Some(&names)).await.unwrap();
        assert_eq!(hours.iter().map(|hour| hour.jobs).sum::<i64>(), expected.len() as i64);
        let alerts = AlertFilter { job_types: Some(names), ..AlertFilter::default() };
        assert_eq!(fixture.store.alerts(&alerts).await.unwrap(), []);
    }
    let filter = DeadLetterFilter { job_types: types(&["A"]), ..DeadLetterFilter::default() };
    assert_eq!(
        fixture.store.mark_dead_letters(&filter, DeadLetterStatus::Ignored).await.unwrap(),
        1
    );
    let mut owners = fixture.store.owners(&[jobs[1], JobId::nil(), jobs[0]]).await.unwrap();
    owners.sort_by_key(|owner| owner.job_type.clone());
    let submitted_by = new_job().identity.name;
    let owner = |id, name: &str| Owner {
        id,
        job_type: name.to_owned(),
        submitted_by: submitted_by.clone(),
    };
    assert_eq!(owners, [owner(jobs[0], "A"), owner(jobs[1], "B")]);
}

async fn a_listing_reads_the_summary_instead_of_the_request(fixture: StoreFixture) {
    let mut job = new_job();
    job.request.ids = Some((0..1000).map(serde_json::Value::from).collect());
    job.request.params.insert("small".to_owned(), json!(1));
    let whole = job.request.clone();
    let id = fixture.store.submit(job).await.unwrap().id();
    let small = fixture.submit().await;
    assert_eq!(fixture.job(id).await.request, whole);
    // The request is replaced by invalid JSON: a listing that reads it fails.
    fixture
        .run(&format!("UPDATE windlass_jobs SET request = 'unreadable' WHERE id = '{id}'"))
        .await;
    for filter in [JobFilter::default(), JobFilter { id: Some(id), ..JobFilter::default() }] {
        let listed = fixture.store.jobs(&filter).await.unwrap();
        let job = listed.iter().find(|job| job.id == id).unwrap();
        assert_eq!((&job.request.ids, &job.request.params["small"]), (&None, &json!(1)));
        assert_eq!(job.omitted, [("ids".to_owned(), 1000)].into());
    }
    let listed = fixture.store.jobs(&JobFilter { id: Some(small), ..JobFilter::default() }).await;
    let listed = listed.unwrap();
    assert_eq!((listed.len(), listed[0].id), (1, small));
    assert!(listed[0].omitted.is_empty());
}

both!(
    jobs_are_listed_by_submitter,
    letters_are_listed_marked_and_redriven_by_submitter,
    jobs_and_letters_are_listed_by_job_types,
    a_listing_reads_the_summary_instead_of_the_request
);
