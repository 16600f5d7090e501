//! Alerts are raised once per occurrence and posted by one process.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use uuid::Uuid;
use windlass_core::{AlertKind, Delivery, JobId, Request};
use windlass_store::{
    Alert, AlertFilter, Capabilities, DeadLetterFilter, DeliveryAttempt, NewAlert, NewDeadLetter,
    Unleasable,
};

use crate::fixture::{StoreFixture, by, done, job_with, with_dead};

const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
const MINUTE: Duration = Duration::from_secs(60);

fn alert(kind: AlertKind, subject: &str) -> NewAlert {
    NewAlert {
        kind,
        subject: subject.to_owned(),
        job_type: "REFRESH".to_owned(),
        job: None,
        message: format!("{kind} of {subject}"),
        details: json!({"count": 1}),
        threshold: None,
        sustained_for: Duration::ZERO,
        post: true,
    }
}

fn condition(threshold: i64, sustained_for: Duration) -> NewAlert {
    NewAlert { threshold: Some(threshold), sustained_for, ..alert(AlertKind::NoWorker, "REFRESH") }
}

async fn all(fixture: &StoreFixture) -> Vec<Alert> {
    fixture.store.alerts(&AlertFilter::default()).await.unwrap()
}

async fn concurrent_processes_raise_an_occurrence_once(fixture: StoreFixture) {
    let raises = (0..8).map(|_| {
        let store = fixture.store.clone();
        tokio::spawn(async move {
            store.raise_alert(&alert(AlertKind::JobFailed, "a@1")).await.unwrap()
        })
    });
    let raised = join_all(raises).await.into_iter().filter(|raised| *raised.as_ref().unwrap());
    assert_eq!(raised.count(), 1);
    assert!(!fixture.other().await.raise_alert(&alert(AlertKind::JobFailed, "a@1")).await.unwrap());
    assert!(fixture.store.raise_alert(&alert(AlertKind::JobFailed, "a@2")).await.unwrap());
    assert!(fixture.store.raise_alert(&alert(AlertKind::BudgetExceeded, "a@1")).await.unwrap());
    let alerts = all(&fixture).await;
    assert_eq!(alerts.len(), 3);
    assert_eq!(alerts[2].message, "job-failed of a@1");
    assert_eq!(alerts[2].details, json!({"count": 1}));
}

async fn a_recurring_condition_raises_a_new_alert(fixture: StoreFixture) {
    let no_worker = condition(3, Duration::ZERO);
    assert!(fixture.store.raise_alert(&no_worker).await.unwrap());
    assert!(!fixture.store.raise_alert(&no_worker).await.unwrap(), "it still holds");
    let open = fixture.store.open_alerts(AlertKind::NoWorker).await.unwrap();
    assert_eq!(open, [("REFRESH".to_owned(), 3)]);
    fixture.store.clear_alert(AlertKind::NoWorker, "REFRESH", "it is over").await.unwrap();
    fixture.store.clear_alert(AlertKind::NoWorker, "REFRESH", "it is over").await.unwrap();
    assert!(fixture.store.open_alerts(AlertKind::NoWorker).await.unwrap().is_empty());
    assert!(fixture.store.raise_alert(&no_worker).await.unwrap(), "it occurred again");
    let cleared: Vec<_> = all(&fixture).await.iter().map(|a| a.cleared_at.is_some()).collect();
    assert_eq!(cleared, [false, true]);
}

async fn a_condition_is_raised_when_it_has_lasted_long_enough(fixture: StoreFixture) {
    let no_worker = condition(0, Duration::from_secs(300));
    let earlier = |seconds: i64, column: &str| match fixture.is_sqlite() {
        true => format!("UPDATE windlass_alerts SET {column} = {column} - {seconds} * 1000"),
        false => {
            format!("UPDATE windlass_alerts SET {column} = {column} - interval '{seconds} seconds'")
        }
    };
    assert!(!fixture.store.raise_alert(&no_worker).await.unwrap());
    fixture.run(&earlier(200, "since")).await;
    assert!(!fixture.store.raise_alert(&no_worker).await.unwrap(), "not long enough");
    assert!(all(&fixture).await.is_empty(), "a condition that is not raised is not listed");
    assert_eq!(fixture.store.lease_alert(MINUTE).await.unwrap(), None, "nor posted");
    fixture.run(&earlier(100, "since")).await;
    // It was not checked for a while, so it may have ended meanwhile.
    fixture.run(&earlier(90, "seen_at")).await;
    assert!(!fixture.store.raise_alert(&no_worker).await.unwrap(), "measured anew");
    assert!(!fixture.store.raise_alert(&no_worker).await.unwrap());
    fixture.run(&earlier(300, "since")).await;
    assert!(fixture.store.raise_alert(&no_worker).await.unwrap());
    assert!(!fixture.store.raise_alert(&no_worker).await.unwrap());
    assert_eq!(all(&fixture).await.len(), 1);

    fixture.store.clear_alert(AlertKind::NoWorker, "REFRESH", "it is over").await.unwrap();
    assert!(!fixture.store.raise_alert(&no_worker).await.unwrap());
    fixture.store.clear_alert(AlertKind::NoWorker, "REFRESH", "it is over").await.unwrap();
    assert!(fixture.store.open_alerts(AlertKind::NoWorker).await.unwrap().is_empty());
    assert_eq!(all(&fixture).await.len(), 1, "it ended before it was raised");
}

async fn fail(fixture: &StoreFixture, job: JobId) {
    let chunk = fixture.lease(job, 1).await.remove(0);
    fixture.store.fail(chunk.lease, &done(0), "broken", true, &[]).await.unwrap();
}

/// Raises an alert for each occurrence; returns the jobs.
async fn raise_all(fixture: &StoreFixture) -> Vec<(AlertKind, JobId)> {
    let found = fixture.store.occurrences(WEEK, 10).await.unwrap();
    for one in &found {
        assert!(fixture.store.raise_alert(&alert(one.kind, &one.subject)).await.unwrap());
    }
    found.into_iter().map(|one| (one.kind, one.job)).collect()
}

async fn failed_jobs_are_listed_until_their_alert_is_raised(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    assert_eq!(raise_all(&fixture).await, []);
    fail(&fixture, job).await;
    let found = fixture.store.occurrences(WEEK, 10).await.unwrap();
    assert_eq!(
        (found[0].job_type.as_str(), found[0].error.as_deref()),
        ("REFRESH", Some("broken"))
    );
    assert_eq!(found[0].submitted_by, fixture.job(job).await.submitted_by);
    assert_eq!(fixture.store.occurrences(Duration::ZERO, 10).await.unwrap(), [], "too long ago");
    assert_eq!(raise_all(&fixture).await, [(AlertKind::JobFailed, job)]);
    assert_eq!(raise_all(&fixture).await, []);
    fixture.store.retry(job).await.unwrap();
    assert_eq!(raise_all(&fixture).await, []);
    fail(&fixture, job).await;
    assert_eq!(raise_all(&fixture).await, [(AlertKind::JobFailed, job)], "it failed again");
}

async fn exceeded_budgets_are_not_detected_by_error_text(fixture: StoreFixture) {
    let failures = json!({ "failures": { "budget": 1, "on_exceeded": "pause" } });
    let job = fixture.planned_as(job_with(failures, Request::new("REFRESH")), 5).await;
    let die = async |dead| {
        let chunk = fixture.lease(job, 1).await.remove(0);
        fixture.store.complete(chunk.lease, &with_dead(dead), &[]).await.unwrap();
    };
    die(1).await;
    assert_eq!(raise_all(&fixture).await, []);
    die(1).await;
    assert_eq!(raise_all(&fixture).await, [(AlertKind::BudgetExceeded, job)]);
    fixture.store.resume(job).await.unwrap();
    assert_eq!(raise_all(&fixture).await, []);
    fixture.store.pause(job, Some("failure budget exceeded, writes an operator")).await.unwrap();
    assert_eq!(raise_all(&fixture).await, [], "paused by an operator");
    fixture.store.resume(job).await.unwrap();
    die(2).await;
    assert_eq!(raise_all(&fixture).await, [(AlertKind::BudgetExceeded, job)], "that one too");
}

async fn dead_letters_are_counted_by_type_up_to_a_limit(fixture: StoreFixture) {
    assert!(fixture.store.count_dead_letters(10).await.unwrap().is_empty());
    for (name, letters) in [("REFRESH", 4), ("OTHER", 2)] {
        let mut new = job_with(json!({}), Request::new(name));
        new.definition.name = name.to_owned();
        let job = fixture.planned_as(new, 1).await;
        let chunk = fixture.lease(job, 1).await.remove(0);
        let letter = |number| NewDeadLetter {
            key: format!("[{number}]"),
            record: json!({}),
            error: "bad".to_owned(),
            context: json!(null),
            attempts: 1,
        };
        let letters: Vec<_> = (0..letters).map(letter).collect();
        fixture.store.add_dead_letters(chunk.lease, &letters).await.unwrap();
    }
    let counts = async |most| fixture.store.count_dead_letters(most).await.unwrap();
    assert_eq!(counts(10).await, [("OTHER".to_owned(), 2), ("REFRESH".to_owned(), 4)]);
    assert_eq!(counts(3).await, [("OTHER".to_owned(), 2), ("REFRESH".to_owned(), 3)]);
    let others =
        DeadLetterFilter { job_type: Some("OTHER".to_owned()), ..DeadLetterFilter::default() };
    fixture
        .store
        .mark_dead_letters(&others, windlass_core::DeadLetterStatus::Ignored)
        .await
        .unwrap();
    assert_eq!(counts(10).await, [("REFRESH".to_owned(), 4)]);
}

async fn unleasable_work_is_listed(fixture: StoreFixture) {
    let found = async || fixture.store.unleasable().await.unwrap();
    assert_eq!(found().await, []);
    let job = fixture.submit().await;
    let waits = Unleasable {
        job_type: fixture.job(job).await.job_type,
        jobs: 1,
        connection: "app".to_owned(),
        handler: None,
    };
    let waiting = [waits.clone()];
    assert_eq!(found().await, waiting);
    let other = Capabilities { connections: vec!["other".to_owned()], ..by() };
    fixture.store.heartbeat_worker(&other, 1).await.unwrap();
    assert_eq!(found().await, waiting, "it lacks the connection");
    let only = Capabilities { only_job: Some(uuid::Uuid::now_v7()), ..by() };
    fixture.store.heartbeat_worker(&only, 1).await.unwrap();
    assert_eq!(found().await, waiting, "it works only another job");
    fixture.store.heartbeat_worker(&by(), 1).await.unwrap();
    assert_eq!(found().await, []);
    fixture.store.remove_worker(&by().worker).await.unwrap();
    fixture.store.stop(&waits.job_type, true).await.unwrap();
    assert_eq!(found().await, [], "it is stopped");
    fixture.store.stop(&waits.job_type, false).await.unwrap();
    fixture.store.pause(job, None).await.unwrap();
    assert_eq!(found().await, []);
    fixture.store.cancel(job).await.unwrap();

    let step = json!({ "step": { "handler": "enrich", "version": "version" } });
    fixture.store.submit(job_with(step, Request::new("REFRESH"))).await.unwrap();
    fixture.store.heartbeat_worker(&by(), 1).await.unwrap();
    assert_eq!(found().await, [Unleasable { handler: Some("enrich".to_owned()), ..waits }]);
    let able = Capabilities { handlers: vec!["enrich".to_owned()], ..by() };
    fixture.store.heartbeat_worker(&able, 1).await.unwrap();
    assert_eq!(found().await, []);
}

fn attempt(
    id: Uuid,
    attempts: u32,
    error: Option<&str>,
    wait: Duration,
    give_up_after: Duration,
) -> DeliveryAttempt {
    DeliveryAttempt { id, attempts, error: error.map(str::to_owned), wait, give_up_after }
}

async fn an_alert_is_leased_once_and_again_when_the_lease_expires(fixture: StoreFixture) {
    let logged = NewAlert { post: false, ..alert(AlertKind::JobFailed, "logged") };
    fixture.store.raise_alert(&logged).await.unwrap();
    fixture.store.raise_alert(&alert(AlertKind::JobFailed, "a")).await.unwrap();
    let leases = (0..4).map(|_| {
        let store = fixture.store.clone();
        tokio::spawn(async move { store.lease_alert(MINUTE).await.unwrap() })
    });
    let leased: Vec<_> = join_all(leases).await.into_iter().filter_map(Result::unwrap).collect();
    let [first] = leased.as_slice() else { panic!("{leased:?}") };
    assert_eq!((first.attempts, first.delivery), (1, Delivery::Pending));
    // As if its process had died: the lease expires at once.
    let late = attempt(first.id, 1, Some("unavailable"), Duration::ZERO, WEEK);
    let late = fixture.store.settle_alert(late).await;
    assert_eq!(late.unwrap(), Some(Delivery::Pending));
    let again = fixture.store.lease_alert(Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(
        (again.id, again.attempts, again.error.as_deref()),
        (first.id, 2, Some("unavailable"))
    );
    let settle = async |attempts, error| {
        let attempt = attempt(first.id, attempts, error, MINUTE, WEEK);
        fixture.store.settle_alert(attempt).await.unwrap()
    };
    assert_eq!(settle(1, None).await, None, "a later attempt has begun");
    assert_eq!(settle(2, None).await, Some(Delivery::Delivered));
    assert_eq!(settle(2, Some("late")).await, None);
    assert_eq!(fixture.store.lease_alert(MINUTE).await.unwrap(), None);
    let shown: Vec<_> = all(&fixture).await.iter().map(|alert| alert.delivery).collect();
    assert_eq!(shown, [Delivery::Delivered, Delivery::Logged]);
    assert!(all(&fixture).await[0].delivered_at.is_some());
}

async fn an_undeliverable_alert_is_given_up(fixture: StoreFixture) {
    fixture.store.raise_alert(&alert(AlertKind::JobFailed, "a")).await.unwrap();
    let leased = fixture.store.lease_alert(MINUTE).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let late = attempt(leased.id, 1, Some("refused"), MINUTE, Duration::from_millis(1));
    let settled = fixture.store.settle_alert(late).await;
    assert_eq!(settled.unwrap(), Some(Delivery::GivenUp));
    let shown = all(&fixture).await.remove(0);
    assert_eq!((shown.delivery, shown.error.as_deref()), (Delivery::GivenUp, Some("refused")));
    assert_eq!(shown.next_at, None);
}

async fn alerts_are_listed_by_submitter_and_deleted_by_age(fixture: StoreFixture) {
    let job = uuid::Uuid::now_v7();
    let of_ada = NewAlert {
        job: Some((job, "ada".to_owned())),
        post: false,
        ..alert(AlertKind::JobFailed, "a")
    };
    fixture.store.raise_alert(&of_ada).await.unwrap();
    fixture.store.raise_alert(&alert(AlertKind::JobFailed, "b")).await.unwrap();
    fixture
        .store
        .raise_alert(&NewAlert { post: false, ..condition(1, Duration::ZERO) })
        .await
        .unwrap();
    let filter = AlertFilter { submitted_by: Some("ada".to_owned()), ..AlertFilter::default() };
    let own = fixture.store.alerts(&filter).await.unwrap();
    assert_eq!(own.iter().map(|alert| alert.job_id).collect::<Vec<_>>(), [Some(job)]);
    let first = fixture.store.alerts(&AlertFilter { limit: 2, ..AlertFilter::default() }).await;
    let before = first.unwrap().last().map(|alert| alert.id);
    let rest =
        fixture.store.alerts(&AlertFilter { before, ..AlertFilter::default() }).await.unwrap();
    assert_eq!(rest, own);
    assert_eq!(fixture.store.remove_alerts(MINUTE).await.unwrap(), 0);
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(fixture.store.remove_alerts(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(all(&fixture).await.len(), 2, "one is being delivered, one still holds");
}

async fn the_end_of_a_posted_alert_is_posted(fixture: StoreFixture) {
    let clear = async |reason| {
        let cleared = fixture.store.clear_alert(AlertKind::NoWorker, "REFRESH", reason).await;
        cleared.unwrap()
    };
    fixture.store.raise_alert(&condition(1, Duration::ZERO)).await.unwrap();
    let leased = fixture.store.lease_alert(MINUTE).await.unwrap().unwrap();
    assert!(clear("a worker has started").await);
    assert!(!clear("again").await, "it is over already");
    // The delivery that began before the end does not settle the end.
    let late = fixture.store.settle_alert(attempt(leased.id, 1, None, MINUTE, WEEK)).await;
    assert_eq!(late.unwrap(), None);
    let end = fixture.store.lease_alert(MINUTE).await.unwrap().unwrap();
    assert_eq!((end.id, end.cleared_reason.as_deref()), (leased.id, Some("a worker has started")));
    assert!(end.cleared_at.is_some());
    let ended = attempt(end.id, end.attempts, None, MINUTE, WEEK);
    let settled = fixture.store.settle_alert(ended).await;
    assert_eq!(settled.unwrap(), Some(Delivery::Delivered));
    assert_eq!(fixture.store.lease_alert(MINUTE).await.unwrap(), None);

    let logged = NewAlert { post: false, ..condition(1, Duration::ZERO) };
    fixture.store.raise_alert(&logged).await.unwrap();
    assert!(clear("over").await);
    assert_eq!(fixture.store.lease_alert(MINUTE).await.unwrap(), None, "it is not posted");
}

async fn an_alert_is_acknowledged_once(fixture: StoreFixture) {
    let no_worker = condition(0, MINUTE);
    fixture.store.raise_alert(&no_worker).await.unwrap();
    fixture.store.raise_alert(&alert(AlertKind::JobFailed, "a")).await.unwrap();
    let open = AlertFilter { open: true, ..AlertFilter::default() };
    let [found] = fixture.store.alerts(&open).await.unwrap().try_into().unwrap();
    assert!(fixture.store.acknowledge_alert(found.id, "ada").await.unwrap());
    assert!(!fixture.store.acknowledge_alert(found.id, "bob").await.unwrap());
    assert!(!fixture.store.acknowledge_alert(uuid::Uuid::nil(), "bob").await.unwrap());
    assert!(fixture.store.alerts(&open).await.unwrap().is_empty());
    let one = AlertFilter { id: Some(found.id), ..AlertFilter::default() };
    let shown = fixture.store.alerts(&one).await.unwrap().remove(0);
    assert_eq!(shown.acknowledged_by.as_deref(), Some("ada"));
    assert!(shown.acknowledged_at.is_some() && shown.cleared_at.is_none());
    let other = AlertFilter { id: Some(uuid::Uuid::nil()), ..AlertFilter::default() };
    assert!(fixture.store.alerts(&other).await.unwrap().is_empty());
}

async fn a_job_that_failed_by_its_budget_is_listed_once(fixture: StoreFixture) {
    let failures = json!({ "failures": { "budget": 0, "on_exceeded": "fail" } });
    let job = fixture.planned_as(job_with(failures, Request::new("REFRESH")), 2).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    fixture.store.complete(chunk.lease, &with_dead(1), &[]).await.unwrap();
    assert_eq!(fixture.job(job).await.status, windlass_core::JobStatus::Failed);
    assert_eq!(raise_all(&fixture).await, [(AlertKind::BudgetExceeded, job)]);
    // A later failure for another reason is a failure of its own.
    fixture.store.retry(job).await.unwrap();
    fail(&fixture, job).await;
    assert_eq!(raise_all(&fixture).await, [(AlertKind::JobFailed, job)]);
}

async fn a_suspended_job_type_has_recovered_when_a_chunk_completes(fixture: StoreFixture) {
    let has_recovered = async || fixture.store.has_recovered("REFRESH").await.unwrap();
    assert!(has_recovered().await, "it was never suspended");
    let job = fixture.planned(2).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    fixture.store.suspend("REFRESH", "the service is down", MINUTE).await.unwrap();
    assert!(!has_recovered().await);
    let now = match fixture.is_sqlite() {
        true => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        false => "clock_timestamp()",
    };
    fixture.run(&format!("UPDATE windlass_controls SET suspended_until = {now}")).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(!has_recovered().await, "nothing has completed since");
    fixture.store.complete(chunk.lease, &done(1), &[]).await.unwrap();
    assert!(has_recovered().await);
    fixture.store.suspend("REFRESH", "down again", MINUTE).await.unwrap();
    fixture.run(&format!("UPDATE windlass_controls SET suspended_until = {now}")).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(!has_recovered().await);
    fixture.store.pause(job, None).await.unwrap();
    assert!(has_recovered().await, "no job can run");
}

both!(
    concurrent_processes_raise_an_occurrence_once,
    a_recurring_condition_raises_a_new_alert,
    a_condition_is_raised_when_it_has_lasted_long_enough,
    failed_jobs_are_listed_until_their_alert_is_raised,
    exceeded_budgets_are_not_detected_by_error_text,
    dead_letters_are_counted_by_type_up_to_a_limit,
    unleasable_work_is_listed,
    an_alert_is_leased_once_and_again_when_the_lease_expires,
    an_undeliverable_alert_is_given_up,
    alerts_are_listed_by_submitter_and_deleted_by_age,
    the_end_of_a_posted_alert_is_posted,
    an_alert_is_acknowledged_once,
    a_job_that_failed_by_its_budget_is_listed_once,
    a_suspended_job_type_has_recovered_when_a_chunk_completes,
);
