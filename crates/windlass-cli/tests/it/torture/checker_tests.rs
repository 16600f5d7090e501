//! The checker finds what it is for, in made-up histories.

use super::checker::check;
use super::history::{
    Completion, History, Job, LedgerChange, Letter, Output, Record, Status, Submit, Write,
};

const ITEMS: i64 = 4;

fn change(chunk: i64, epoch: i64, commits: i64, processed: i64) -> LedgerChange {
    let (job, nonce) = ("a".to_owned(), 10 * epoch);
    LedgerChange { job, chunk, epoch, nonce, commits, processed, dead: 0 }
}

fn job(id: &str, job_type: &str) -> Job {
    Job {
        id: id.to_owned(),
        job_type: job_type.to_owned(),
        mark: "m1".to_owned(),
        status: Status::Completed,
        is_redrive: false,
        total: ITEMS,
        processed: ITEMS,
        dead: 0,
        audit: Some("proven".to_owned()),
        commits_when_cancelled: None,
        output: Output::None,
    }
}

/// A job of two chunks, one of which was worked by two leaseholders, and a write of the bystander.
fn right() -> History {
    let record = |item| Record {
        table: "plain",
        item,
        tokens: vec!["TICK:m1".into(), "b1".into()],
        version: None,
    };
    History {
        items: ITEMS,
        records: (1..=ITEMS).map(record).collect(),
        jobs: vec![job("a", "TICK")],
        submits: vec![Submit { job_type: "TICK".into(), mark: "m1".into(), is_acknowledged: true }],
        writes: vec![Write {
            table: "plain",
            token: "b1".into(),
            items: (1..=ITEMS).collect(),
            is_acknowledged: true,
        }],
        ledger: vec![
            change(0, 1, 0, 0),
            change(1, 1, 0, 0),
            change(0, 1, 1, 1),
            change(1, 1, 1, 2),
            change(0, 2, 1, 1),
            change(0, 2, 2, 2),
        ],
        completions: vec![Completion { job: "a".into(), chunk: 0, processed: 2, dead: 0 }],
        ..History::default()
    }
}

/// Asserts that a change of the right history is found, with these words.
#[track_caller]
fn finds(words: &str, damage: impl FnOnce(&mut History)) {
    let mut history = right();
    damage(&mut history);
    let found = check(&history);
    assert!(found.iter().any(|violation| violation.contains(words)), "{words}: {found:#?}");
}

#[test]
fn a_right_history_has_no_violations() {
    assert_eq!(check(&right()), Vec::<String>::new());
}

#[test]
fn a_doubled_effect_is_found() {
    finds("doubled effect", |history| history.records[2].tokens.push("TICK:m1".into()));
    // Also in a job that did not complete.
    finds("doubled effect", |history| {
        history.jobs[0].status = Status::Cancelled;
        history.records[2].tokens.push("TICK:m1".into());
    });
}

#[test]
fn a_lost_effect_is_found() {
    finds("lost effect", |history| drop(history.records[2].tokens.remove(0)));
    finds("lost effect of a redrive", |history| {
        history.letters = vec![Letter { job: "a".into(), item: 3, is_reprocessed: true }];
        history.records[2].tokens.remove(0);
    });
    finds("although the item is a dead letter", |history| {
        history.letters = vec![Letter { job: "a".into(), item: 3, is_reprocessed: false }];
    });
}

#[test]
fn a_lost_or_torn_write_of_the_bystander_is_found() {
    finds("lost write", |history| drop(history.records[0].tokens.pop()));
    finds("lost write", |history| {
        history.writes[0].is_acknowledged = false;
        history.records[0].tokens.pop();
    });
    let mut history = right();
    history.writes[0].is_acknowledged = false;
    history.records.iter_mut().for_each(|record| drop(record.tokens.pop()));
    assert_eq!(check(&history), Vec::<String>::new(), "it did not happen at all");
}

#[test]
fn a_commit_after_a_cancel_is_found() {
    finds("commit after cancel", |history| {
        history.jobs[0].status = Status::Cancelled;
        history.jobs[0].commits_when_cancelled = Some(2);
    });
}

#[test]
fn a_commit_of_an_earlier_leaseholder_is_found() {
    // The first leaseholder commits after the second one has fenced.
    finds("out of order", |history| history.ledger[5] = change(0, 1, 2, 2));
    // Two leases at one epoch.
    finds("out of order", |history| history.ledger[5].nonce = 7);
    // A commit that was applied twice would count twice.
    finds("out of order", |history| history.ledger[5].commits = 3);
    finds("out of order", |history| history.ledger[5].commits = 0);
}

#[test]
fn a_wrong_count_is_found() {
    finds("wrong count", |history| history.jobs[0].processed = 3);
    finds("wrong count", |history| history.jobs[0].dead = 1);
    finds("wrong count", |history| history.ledger[5].processed = 1);
    finds("a worker logged", |history| history.completions[0].processed = 1);
}

#[test]
fn a_lost_or_doubled_job_is_found() {
    finds("0 jobs for the submit", |history| {
        history.submits[0].mark = "m2".into();
    });
    finds("2 jobs for the submit", |history| history.jobs.push(job("b", "TICK")));
    finds("fired twice", |history| history.jobs.push(job("b", "TICK")));
    finds("no known job", |history| history.jobs.clear());
    finds("never ended", |history| history.jobs[0].status = Status::Open);
    finds("0 dependent jobs", |history| history.jobs.push(job("b", "ADD")));
    finds("1 dependent jobs", |history| {
        let parent = Job { status: Status::Failed, ..job("b", "ADD") };
        history.jobs.extend([parent, job("c", "AFTER")]);
    });
}

#[test]
fn an_output_that_differs_from_the_data_is_found() {
    let export = |keys: Vec<i64>, unlisted| {
        move |history: &mut History| {
            let output = Output::Exported { keys, unlisted };
            history.jobs.push(Job { output, ..job("b", "EXPORT") });
        }
    };
    finds("wrong export", export(vec![1, 2, 3], 0));
    finds("wrong export", export(vec![1, 2, 3, 3, 4], 0));
    finds("wrong export", export(vec![1, 2, 3, 4], 1));
    let row = |total: &str| vec![vec!["1".to_owned(), total.to_owned()]];
    let total = |loaded: &'static str, reported: &'static str| {
        move |history: &mut History| {
            history.totals = row("7");
            history.loaded.insert("m1".into(), row(loaded));
            history.jobs.push(Job { output: Output::Reported(row(reported)), ..job("b", "TOTAL") });
        }
    };
    finds("wrong load", total("8", "7"));
    finds("wrong report", total("7", "8"));
    finds("lost load", |history| {
        total("7", "7")(history);
        history.loaded.clear();
    });
}

#[test]
fn half_a_commit_and_a_false_audit_are_found() {
    finds("half a commit", |history| {
        history.jobs[0].job_type = "CALL".into();
        for record in &mut history.records {
            record.table = "guarded";
            record.tokens[0] = "CALL:m1".into();
        }
        history.inserted = (1..ITEMS).map(|item| ("CALL:m1".to_owned(), item)).collect();
    });
    finds("audit", |history| history.jobs[0].audit = Some("notProven: why".into()));
    finds("refreshed", |history| {
        let record = Record { table: "refreshed", item: 1, tokens: Vec::new(), version: Some(1) };
        history.records.push(record);
        history.jobs.push(job("b", "REFRESH"));
    });
}
