//! Jobs that come after others, and rules that wait for several.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use windlass_core::problem::Code;
use windlass_core::{Dependency, JobId, JobStatus, OnFailed, PaginationState, Request};
use windlass_store::{Kept, NewJob, Store, StoreError, Submitted, connect};

use crate::bench::{Bench, by, job_with, last_page, new_job, scan};

both!(
    a_job_waits_for_its_parents,
    a_failed_parent_does_what_the_request_says,
    who_was_let_down_lets_others_down,
    parents_that_have_ended_are_judged_at_once,
    a_repeated_request_is_the_same_job_whatever_became_of_its_parents,
    a_waiting_job_can_be_steered,
    no_link_is_missed_while_a_parent_ends,
    a_rule_fires_for_the_last_parent,
    a_rule_fires_again_only_for_new_parents,
    a_rule_keeps_values_and_claims_apart,
    failed_parents_do_what_the_rule_says,
    a_thousand_pairs_of_parents_make_a_thousand_triggers,
    cascades_that_cross_do_not_block_each_other,
    a_trigger_is_taken_by_one_and_tried_again_when_refused,
    a_parent_that_is_waited_for_is_kept,
    the_graph_shows_both_directions,
);

fn after(parents: &[JobId], on_failed: Option<OnFailed>) -> NewJob {
    let after = Some(parents.to_vec());
    job_with(json!({}), Request { after, on_failed, ..Request::new("REFRESH") })
}

/// A job of this type, which these rules wait for.
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

impl Bench {
    async fn put(&self, job: NewJob) -> JobId {
        self.store.submit(job).await.unwrap().id()
    }

    /// Whether a job could be worked now.
    async fn is_free(&self, job: JobId) -> bool {
        let by = windlass_store::Capabilities { only: Some(job), ..by() };
        let claimed = self.store.claim_segments(&by, 1).await.unwrap();
        for segment in &claimed {
            let released =
                self.store.release_segment(segment.lease, None, false, Duration::ZERO).await;
            assert_eq!(released.unwrap(), Kept::Yes);
        }
        !claimed.is_empty()
    }

    /// Ends a job that has no records.
    async fn end(&self, job: JobId, status: JobStatus) {
        match status {
            JobStatus::Completed => finish(&self.store, job).await,
            JobStatus::Failed => {
                let segment = self.segment_of(job).await;
                let failed = self.store.fail_segment(segment.lease, "broken").await;
                assert_eq!(failed.unwrap(), Kept::Yes);
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
    let by = windlass_store::Capabilities { only: Some(job), ..by() };
    let segment = store.claim_segments(&by, 1).await.unwrap().remove(0);
    let page = last_page(segment.lease, PaginationState::Plan, scan(0), Vec::new());
    assert_eq!(store.load(page).await.unwrap(), Kept::Yes);
}

async fn a_job_waits_for_its_parents(bench: Bench) {
    let (first, second) = (bench.submit().await, bench.submit().await);
    let child = bench.put(after(&[second, first, second], None)).await;
    assert!(!bench.is_free(child).await);
    let shown = bench.job(child).await;
    assert_eq!(shown.status, JobStatus::Queued);
    let why = shown.error.unwrap();
    assert!(why.contains("waits for 2 jobs") && why.contains(&first.to_string()), "{why}");
    bench.end(first, JobStatus::Completed).await;
    assert!(!bench.is_free(child).await);
    bench.end(second, JobStatus::Completed).await;
    assert_eq!(bench.job(child).await.error, None);
    bench.end(child, JobStatus::Completed).await;
    bench.check(child).await;
}

async fn a_failed_parent_does_what_the_request_says(bench: Bench) {
    for status in [JobStatus::Failed, JobStatus::Cancelled] {
        let parent = bench.submit().await;
        let block = bench.put(after(&[parent], None)).await;
        let run = bench.put(after(&[parent], Some(OnFailed::Run))).await;
        let cancel = bench.put(after(&[parent], Some(OnFailed::Cancel))).await;
        bench.end(parent, status).await;
        assert!(!bench.is_free(block).await);
        assert!(bench.job(block).await.error.unwrap().contains(status.as_str()));
        assert!(bench.is_free(run).await);
        let cancelled = bench.job(cancel).await;
        assert_eq!(cancelled.status, JobStatus::Cancelled);
        assert!(cancelled.finished_at.is_some());
        assert!(cancelled.error.unwrap().contains(&parent.to_string()));
        bench.check(cancel).await;
        if status == JobStatus::Failed {
            bench.store.retry(parent).await.unwrap();
            bench.end(parent, JobStatus::Completed).await;
            assert!(bench.is_free(block).await);
        }
    }
}

async fn who_was_let_down_lets_others_down(bench: Bench) {
    let first = bench.submit().await;
    let cancel = Some(OnFailed::Cancel);
    let second = bench.put(after(&[first], cancel)).await;
    let third = bench.put(after(&[first, second], cancel)).await;
    let stays = bench.put(after(&[third], None)).await;
    let mut followed = after(&[third], cancel);
    followed.rules = vec![rule("SUMMARY", &["REFRESH"], OnFailed::Run)];
    let fourth = bench.put(followed).await;
    bench.end(first, JobStatus::Failed).await;
    for job in [second, third, fourth] {
        assert_eq!(bench.status(job).await, JobStatus::Cancelled);
        bench.check(job).await;
    }
    assert_eq!(bench.status(stays).await, JobStatus::Queued);
    assert!(!bench.is_free(stays).await);
    assert_eq!(bench.triggered().await[0].after, Some(vec![fourth]));
}

async fn parents_that_have_ended_are_judged_at_once(bench: Bench) {
    let [completed, failed, cancelled] =
        [bench.submit().await, bench.submit().await, bench.submit().await];
    bench.end(completed, JobStatus::Completed).await;
    bench.end(failed, JobStatus::Failed).await;
    bench.end(cancelled, JobStatus::Cancelled).await;
    let job = bench.put(after(&[completed], None)).await;
    assert!(bench.is_free(job).await);
    let job = bench.put(after(&[completed, failed], None)).await;
    assert!(!bench.is_free(job).await);
    let job = bench.put(after(&[failed, cancelled], Some(OnFailed::Run))).await;
    assert!(bench.is_free(job).await);
    let job = bench.put(after(&[completed, failed], Some(OnFailed::Cancel))).await;
    assert_eq!(bench.status(job).await, JobStatus::Cancelled);
    bench.check(job).await;

    let unknown = JobId::now_v7();
    for (parents, field) in [(vec![cancelled], "after[0]"), (vec![completed, unknown], "after[1]")]
    {
        let refused = bench.store.submit(after(&parents, None)).await.unwrap_err();
        let StoreError::Problem(problem) = refused else { panic!("{refused}") };
        assert_eq!((problem.code, problem.field.as_deref()), (Code::Request, Some(field)));
    }
}

async fn a_repeated_request_is_the_same_job_whatever_became_of_its_parents(bench: Bench) {
    let parent = bench.submit().await;
    let mut job = after(&[parent], None);
    job.request.idempotency_key = Some("once".to_owned());
    let first = bench.put(job.clone()).await;
    bench.end(parent, JobStatus::Cancelled).await;
    assert_eq!(bench.store.submit(job.clone()).await.unwrap(), Submitted::New(first));
    let again = NewJob { id: JobId::now_v7(), ..job };
    assert_eq!(bench.store.submit(again).await.unwrap(), Submitted::Existing(first));
}

async fn a_waiting_job_can_be_steered(bench: Bench) {
    let parent = bench.submit().await;
    let paused = bench.put(after(&[parent], None)).await;
    let cancelled = bench.put(after(&[parent], None)).await;
    let resumed = bench.put(after(&[parent], None)).await;
    bench.store.pause(paused, None).await.unwrap();
    bench.store.pause(resumed, None).await.unwrap();
    bench.store.resume(resumed).await.unwrap();
    assert!(!bench.is_free(resumed).await);
    bench.end(cancelled, JobStatus::Cancelled).await;
    bench.end(parent, JobStatus::Completed).await;
    assert!(bench.is_free(resumed).await);
    assert!(!bench.is_free(paused).await);
    assert_eq!(bench.store.resume(paused).await.unwrap(), JobStatus::Queued);
    assert!(bench.is_free(paused).await);
    assert_eq!(bench.status(cancelled).await, JobStatus::Cancelled);
    bench.check(cancelled).await;
}

async fn no_link_is_missed_while_a_parent_ends(bench: Bench) {
    let other = connect(&bench.url).await.unwrap();
    for _ in 0..100 {
        let parent = bench.submit().await;
        let submitting = other.submit(after(&[parent], None));
        let (child, ()) = tokio::join!(submitting, finish(&bench.store, parent));
        assert!(bench.is_free(child.unwrap().id()).await);
    }
}

async fn a_rule_fires_for_the_last_parent(bench: Bench) {
    let rules = [rule("SUMMARY", &["A", "B"], OnFailed::Block)];
    let month = json!({"month": 1});
    let a = bench.put(parent("A", &rules, month.clone())).await;
    let b = bench.put(parent("B", &rules, month)).await;
    bench.end(b, JobStatus::Completed).await;
    assert!(bench.triggered().await.is_empty());
    let waiting = bench.store.join_points(10).await.unwrap().remove(0);
    assert_eq!((waiting.rule.job.as_str(), waiting.arrived.arrived()["B"].job), ("SUMMARY", b));
    bench.end(a, JobStatus::Completed).await;
    let triggered = bench.triggered().await.remove(0);
    assert_eq!(triggered.job_type, "SUMMARY");
    assert_eq!(triggered.after, Some(vec![a, b]));
    assert_eq!(json!(triggered.params), json!({"month": 1}));
    assert!(bench.store.join_points(10).await.unwrap().is_empty());
}

async fn a_rule_fires_again_only_for_new_parents(bench: Bench) {
    let rules = [rule("SUMMARY", &["A", "B"], OnFailed::Block)];
    for (name, expected) in [("A", 0), ("A", 0), ("B", 1), ("B", 1), ("A", 2), ("A", 2)] {
        let job = bench.put(parent(name, &rules, json!({}))).await;
        bench.end(job, JobStatus::Completed).await;
        assert_eq!(bench.triggered().await.len(), expected, "{name}");
    }
}

async fn a_rule_keeps_values_and_claims_apart(bench: Bench) {
    let rules = [rule("SUMMARY", &["A", "B"], OnFailed::Block)];
    let of = |name: &str, month: i64, county: &str| {
        let mut job = parent(name, &rules, json!({"month": month, "other": county}));
        job.identity.claims = [("county".to_owned(), vec![county.into()])].into();
        job
    };
    for (name, month, county) in [("A", 1, "north"), ("B", 2, "north"), ("B", 1, "south")] {
        let job = bench.put(of(name, month, county)).await;
        bench.end(job, JobStatus::Completed).await;
    }
    assert!(bench.triggered().await.is_empty());
    let job = bench.put(of("B", 1, "north")).await;
    bench.end(job, JobStatus::Completed).await;
    let trigger = bench.store.triggers(10).await.unwrap().remove(0);
    assert_eq!(json!(trigger.request.params), json!({"month": 1, "other": "north"}));
    assert_eq!(trigger.identity.claims["county"], ["north".into()]);
}

async fn failed_parents_do_what_the_rule_says(bench: Bench) {
    for (on_failed, fires) in [(OnFailed::Block, 0), (OnFailed::Run, 1), (OnFailed::Cancel, 1)] {
        let rules = [rule("SUMMARY", &["A", "B"], on_failed)];
        let a = bench.put(parent("A", &rules, json!({"of": on_failed.as_str()}))).await;
        let b = bench.put(parent("B", &rules, json!({"of": on_failed.as_str()}))).await;
        bench.end(a, JobStatus::Failed).await;
        assert!(bench.triggered().await.is_empty());
        bench.end(b, JobStatus::Completed).await;
        assert_eq!(bench.triggered().await.len(), fires, "{on_failed:?}");
        if on_failed == OnFailed::Block {
            bench.store.retry(a).await.unwrap();
            bench.end(a, JobStatus::Completed).await;
        }
        let trigger = bench.store.claim_triggers(10, Duration::ZERO).await.unwrap().remove(0);
        let child = NewJob { request: trigger.request, id: trigger.id, ..new_job() };
        let child = bench.put(child).await;
        bench.store.triggered(trigger.id).await.unwrap();
        let cancelled = bench.status(child).await == JobStatus::Cancelled;
        assert_eq!(cancelled, on_failed == OnFailed::Cancel);
        assert_eq!(bench.is_free(child).await, !cancelled);
    }
}

async fn a_thousand_pairs_of_parents_make_a_thousand_triggers(bench: Bench) {
    let rules = [rule("SUMMARY", &["A", "B"], OnFailed::Block)];
    let stores = [bench.other().await, bench.other().await];
    for month in 0..1000 {
        let a = bench.put(parent("A", &rules, json!({"month": month}))).await;
        let b = bench.put(parent("B", &rules, json!({"month": month}))).await;
        tokio::join!(finish(&stores[0], a), finish(&stores[1], b));
    }
    let mut months: Vec<_> =
        bench.triggered().await.iter().map(|request| request.params["month"].as_i64()).collect();
    months.sort();
    assert_eq!(months, (0..1000).map(Some).collect::<Vec<_>>());
}

async fn cascades_that_cross_do_not_block_each_other(bench: Bench) {
    let stores = [bench.other().await, bench.other().await, bench.other().await];
    let cancel = Some(OnFailed::Cancel);
    let rules = [rule("S", &["REFRESH"], OnFailed::Run), rule("T", &["REFRESH"], OnFailed::Cancel)];
    for round in 0..30 {
        let roots = [bench.submit().await, bench.submit().await, bench.submit().await];
        let mut layer = roots.to_vec();
        // Each job of a layer comes after two of the one above, so that the ways down cross.
        for _ in 0..3 {
            let mut next = Vec::new();
            for place in 0..3 {
                let mut child = after(&[layer[place], layer[(place + round) % 3]], cancel);
                child.rules = rules.to_vec();
                child.rules.rotate_left(place % 2);
                next.push(bench.put(child).await);
            }
            layer = next;
        }
        let cancels =
            [stores[0].cancel(roots[0]), stores[1].cancel(roots[1]), stores[2].cancel(roots[2])];
        for cancelled in futures::future::join_all(cancels).await {
            assert_eq!(cancelled.unwrap(), JobStatus::Cancelled);
        }
        for job in layer {
            assert_eq!(bench.status(job).await, JobStatus::Cancelled);
        }
    }
    // Nine jobs a round, two rules each.
    assert_eq!(bench.triggered().await.len(), 30 * 9 * 2);
}

async fn a_trigger_is_taken_by_one_and_tried_again_when_refused(bench: Bench) {
    let rules = [rule("SUMMARY", &["A"], OnFailed::Block)];
    let a = bench.put(parent("A", &rules, json!({}))).await;
    bench.end(a, JobStatus::Completed).await;
    let long = Duration::from_secs(60);
    let taken = bench.store.claim_triggers(10, long).await.unwrap();
    assert_eq!(taken.len(), 1);
    assert!(bench.store.claim_triggers(10, long).await.unwrap().is_empty());
    let id = taken[0].id;
    bench.store.fail_trigger(id, "no such type", Duration::ZERO).await.unwrap();
    let again = bench.store.claim_triggers(10, long).await.unwrap().remove(0);
    assert_eq!((again.id, again.attempts, again.error.as_deref()), (id, 1, Some("no such type")));
    bench.store.triggered(id).await.unwrap();
    assert!(bench.store.triggers(10).await.unwrap().is_empty());
}

async fn a_parent_that_is_waited_for_is_kept(bench: Bench) {
    let parent = bench.submit().await;
    let child = bench.put(after(&[parent], None)).await;
    bench.end(parent, JobStatus::Failed).await;
    let app = ["app".to_owned()];
    let expired = || bench.store.expired("REFRESH", Duration::ZERO, &app, 10);
    assert!(expired().await.unwrap().is_empty());
    assert!(!bench.store.close(parent, Duration::ZERO).await.unwrap());
    bench.store.cancel(child).await.unwrap();
    for job in [parent, child] {
        assert!(bench.store.close(job, Duration::ZERO).await.unwrap());
        bench.store.remove(job).await.unwrap();
    }
    assert_eq!(bench.number("SELECT count(*) FROM windlass_links").await, 0);
}

async fn the_graph_shows_both_directions(bench: Bench) {
    let [top, side] = [bench.submit().await, bench.submit().await];
    let left = bench.put(after(&[top], None)).await;
    let right = bench.put(after(&[top], None)).await;
    let bottom = bench.put(after(&[left, right, side], None)).await;
    bench.submit().await;
    let graph = bench.store.graph(left, 100).await.unwrap();
    let ids: Vec<_> = graph.iter().map(|linked| linked.id).collect();
    assert_eq!(ids, [top, side, left, right, bottom]);
    let mut parents = graph[4].after.clone();
    parents.sort();
    let mut expected = [left, right, side];
    expected.sort();
    assert_eq!(parents, expected);
}
