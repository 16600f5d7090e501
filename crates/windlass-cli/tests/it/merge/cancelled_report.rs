//! A job is cancelled after it has written its report: the report is deleted, unless it replaced another file.

use crate::common::{CliSandbox, Data, eventually, text};

const JOBS: &str = "[jobs.TOTALS]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
    step.map = \"SELECT branch, sum(amount) AS total FROM {source} WHERE {chunk} GROUP BY branch\"\n\
    reduce = \"SELECT branch, sum(total) AS total FROM parts GROUP BY branch ORDER BY branch\"\n\
    report = { to = \"file:reports/totals.csv\" }\n\
    retry = { attempts = 3, backoff = \"1h\", max = \"1h\" }\n";

/// Makes the store refuse the result of a merge, or ends this.
async fn refuse_results(data: &Data, sandbox: &CliSandbox, refuse: bool) {
    let postgres = [
        "DROP TRIGGER no_result ON windlass_parts; DROP FUNCTION no_result",
        "CREATE FUNCTION no_result() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'no result today'; END $$; \
         CREATE TRIGGER no_result BEFORE INSERT ON windlass_parts FOR EACH ROW \
             WHEN (NEW.chunk = -1) EXECUTE FUNCTION no_result()",
    ];
    let sqlite = [
        "DROP TRIGGER no_result",
        "CREATE TRIGGER no_result BEFORE INSERT ON windlass_parts WHEN NEW.chunk = -1 \
             BEGIN SELECT RAISE(ABORT, 'no result today'); END",
    ];
    match data {
        Data::Postgres(_) => data.run(postgres[usize::from(refuse)]).await,
        _ => {
            let store = rusqlite::Connection::open(sandbox.path("windlass.db")).unwrap();
            store.busy_timeout(crate::common::PATIENCE).unwrap();
            store.execute_batch(sqlite[usize::from(refuse)]).unwrap();
        }
    }
}

/// Submits the job and waits until its report is written and its merge has failed.
async fn reported(sandbox: &CliSandbox) -> String {
    let before = std::fs::read_to_string(sandbox.path("reports/totals.csv")).unwrap_or_default();
    let id = sandbox.submit("TOTALS").await;
    eventually("the report is written and the merge waits", async || {
        let now = std::fs::read_to_string(sandbox.path("reports/totals.csv")).unwrap_or_default();
        now != before && sandbox.job(&id).await["waitsFor"] == "retry"
    })
    .await;
    id
}

#[tokio::test]
async fn a_new_report_is_deleted_and_one_that_replaced_a_file_stays() {
    for (data, sandbox) in CliSandbox::on_both(100, JOBS).await {
        sandbox.run("migrate").await.ok();
        refuse_results(&data, &sandbox, true).await;
        let worker = sandbox.spawn("worker");
        let id = reported(&sandbox).await;
        sandbox.run(&format!("cancel {id}")).await.ok();
        let job = sandbox.job(&id).await;
        assert_eq!((text(&job["status"]).as_str(), job["error"].as_str()), ("CANCELLED", None));
        let names = |folder: &str| std::fs::read_dir(sandbox.path(folder)).unwrap().count();
        assert_eq!(names("reports"), 0, "no report and no page");

        // A file of that name was there before.
        sandbox.write("reports/totals.csv", "by hand\n");
        let id = reported(&sandbox).await;
        sandbox.run(&format!("cancel {id}")).await.ok();
        let job = sandbox.job(&id).await;
        assert_eq!(job["status"], "CANCELLED");
        let note = text(&job["error"]);
        assert!(
            note.contains("file:reports/totals.csv") && note.contains("replaced an earlier file"),
            "{note}"
        );
        assert!(sandbox.read("reports/totals.csv").starts_with("branch,total\n"));

        // The report of a later job is not touched by the cancellation of an earlier one.
        std::fs::remove_file(sandbox.path("reports/totals.csv")).unwrap();
        let id = reported(&sandbox).await;
        sandbox.write("reports/totals.csv", "of a later job\n");
        sandbox.run(&format!("cancel {id}")).await.ok();
        assert_eq!(sandbox.status(&id).await, "CANCELLED");
        assert_eq!(sandbox.read("reports/totals.csv"), "of a later job\n");
        worker.term();
        worker.wait().await;

        // A completed job keeps its report.
        refuse_results(&data, &sandbox, false).await;
        let run = sandbox.json("run TOTALS").await;
        assert_eq!(run["status"], "COMPLETED");
        assert!(sandbox.read("reports/totals.csv").starts_with("branch,total\n"));
        assert_eq!(sandbox.run(&format!("cancel {}", text(&run["id"]))).await.code, Some(2));
        assert!(sandbox.read("reports/totals.csv").starts_with("branch,total\n"));
    }
}
