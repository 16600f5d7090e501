//! Jobs that run after other jobs, and dependencies with several parents.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use windlass_core::problem::Code;
use windlass_core::{Dependency, JobId, JobStatus, OnFailed, PaginationState, Request};
use windlass_store::{HandBack, NewJob, Store, StoreError, Submitted};

use crate::fixture::{StoreFixture, by, job_with, last_page, new_job, old, scan};

fn after(parents: &[JobId], on_failed: Option<OnFailed>) -> NewJob {
    let after = Some(parents.to_vec());
    job_with(json!({}), Request { after, on_failed, ..Request::new("REFRESH") })
}

/// A job of this type, for which these dependencies wait.
fn parent(name: &str, rules: &[Dependency], params: serde_json::Value) -> NewJob {
    let params = serde_json::from_value(params).unwrap();
    let mut job = job_with(json!({}), Request { params, ..Request::new(name) });
    job.definition.name = name.to_owned();
    job.rules = rules.to_vec();
    job
}

fn rule(job: &str, after: &[&str], on_failed: OnFailed) -> Dependency {
    let after = after.iter().map(|name| (*name).to_owned()).collect();
    Dependency { line: 0, job: job.to_owned(), after, matched: vec!["month".into()], on_failed }
}

impl StoreFixture {
    async fn put(&self, job: NewJob) -> JobId {
        self.store.submit(job).await.unwrap().id()
    }

    /// Whether a job can be leased now.
    async fn is_free(&self, job: JobId) -> bool {
        let by = windlass_store::Capabilities { only_job: Some(job), ..by() };
        let leased = self.store.lease_segments(&by, 1).await.unwrap();
        for segment in &leased {
            self.store.release_segment(segment.lease, HandBack::default()).await.unwrap();
        }
        !leased.is_empty()
    }

    /// Ends a job without records.
    async fn end(&self, job: JobId, status: JobStatus) {
        match status {
            JobStatus::Completed => finish(&self.store, job).await,
            JobStatus::Failed => {
                let segment = self.segment_of(job).await;
                self.store.fail_segment(segment.lease, "broken").await.unwrap();
            }
            _ => drop(self.store.cancel(job).await.unwrap()),
        }
        assert_eq!(self.status(job).await, status);
    }

    /// The requests of the jobs that are to be submitted.
    async fn triggered(&self) -> Vec<Request> {
        let triggers = self.store.triggers(10_000).await.unwrap();
        triggers.into_iter().map(|trigger| trigger.request).collect()
    }
}

async fn finish(store: &Arc<dyn Store>, job: JobId) {
    let by = windlass_store::Capabilities { only_job: Some(job), ..by() };
    let segment = store.lease_segments(&by, 1).await.unwrap().remove(0);
    let page = last_page(segment.lease, PaginationState::Plan, scan(0), Vec::new());
    store.commit_page(page).await.unwrap();
}

async fn a_job_waits_for_its_parents(fixture: StoreFixture) {
    let (first, second) = (fixture.submit().await, fixture.submit().await);
    let child = fixture.put(after(&[second, first, second], None)).await;
    assert!(!fixture.is_free(child).await);
    let shown = fixture.job(child).await;
    assert_eq!(shown.status, JobStatus::Queued);
    let why = shown.error.unwrap();
    assert!(why.contains("waits for 2 jobs") && why.contains(&first.to_string()), "{why}");
    fixture.end(first, JobStatus::Completed).await;
    assert!(!fixture.is_free(child).await);
    fixture.end(second, JobStatus::Completed).await;
    assert_eq!(fixture.job(child).await.error, None);
    fixture.end(child, JobStatus::Completed).await;
    fixture.check(child).await;
}

async fn on_failed_of_the_request_decides_about_failed_parents(fixture: StoreFixture) {
    for status in [JobStatus::Failed, JobStatus::Cancelled] {
        let parent = fixture.submit().await;
        let block = fixture.put(after(&[parent], None)).await;
        let run = fixture.put(after(&[parent], Some(OnFailed::Run))).await;
        let cancel = fixture.put(after(&[parent], Some(OnFailed::Cancel))).await;
        fixture.end(parent, status).await;
        assert!(!fixture.is_free(block).await);
        assert!(fixture.job(block).await.error.unwrap().contains(status.as_str()));
        assert!(fixture.is_free(run).await);
        let cancelled = fixture.job(cancel).await;
        assert_eq!(cancelled.status, JobStatus::Cancelled);
        assert!(cancelled.finished_at.is_some());
        assert!(cancelled.error.unwrap().contains(&parent.to_string()));
        fixture.check(cancel).await;
        if status == JobStatus::Failed {
            fixture.store.retry(parent).await.unwrap();
            fixture.end(parent, JobStatus::Completed).await;
            assert!(fixture.is_free(block).await);
        }
    }
}

async fn a_cancelled_follower_cancels_its_own_followers(fixture: StoreFixture) {
    let first = fixture.submit().await;
    let cancel = Some(OnFailed::Cancel);
    let second = fixture.put(after(&[first], cancel)).await;
    let third = fixture.put(after(&[first, second], cancel)).await;
    let stays = fixture.put(after(&[third], None)).await;
    let mut followed = after(&[third], cancel);
    followed.rules = vec![rule("SUMMARY", &["REFRESH"], OnFailed::Run)];
    let fourth = fixture.put(followed).await;
    fixture.end(first, JobStatus::Failed).await;
    for job in [second, third, fourth] {
        assert_eq!(fixture.status(job).await, JobStatus::Cancelled);
        fixture.check(job).await;
    }
    assert_eq!(fixture.status(stays).await, JobStatus::Queued);
    assert!(!fixture.is_free(stays).await);
    assert_eq!(fixture.triggered().await[0].after, Some(vec![fourth]));
}

async fn ended_parents_are_evaluated_at_submit(fixture: StoreFixture) {
    let [completed, failed, cancelled] =
        [fixture.submit().await, fixture.submit().await, fixture.submit().await];
    fixture.end(completed, JobStatus::Completed).await;
    fixture.end(failed, JobStatus::Failed).await;
    fixture.end(cancelled, JobStatus::Cancelled).await;
    let job = fixture.put(after(&[completed], None)).await;
    assert!(fixture.is_free(job).await);
    let job = fixture.put(after(&[completed, failed], None)).await;
    assert!(!fixture.is_free(job).await);
    let job = fixture.put(after(&[failed, cancelled], Some(OnFailed::Run))).await;
    assert!(fixture.is_free(job).await);
    let job = fixture.put(after(&[completed, failed], Some(OnFailed::Cancel))).await;
    assert_eq!(fixture.status(job).await, JobStatus::Cancelled);
    fixture.check(job).await;

    let unknown = JobId::now_v7();
    for (parents, field) in [(vec![cancelled], "after[0]"), (vec![completed, unknown], "after[1]")]
    {
        let refused = fixture.store.submit(after(&parents, None)).await.unwrap_err();
        let StoreError::Problem(problem) = refused else { panic!("{refused}") };
        assert_eq!((problem.code, problem.field.as_deref()), (Code::Request, Some(field)));
    }
}

async fn a_repeated_request_gives_the_same_job_after_its_parents_ended(fixture: StoreFixture) {
    let parent = fixture.submit().await;
    let mut job = after(&[parent], None);
    job.request.idempotency_key = Some("once".to_owned());
    let first = fixture.put(job.clone()).await;
    fixture.end(parent, JobStatus::Cancelled).await;
    assert_eq!(fixture.store.submit(job.clone()).await.unwrap(), Submitted::New(first));
    let again = NewJob { id: JobId::now_v7(), ..job };
    assert_eq!(fixture.store.submit(again).await.unwrap(), Submitted::Existing(first));
}

async fn a_waiting_job_accepts_commands(fixture: StoreFixture) {
    let parent = fixture.submit().await;
    let paused = fixture.put(after(&[parent], None)).await;
    let cancelled = fixture.put(after(&[parent], None)).await;
    let resumed = fixture.put(after(&[parent], None)).await;
    fixture.store.pause(paused, None).await.unwrap();
    fixture.store.pause(resumed, None).await.unwrap();
    fixture.store.resume(resumed).await.unwrap();
    assert!(!fixture.is_free(resumed).await);
    fixture.end(cancelled, JobStatus::Cancelled).await;
    fixture.end(parent, JobStatus::Completed).await;
    assert!(fixture.is_free(resumed).await);
    assert!(!fixture.is_free(paused).await);
    assert_eq!(fixture.store.resume(paused).await.unwrap(), JobStatus::Queued);
    assert!(fixture.is_free(paused).await);
    assert_eq!(fixture.status(cancelled).await, JobStatus::Cancelled);
    fixture.check(cancelled).await;
}

async fn a_submit_that_races_with_the_end_of_a_parent_misses_nothing(fixture: StoreFixture) {
    let other = fixture.other().await;
    for _ in 0..fixture.rounds(100) {
        let parent = fixture.submit().await;
        let submitting = other.submit(after(&[parent], None));
        let (child, ()) = tokio::join!(submitting, finish(&fixture.store, parent));
        assert!(fixture.is_free(child.unwrap().id()).await);
    }
}

async fn a_dependency_fires_when_its_last_parent_ends(fixture: StoreFixture) {
    let rules = [rule("SUMMARY", &["A", "B"], OnFailed::Block)];
    let month = json!({"month": 1});
    let a = fixture.put(parent("A", &rules, month.clone())).await;
    let b = fixture.put(parent("B", &rules, month)).await;
    fixture.end(b, JobStatus::Completed).await;
    assert!(fixture.triggered().await.is_empty());
    let waiting = fixture.store.join_points(10).await.unwrap().remove(0);
    assert_eq!((waiting.rule.job.as_str(), waiting.arrived.arrived()["B"].job), ("SUMMARY", b));
    fixture.end(a, JobStatus::Completed).await;
    let triggered = fixture.triggered().await.remove(0);
    assert_eq!(triggered.job_type, "SUMMARY");
    assert_eq!(triggered.after, Some(vec![a, b]));
    assert_eq!(json!(triggered.params), json!({"month": 1}));
    assert!(fixture.store.join_points(10).await.unwrap().is_empty());
}

async fn a_dependency_fires_again_only_for_new_parents(fixture: StoreFixture) {
    let rules = [rule("SUMMARY", &["A", "B"], OnFailed::Block)];
    for (name, expected) in [("A", 0), ("A", 0), ("B", 1), ("B", 1), ("A", 2), ("A", 2)] {
        let job = fixture.put(parent(name, &rules, json!({}))).await;
        fixture.end(job, JobStatus::Completed).await;
        assert_eq!(fixture.triggered().await.len(), expected, "{name}");
    }
}

async fn a_dependency_separates_values_and_claims(fixture: StoreFixture) {
    let rules = [rule("SUMMARY", &["A", "B"], OnFailed::Block)];
    let of = |name: &str, month: i64, county: &str| {
        let mut job = parent(name, &rules, json!({"month": month, "other": county}));
        job.identity.claims = [("county".to_owned(), vec![county.into()])].into();
        job
    };
    for (name, month, county) in [("A", 1, "north"), ("B", 2, "north"), ("B", 1, "south")] {
        let job = fixture.put(of(name, month, county)).await;
        fixture.end(job, JobStatus::Completed).await;
    }
    assert!(fixture.triggered().await.is_empty());
    let job = fixture.put(of("B", 1, "north")).await;
    fixture.end(job, JobStatus::Completed).await;
    let trigger = fixture.store.triggers(10).await.unwrap().remove(0);
    assert_eq!(json!(trigger.request.params), json!({"month": 1, "other": "north"}));
    assert_eq!(trigger.identity.claims["county"], ["north".into()]);
}

async fn on_failed_of_the_dependency_decides_about_failed_parents(fixture: StoreFixture) {
    for (on_failed, fires) in [(OnFailed::Block, 0), (OnFailed::Run, 1), (OnFailed::Cancel, 1)] {
        let rules = [rule("SUMMARY", &["A", "B"], on_failed)];
        let a = fixture.put(parent("A", &rules, json!({"of": on_failed.as_str()}))).await;
        let b = fixture.put(parent("B", &rules, json!({"of": on_failed.as_str()}))).await;
        fixture.end(a, JobStatus::Failed).await;
        assert!(fixture.triggered().await.is_empty());
        fixture.end(b, JobStatus::Completed).await;
        assert_eq!(fixture.triggered().await.len(), fires, "{on_failed:?}");
        if on_failed == OnFailed::Block {
            fixture.store.retry(a).await.unwrap();
            fixture.end(a, JobStatus::Completed).await;
        }
        let trigger = fixture.store.lease_triggers(10, Duration::ZERO).await.unwrap().remove(0);
        let child = NewJob { request: trigger.request, id: trigger.id, ..new_job() };
        let child = fixture.put(child).await;
        assert!(fixture.triggered().await.is_empty(), "the job is submitted");
        fixture.store.complete_trigger(trigger.id).await.unwrap();
        let cancelled = fixture.status(child).await == JobStatus::Cancelled;
        assert_eq!(cancelled, on_failed == OnFailed::Cancel);
        assert_eq!(fixture.is_free(child).await, !cancelled);
    }
}

async fn each_pair_of_parents_makes_one_trigger(fixture: StoreFixture) {
    let pairs = fixture.rounds(1000);
    let rules = [rule("SUMMARY", &["A", "B"], OnFailed::Block)];
    let stores = [fixture.other().await, fixture.other().await];
    for month in 0..pairs {
        let a = fixture.put(parent("A", &rules, json!({"month": month}))).await;
        let b = fixture.put(parent("B", &rules, json!({"month": month}))).await;
        tokio::join!(finish(&stores[0], a), finish(&stores[1], b));
    }
    let mut months: Vec<_> =
        fixture.triggered().await.iter().map(|request| request.params["month"].as_i64()).collect();
    months.sort();
    assert_eq!(months, (0..pairs).map(Some).collect::<Vec<_>>());
}

async fn concurrent_cascades_do_not_deadlock(fixture: StoreFixture) {
    let stores = [fixture.other().await, fixture.other().await, fixture.other().await];
    let cancel = Some(OnFailed::Cancel);
    let rules = [rule("S", &["REFRESH"], OnFailed::Run), rule("T", &["REFRESH"], OnFailed::Cancel)];
    let rounds = fixture.rounds(30) as usize;
    for round in 0..rounds {
        let roots = [fixture.submit().await, fixture.submit().await, fixture.submit().await];
        let mut layer = roots.to_vec();
        // Each job of a layer runs after two jobs of the layer above, so the cascades cross.
        for _ in 0..3 {
            let mut next = Vec::new();
            for place in 0..3 {
                let mut child = after(&[layer[place], layer[(place + round) % 3]], cancel);
                child.rules = rules.to_vec();
                child.rules.rotate_left(place % 2);
                next.push(fixture.put(child).await);
            }
            layer = next;
        }
        let cancels =
            [stores[0].cancel(roots[0]), stores[1].cancel(roots[1]), stores[2].cancel(roots[2])];
        for cancelled in futures::future::join_all(cancels).await {
            assert_eq!(cancelled.unwrap(), JobStatus::Cancelled);
        }
        for job in layer {
            assert_eq!(fixture.status(job).await, JobStatus::Cancelled);
        }
    }
    // Nine jobs per round, two dependencies each.
    assert_eq!(fixture.triggered().await.len(), rounds * 9 * 2);
}

async fn a_trigger_is_leased_once_and_retried_after_a_refusal(fixture: StoreFixture) {
    let rules = [rule("SUMMARY", &["A"], OnFailed::Block)];
    let a = fixture.put(parent("A", &rules, json!({}))).await;
    fixture.end(a, JobStatus::Completed).await;
    let long = Duration::from_secs(60);
    let taken = fixture.store.lease_triggers(10, long).await.unwrap();
    assert_eq!(taken.len(), 1);
    assert!(fixture.store.lease_triggers(10, long).await.unwrap().is_empty());
    let id = taken[0].id;
    fixture.store.fail_trigger(id, "no such type", Duration::ZERO).await.unwrap();
    let again = fixture.store.lease_triggers(10, long).await.unwrap().remove(0);
    assert_eq!((again.id, again.attempts, again.error.as_deref()), (id, 1, Some("no such type")));
    fixture.store.complete_trigger(id).await.unwrap();
    assert!(fixture.store.triggers(10).await.unwrap().is_empty());
}

async fn a_parent_with_waiting_followers_is_not_pruned(fixture: StoreFixture) {
    let parent = fixture.submit().await;
    let child = fixture.put(after(&[parent], None)).await;
    fixture.end(parent, JobStatus::Failed).await;
    let app = ["app".to_owned()];
    let old = old("REFRESH", Duration::ZERO, &app);
    let expired = || fixture.store.expired(&old);
    assert!(expired().await.unwrap().is_empty());
    assert!(!fixture.store.close_job(parent, Duration::ZERO).await.unwrap());
    fixture.store.cancel(child).await.unwrap();
    for job in [parent, child] {
        assert!(fixture.store.close_job(job, Duration::ZERO).await.unwrap());
        fixture.store.remove_job(job).await.unwrap();
    }
    assert_eq!(fixture.number("SELECT count(*) FROM windlass_links").await, 0);
}

async fn the_graph_contains_ancestors_and_descendants(fixture: StoreFixture) {
    let [top, side] = [fixture.submit().await, fixture.submit().await];
    let left = fixture.put(after(&[top], None)).await;
    let right = fixture.put(after(&[top], None)).await;
    let bottom = fixture.put(after(&[left, right, side], None)).await;
    fixture.submit().await;
    let graph = fixture.store.dependency_graph(left, 100).await.unwrap();
    let ids: Vec<_> = graph.iter().map(|linked| linked.id).collect();
    assert_eq!(ids, [top, side, left, right, bottom]);
    let mut parents = graph[4].after.clone();
    parents.sort();
    let mut expected = [left, right, side];
    expected.sort();
    assert_eq!(parents, expected);
}

both!(
    a_job_waits_for_its_parents,
    on_failed_of_the_request_decides_about_failed_parents,
    a_cancelled_follower_cancels_its_own_followers,
    ended_parents_are_evaluated_at_submit,
    a_repeated_request_gives_the_same_job_after_its_parents_ended,
    a_waiting_job_accepts_commands,
    a_submit_that_races_with_the_end_of_a_parent_misses_nothing,
    a_dependency_fires_when_its_last_parent_ends,
    a_dependency_fires_again_only_for_new_parents,
    a_dependency_separates_values_and_claims,
    on_failed_of_the_dependency_decides_about_failed_parents,
    each_pair_of_parents_makes_one_trigger,
    concurrent_cascades_do_not_deadlock,
    a_trigger_is_leased_once_and_retried_after_a_refusal,
    a_parent_with_waiting_followers_is_not_pruned,
    the_graph_contains_ancestors_and_descendants,
);
