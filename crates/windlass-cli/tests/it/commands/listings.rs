//! `windlass jobs`, `job`, `watch`, `chunks`.

use crate::common::{CliSandbox, Data, raise, refused, text};

const NO_JOB: &str = "0190a7b2-0000-7000-8000-000000000000";

#[tokio::test]
async fn jobs_are_listed_newest_first_and_page_by_page() {
    for data in Data::both_with_accounts(10).await {
        let jobs = raise(5) + &raise(5).replace("RAISE", "OTHER");
        let sandbox = CliSandbox::on(&data, &jobs);
        let none = sandbox.run("jobs").await.ok();
        assert!(none.stdout.contains("no jobs"), "{}", none.stdout);
        let mut ids = Vec::new();
        for job_type in ["RAISE", "OTHER", "RAISE"] {
            ids.push(sandbox.submit(job_type).await);
        }
        sandbox.run(&format!("worker --job {}", ids[0])).await.ok();

        let listed = async |command: &str| {
            let jobs = sandbox.json(command).await;
            jobs.as_array().unwrap().iter().map(|job| text(&job["id"])).collect::<Vec<_>>()
        };
        let newest_first: Vec<String> = ids.iter().rev().cloned().collect();
        assert_eq!(listed("jobs").await, newest_first);
        assert_eq!(listed("jobs --type OTHER").await, [ids[1].clone()]);
        assert_eq!(listed("jobs --status COMPLETED").await, [ids[0].clone()]);
        assert_eq!(listed("jobs --limit 1").await, [ids[2].clone()]);
        assert_eq!(listed(&format!("jobs --before {}", ids[2])).await, newest_first[1..]);

        let table = sandbox.run("jobs").await.ok().stdout;
        assert!(table.contains("STATUS"), "{table}");
        assert!(ids.iter().all(|id| table.contains(id.as_str())), "{table}");
    }
}

#[tokio::test]
async fn a_job_is_shown_with_what_to_do_next() {
    let data = Data::sqlite().with_accounts(10).await;
    let sandbox = CliSandbox::on(&data, &raise(5));
    let id = sandbox.submit("RAISE").await;
    let shown = sandbox.run(&format!("job {id}")).await.ok().stdout;
    assert!(shown.contains("QUEUED  RAISE"), "{shown}");
    sandbox.run(&format!("worker --job {id}")).await.ok();
    let shown = sandbox.run(&format!("job {id}")).await.ok().stdout;
    assert!(shown.contains("COMPLETED"), "{shown}");
    assert!(shown.contains(&format!("windlass audit {id}")), "{shown}");
}

#[tokio::test]
async fn the_report_of_a_job_is_written_to_a_file() {
    let data = Data::sqlite().with_accounts(10).await;
    let sandbox = CliSandbox::on(&data, &raise(5));
    let id = sandbox.submit("RAISE").await;
    refused(&sandbox.run(&format!("job {id} --html r.html")).await, &["WL0008", "QUEUED", "ended"]);
    sandbox.run(&format!("worker --job {id}")).await.ok();
    sandbox.run(&format!("job {id} --html r.html")).await.ok();
    let page = sandbox.read("r.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains(&id), "{page}");
    assert!(page.contains("10 items processed or skipped; no failed items."), "{page}");
    refused(&sandbox.run(&format!("job {id} --html r.html --json")).await, &["--json"]);
    let nowhere = sandbox.run(&format!("job {id} --html no/r.html")).await;
    refused(&nowhere, &["--html no/r.html"]);
}

#[tokio::test]
async fn chunks_are_listed_by_status_and_page_by_page() {
    for (_data, sandbox) in CliSandbox::on_both(100, &raise(10)).await {
        let id = text(&sandbox.json("run RAISE").await["id"]);
        let chunks = sandbox.chunks(&id).await;
        assert_eq!(chunks.len(), 10);
        for (number, chunk) in chunks.iter().enumerate() {
            assert_eq!(chunk["chunk"], number);
            assert_eq!(chunk["status"], "COMPLETED");
            assert_eq!(chunk["items"], 10);
            assert_eq!(chunk["counts"]["processed"], 10);
            assert_eq!(chunk["losses"], 0);
            assert!(chunk["worker"].is_string(), "{chunk:#}");
        }
        let page = sandbox.json(&format!("chunks {id} --after 3 --limit 2")).await;
        assert_eq!((&page[0]["chunk"], &page[1]["chunk"]), (&4.into(), &5.into()));
        assert_eq!(page.as_array().unwrap().len(), 2);
        let failed = sandbox.json(&format!("chunks {id} --status FAILED")).await;
        assert_eq!(failed, serde_json::json!([]));
        let table = sandbox.run(&format!("chunks {id} --limit 4")).await.ok().stdout;
        assert!(table.contains("WORKER"), "{table}");
        assert!(table.contains(&format!("windlass chunks {id} --after 3")), "{table}");
    }
}

#[tokio::test]
async fn watch_follows_a_job_to_its_end() {
    let data = Data::postgres().await.with_accounts(100).await;
    let sandbox = CliSandbox::on(&data, &raise(10));
    let id = sandbox.submit("RAISE").await;
    let watch = sandbox.spawn(&format!("watch {id} --json"));
    sandbox.run(&format!("worker --job {id}")).await.ok();
    let job = crate::common::parse(&watch.wait().await.ok());
    assert_eq!(job["status"], "COMPLETED");
}

#[tokio::test]
async fn an_unknown_job_is_refused() {
    let data = Data::sqlite().with_accounts(10).await;
    let sandbox = CliSandbox::on(&data, &raise(5));
    for command in
        ["job", "watch", "chunks", "audit", "cancel", "pause", "resume", "retry", "worker --job"]
    {
        let output = sandbox.run(&format!("{command} {NO_JOB}")).await;
        refused(&output, &["WL0009", NO_JOB, "windlass jobs"]);
    }
    refused(&sandbox.run(&format!("dead show {NO_JOB}")).await, &["no dead letter", NO_JOB]);
}

#[tokio::test]
async fn many_processes_can_create_the_store_at_once() {
    let data = Data::sqlite().with_accounts(1).await;
    let sandbox = CliSandbox::on(&data, &raise(5));
    let looks: Vec<_> = (0..12).map(|_| sandbox.spawn("jobs")).collect();
    for look in looks {
        look.wait().await.ok();
    }
}
