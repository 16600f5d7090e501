//! Tests of the rules, without a database.

use windlass_core::Budget;

use super::*;

fn job(status: JobStatus) -> JobState {
    JobState {
        id: JobId::nil(),
        status,
        started: true,
        redrive: false,
        open_segments: 0,
        open_chunks: 0,
        chunks_total: 30,
        items_total: 20_000,
        budget_multiplier: 1,
        failures: None,
        closed: false,
        merge_due: false,
        merge_begun: false,
    }
}

fn with_budget(status: JobStatus, on_exceeded: OnExceeded, open: i64) -> JobState {
    let failures = Some(Failures { budget: Budget::Count(100), on_exceeded });
    JobState { failures, open_chunks: open, ..job(status) }
}

#[test]
fn a_failed_redrive_can_be_retried_until_it_releases_its_letters() {
    let ended = JobState { redrive: true, ..job(JobStatus::Failed) };
    assert!(command(&ended, &JobCommand::Retry).unwrap_err().detail.contains("dead redrive"));
    let open = JobState { open_chunks: 1, redrive: true, ..job(JobStatus::Failed) };
    assert!(command(&open, &JobCommand::Retry).is_ok());
    // All its letters are settled, so only the merge is retried.
    assert!(command(&JobState { merge_begun: true, ..ended }, &JobCommand::Retry).is_ok());
}

#[test]
fn of_failed_jobs_only_a_redrive_can_be_cancelled() {
    let failed = JobState { open_chunks: 28, ..job(JobStatus::Failed) };
    assert!(
        command(&failed, &JobCommand::Cancel).unwrap_err().detail.contains("a redrive that failed")
    );
    let redrive = JobState { redrive: true, ..failed };
    let transition = command(&redrive, &JobCommand::Cancel).unwrap();
    assert_eq!(
        (transition.status, transition.finished_at),
        (JobStatus::Cancelled, FinishedAt::Clear)
    );
    let pruned = JobState { closed: true, ..redrive };
    assert!(command(&pruned, &JobCommand::Cancel).unwrap_err().detail.contains("pruned"));
}

#[test]
fn the_error_of_a_failed_redrive_names_the_command_for_its_letters() {
    let redrive = JobState { redrive: true, open_chunks: 28, ..job(JobStatus::Processing) };
    let error = fail(&redrive, "no such column".to_owned()).unwrap().error.unwrap();
    assert!(error.contains("no such column; after `windlass cancel "), "{error}");
    let one = FailedUnits { total: 1, numbers: vec![0], error: None };
    let ended = JobState { open_chunks: 0, ..redrive };
    let error = finish(&ended, &FailedUnits::default(), &one).unwrap().error.unwrap();
    assert!(error.ends_with("`windlass dead redrive` redrives the remaining letters"), "{error}");
}

#[test]
fn a_job_being_cancelled_is_reported_as_processing_and_accepts_only_cancel() {
    let cancelled = job(JobStatus::Cancelled);
    assert_eq!(cancelled.reported_status(), JobStatus::Cancelled);
    for open in [
        JobState { open_chunks: 1, ..job(JobStatus::Cancelled) },
        JobState { open_segments: 1, ..cancelled },
    ] {
        assert_eq!(open.reported_status(), JobStatus::Processing);
        assert_eq!(command(&open, &JobCommand::Cancel).unwrap().status, JobStatus::Cancelled);
        for other in [JobCommand::Pause { reason: None }, JobCommand::Resume, JobCommand::Retry] {
            assert!(command(&open, &other).unwrap_err().detail.contains("being cancelled"));
        }
    }
}

#[test]
fn a_closed_job_cannot_be_retried() {
    let closed = JobState { closed: true, ..job(JobStatus::Failed) };
    assert!(command(&closed, &JobCommand::Retry).unwrap_err().detail.contains("submit it again"));
}

#[test]
fn every_command_is_allowed_from_exactly_these_statuses() {
    for (asked, allowed) in [
        (JobCommand::Pause { reason: None }, "QUEUED PROCESSING"),
        (JobCommand::Resume, "PAUSED"),
        (JobCommand::Cancel, "QUEUED PROCESSING PAUSED"),
        (JobCommand::Retry, "FAILED"),
    ] {
        for status in JobStatus::ALL {
            let expected = allowed.split(' ').any(|name| name == status.as_str());
            for started in [true, false] {
                let state = JobState { started, ..job(*status) };
                match command(&state, &asked) {
                    Ok(transition) => {
                        assert!(expected, "{status}");
                        assert!(status.check_edge(transition.status).is_ok());
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
fn a_job_resumes_in_the_status_it_was_paused_in() {
    let resumed = |started| {
        let state = JobState { started, ..job(JobStatus::Paused) };
        command(&state, &JobCommand::Resume).unwrap()
    };
    assert_eq!(resumed(true).status, JobStatus::Processing);
    assert_eq!(resumed(false).status, JobStatus::Queued);
    assert_eq!(resumed(true).added_budgets, 1);
}

#[test]
fn a_budget_is_exceeded_by_one_more_than_it_allows() {
    let mut job = with_budget(JobStatus::Processing, OnExceeded::Pause, 1);
    assert_eq!(check_budget(&job, 100), None);
    let transition = check_budget(&job, 101).unwrap();
    assert_eq!(transition.status, JobStatus::Paused);
    assert!(transition.error.unwrap().contains("101 dead letters, 100 allowed"));
    job.budget_multiplier = 2;
    assert_eq!(check_budget(&job, 200), None);
    assert!(check_budget(&job, 201).is_some());
}

#[test]
fn an_exceeded_budget_pauses_only_live_jobs_and_fails_only_open_jobs() {
    use JobStatus::{Cancelled, Completed, Failed, Paused, Processing, Queued};
    let outcome = |status, on_exceeded, open| {
        check_budget(&with_budget(status, on_exceeded, open), 101)
            .map(|transition| transition.status)
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
fn a_job_ends_when_nothing_is_open() {
    use JobStatus::{Cancelled, Completed, Failed, Paused, Processing, Queued};
    for (status, expected) in [
        (Queued, NextStep::Finish),
        (Processing, NextStep::Finish),
        (Paused, NextStep::Wait),
        (Cancelled, NextStep::EndCancelled),
        (Failed, NextStep::SumFailed),
        (Completed, NextStep::Wait),
    ] {
        assert_eq!(next_step(&job(status)), expected, "{status}");
        assert_eq!(
            next_step(&JobState { open_segments: 1, ..job(status) }),
            NextStep::Wait,
            "{status}"
        );
        assert_eq!(
            next_step(&JobState { open_chunks: 1, ..job(status) }),
            NextStep::Wait,
            "{status}"
        );
    }
}

#[test]
fn the_error_of_a_failed_job_names_its_chunks() {
    let none = FailedUnits::default();
    let job = job(JobStatus::Processing);
    assert_eq!(finish(&job, &none, &none).unwrap().status, JobStatus::Completed);
    let error = Some("no such column".to_owned());
    let two = FailedUnits { total: 2, numbers: vec![2, 17], error: error.clone() };
    let transition = finish(&job, &none, &two).unwrap();
    assert_eq!(transition.status, JobStatus::Failed);
    assert_eq!(
        transition.error.unwrap(),
        format!(
            "28/30 chunks completed, failed: [2, 17] (first error: no such column); \
             `windlass retry {}` retries only those",
            JobId::nil()
        )
    );
    let many = FailedUnits { total: 25, numbers: (0..10).collect(), error };
    assert!(finish(&job, &none, &many).unwrap().error.unwrap().contains("8, 9 and 15 more"));
}
