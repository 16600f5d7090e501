//! The rules, without a database.

use windlass_core::Budget;

use super::*;

fn head(status: JobStatus) -> JobState {
    JobState {
        id: JobId::nil(),
        status,
        started: true,
        redrive: false,
        open_segments: 0,
        open_chunks: 0,
        chunks_total: 30,
        items_total: 20_000,
        grants: 1,
        failures: None,
        closed: false,
        merge_due: false,
        merge_begun: false,
    }
}

fn with_budget(status: JobStatus, on_exceeded: OnExceeded, open: i64) -> JobState {
    let failures = Some(Failures { budget: Budget::Count(100), on_exceeded });
    JobState { failures, open_chunks: open, ..head(status) }
}

#[test]
fn a_failed_redrive_is_retried_only_while_its_letters_are_its_own() {
    let ended = JobState { redrive: true, ..head(JobStatus::Failed) };
    assert!(steer(&ended, &Steering::Retry).unwrap_err().detail.contains("dead redrive"));
    let open = JobState { open_chunks: 1, redrive: true, ..head(JobStatus::Failed) };
    assert!(steer(&open, &Steering::Retry).is_ok());
    // All its letters are settled: only the merge is repeated.
    assert!(steer(&JobState { merge_begun: true, ..ended }, &Steering::Retry).is_ok());
}

#[test]
fn only_a_failed_redrive_can_still_be_cancelled() {
    let failed = JobState { open_chunks: 28, ..head(JobStatus::Failed) };
    assert!(
        steer(&failed, &Steering::Cancel).unwrap_err().detail.contains("a redrive that failed")
    );
    let redrive = JobState { redrive: true, ..failed };
    let made = steer(&redrive, &Steering::Cancel).unwrap();
    assert_eq!((made.status, made.finish), (JobStatus::Cancelled, "clear"));
    let pruned = JobState { closed: true, ..redrive };
    assert!(steer(&pruned, &Steering::Cancel).unwrap_err().detail.contains("pruned"));
}

#[test]
fn a_redrive_that_fails_says_how_its_letters_are_redriven() {
    let redrive = JobState { redrive: true, open_chunks: 28, ..head(JobStatus::Processing) };
    let error = fail(&redrive, "no such column".to_owned()).unwrap().error.unwrap();
    assert!(error.contains("no such column; `windlass cancel "), "{error}");
    let one = FailedUnits { total: 1, numbers: vec![0], error: None };
    let ended = JobState { open_chunks: 0, ..redrive };
    let error = judge(&ended, &FailedUnits::default(), &one).unwrap().error.unwrap();
    assert!(error.ends_with("`windlass dead redrive` works the letters that are left"), "{error}");
}

#[test]
fn a_job_that_is_being_cancelled_is_at_work_and_can_only_be_cancelled_again() {
    let cancelled = head(JobStatus::Cancelled);
    assert_eq!(cancelled.reported_status(), JobStatus::Cancelled);
    for open in [
        JobState { open_chunks: 1, ..head(JobStatus::Cancelled) },
        JobState { open_segments: 1, ..cancelled },
    ] {
        assert_eq!(open.reported_status(), JobStatus::Processing);
        assert_eq!(steer(&open, &Steering::Cancel).unwrap().status, JobStatus::Cancelled);
        for other in [Steering::Pause { reason: None }, Steering::Resume, Steering::Retry] {
            assert!(steer(&open, &other).unwrap_err().detail.contains("being cancelled"));
        }
    }
}

#[test]
fn a_job_that_is_being_pruned_is_not_retried() {
    let closed = JobState { closed: true, ..head(JobStatus::Failed) };
    assert!(steer(&closed, &Steering::Retry).unwrap_err().detail.contains("submit it again"));
}

#[test]
fn every_steering_is_allowed_from_exactly_these_statuses() {
    for (steering, allowed) in [
        (Steering::Pause { reason: None }, "QUEUED PROCESSING"),
        (Steering::Resume, "PAUSED"),
        (Steering::Cancel, "QUEUED PROCESSING PAUSED"),
        (Steering::Retry, "FAILED"),
    ] {
        for status in JobStatus::ALL {
            let expected = allowed.split(' ').any(|name| name == status.as_str());
            for started in [true, false] {
                let head = JobState { started, ..head(*status) };
                match steer(&head, &steering) {
                    Ok(made) => {
                        assert!(expected, "{status}");
                        assert!(status.check_edge(made.status).is_ok());
                    }
                    Err(problem) => {
                        assert!(!expected, "{status}: {problem}");
                        assert_eq!(problem.code, Code::Status);
                        assert!(problem.detail.contains("only a"), "{problem}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_job_resumes_where_it_was() {
    let resumed = |started| {
        let head = JobState { started, ..head(JobStatus::Paused) };
        steer(&head, &Steering::Resume).unwrap()
    };
    assert_eq!(resumed(true).status, JobStatus::Processing);
    assert_eq!(resumed(false).status, JobStatus::Queued);
    assert_eq!(resumed(true).grants, 1);
}

#[test]
fn a_budget_is_exceeded_by_one_more_than_it_allows() {
    let mut job = with_budget(JobStatus::Processing, OnExceeded::Pause, 1);
    assert_eq!(budget(&job, 100), None);
    let made = budget(&job, 101).unwrap();
    assert_eq!(made.status, JobStatus::Paused);
    assert!(made.error.unwrap().contains("101 dead letters, 100 allowed"));
    job.grants = 2;
    assert_eq!(budget(&job, 200), None);
    assert!(budget(&job, 201).is_some());
}

#[test]
fn a_budget_pauses_only_what_goes_on_and_fails_what_has_not_ended() {
    use JobStatus::{Cancelled, Completed, Failed, Paused, Processing, Queued};
    let outcome = |status, on_exceeded, open| {
        budget(&with_budget(status, on_exceeded, open), 101).map(|made| made.status)
    };
    assert_eq!(outcome(Processing, OnExceeded::Pause, 0), None);
    assert_eq!(outcome(Processing, OnExceeded::Fail, 0), Some(Failed));
    assert_eq!(outcome(Queued, OnExceeded::Pause, 1), Some(Paused));
    assert_eq!(outcome(Paused, OnExceeded::Pause, 1), None);
    assert_eq!(outcome(Paused, OnExceeded::Fail, 1), Some(Failed));
    for ended in [Completed, Failed, Cancelled] {
        assert_eq!(outcome(ended, OnExceeded::Pause, 1), None);
        assert_eq!(outcome(ended, OnExceeded::Fail, 1), None);
    }
}

#[test]
fn a_job_is_judged_when_nothing_is_open() {
    use JobStatus::{Cancelled, Completed, Failed, Paused, Processing, Queued};
    for (status, expected) in [
        (Queued, Rest::Judge),
        (Processing, Rest::Judge),
        (Paused, Rest::No),
        (Cancelled, Rest::Close),
        (Failed, Rest::Sum),
        (Completed, Rest::No),
    ] {
        assert_eq!(rest(&head(status)), expected, "{status}");
        assert_eq!(rest(&JobState { open_segments: 1, ..head(status) }), Rest::No, "{status}");
        assert_eq!(rest(&JobState { open_chunks: 1, ..head(status) }), Rest::No, "{status}");
    }
}

#[test]
fn a_failed_job_names_its_chunks() {
    let none = FailedUnits::default();
    let job = head(JobStatus::Processing);
    assert_eq!(judge(&job, &none, &none).unwrap().status, JobStatus::Completed);
    let error = Some("no such column".to_owned());
    let two = FailedUnits { total: 2, numbers: vec![2, 17], error: error.clone() };
    let made = judge(&job, &none, &two).unwrap();
    assert_eq!(made.status, JobStatus::Failed);
    assert_eq!(
        made.error.unwrap(),
        format!(
            "2 of 30 chunks failed: 2, 17 (the first error: no such column); \
             `windlass retry {}` runs only those again",
            JobId::nil()
        )
    );
    let many = FailedUnits { total: 25, numbers: (0..10).collect(), error };
    assert!(judge(&job, &none, &many).unwrap().error.unwrap().contains("8, 9 and 15 more"));
}
