//! Reads the history of a round: from the data, the ledger's log, the store's listings, the files and the logs.

use super::history::{
    Completion, History, Job, LedgerChange, Letter, Output, Record, Rows, Status,
};
use super::job_types::{ITEMS, TRACED};
use super::operators::Notes;
use crate::common::{CliSandbox, Data, text};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;

/// Reads everything except what the bystander knows.
pub(super) async fn collect(
    sandbox: &CliSandbox,
    data: &Data,
    jobs: &[Json],
    notes: Notes,
    audits: BTreeMap<String, String>,
) -> History {
    let totals = "SELECT branch, count(*), sum(amount) FROM facts GROUP BY branch ORDER BY branch";
    let letters = sandbox.json("dead list --limit 100000").await;
    let jobs = jobs.iter().map(|job| {
        let mut job = read_job(sandbox, job);
        job.audit = audits.get(&job.id).cloned();
        job.commits_when_cancelled = notes.cancelled.get(&job.id).copied();
        job
    });
    History {
        items: ITEMS,
        records: records(data).await,
        inserted: inserted(data).await,
        jobs: jobs.collect(),
        submits: notes.submits.clone(),
        ledger: ledger(data).await,
        completions: completions(&sandbox.path(".testkit")),
        letters: letters.as_array().unwrap().iter().map(letter).collect(),
        totals: data.rows(totals).await,
        loaded: loaded(data).await,
        writes: Vec::new(),
    }
}

fn number(text: &str) -> i64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is not a number"))
}

async fn records(data: &Data) -> Vec<Record> {
    let mut records = Vec::new();
    for table in TRACED {
        let has_version = table != "plain";
        let version = if has_version { "version" } else { "0" };
        for row in data.rows(&format!("SELECT id, trace, {version} FROM {table}")).await {
            records.push(Record {
                table,
                item: number(&row[0]),
                tokens: row[1].split_whitespace().map(str::to_owned).collect(),
                version: has_version.then(|| number(&row[2])),
            });
        }
    }
    records
}

async fn inserted(data: &Data) -> Vec<(String, i64)> {
    let rows = data.rows("SELECT token, item FROM inserted").await;
    rows.iter().map(|row| (row[0].clone(), number(&row[1]))).collect()
}

async fn ledger(data: &Data) -> Vec<LedgerChange> {
    let sql =
        "SELECT job_id, chunk, epoch, nonce, commits, processed, dead FROM ledger_log ORDER BY seq";
    let change = |row: &Vec<String>| LedgerChange {
        job: row[0].clone(),
        chunk: number(&row[1]),
        epoch: number(&row[2]),
        nonce: number(&row[3]),
        commits: number(&row[4]),
        processed: number(&row[5]),
        dead: number(&row[6]),
    };
    data.rows(sql).await.iter().map(change).collect()
}

async fn loaded(data: &Data) -> BTreeMap<String, Rows> {
    let mut loaded = BTreeMap::<String, Rows>::new();
    let sql = "SELECT mark, branch, n, total FROM totals ORDER BY mark, branch";
    for mut row in data.rows(sql).await {
        let mark = row.remove(0);
        loaded.entry(mark).or_default().push(row);
    }
    loaded
}

fn letter(letter: &Json) -> Letter {
    Letter {
        job: text(&letter["jobId"]),
        item: letter["key"].as_i64().unwrap_or_else(|| panic!("{letter:#}")),
        is_reprocessed: letter["status"] == "reprocessed",
    }
}

fn read_job(sandbox: &CliSandbox, job: &Json) -> Job {
    let (id, job_type) = (text(&job["id"]), text(&job["jobType"]));
    let output = match &*job_type {
        "EXPORT" => exported(&sandbox.path(&format!("out/{id}"))),
        "TOTAL" => reported(&sandbox.path(&format!("out/{id}.csv"))),
        _ => Output::None,
    };
    let count = |name: &str| job["items"][name].as_i64().unwrap_or_default();
    Job {
        mark: job["request"]["params"]["mark"].as_str().unwrap_or_default().to_owned(),
        status: status(job),
        // Listings leave long fields of a request out, and say so.
        is_redrive: !job["omitted"]["ids"].is_null() || !job["request"]["ids"].is_null(),
        total: count("total"),
        processed: count("processed"),
        dead: count("dead"),
        audit: None,
        commits_when_cancelled: None,
        output,
        id,
        job_type,
    }
}

pub(super) fn status(job: &Json) -> Status {
    match job["status"].as_str() {
        Some("COMPLETED") => Status::Completed,
        Some("FAILED") => Status::Failed,
        Some("CANCELLED") => Status::Cancelled,
        _ => Status::Open,
    }
}

fn exported(folder: &Path) -> Output {
    let Ok(manifest) = std::fs::read_to_string(folder.join("manifest.json")) else {
        return Output::None;
    };
    let manifest: Json = serde_json::from_str(&manifest).unwrap();
    let parts = manifest["parts"].as_array().unwrap();
    let mut keys = Vec::new();
    for part in parts {
        let part = std::fs::read_to_string(folder.join(text(&part["name"]))).unwrap_or_default();
        keys.extend(part.lines().skip(1).map(number));
    }
    let files = std::fs::read_dir(folder).unwrap().count();
    Output::Exported { keys, unlisted: files - 1 - parts.len() }
}

fn reported(file: &Path) -> Output {
    match std::fs::read_to_string(file) {
        Ok(report) => {
            let cells = |line: &str| line.split(',').map(str::to_owned).collect();
            Output::Reported(report.lines().skip(1).map(cells).collect())
        }
        Err(_) => Output::None,
    }
}

/// The lines `chunk completed` in the logs of all processes.
fn completions(logs: &Path) -> Vec<Completion> {
    let mut found = Vec::new();
    for log in std::fs::read_dir(logs).unwrap() {
        let log = std::fs::read(log.unwrap().path()).unwrap();
        for line in String::from_utf8_lossy(&log).lines() {
            // The last line of a killed process may be incomplete.
            let Ok(line) = serde_json::from_str::<Json>(line) else { continue };
            let fields = &line["fields"];
            if fields["message"] == "chunk completed" {
                let number = |name: &str| fields[name].as_i64().unwrap_or_default();
                found.push(Completion {
                    job: text(&fields["job"]),
                    chunk: number("chunk"),
                    processed: number("processed"),
                    dead: number("dead"),
                });
            }
        }
    }
    found
}
