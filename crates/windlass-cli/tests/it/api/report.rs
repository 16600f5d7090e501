//! The report of a job, available when the job has ended in any status.

use crate::api::server_fixture::TestServer;
use crate::api::wallets_fixture::take;
use crate::common::{CliSandbox, Data};
use serde_json::json;

async fn every_ended_job_has_a_report(data: Data) {
    let server = TestServer::start(CliSandbox::on(&data, &take(""))).await;
    let path = |id: &str| format!("/api/v1/jobs/{id}/report");
    let done = server.submit(json!({"jobType": "TAKE"})).await;
    let waiting = server.get(&path(&done)).await.is(409);
    assert_eq!(waiting["code"], "WL0008", "{waiting}");
    server.sandbox.run(&format!("worker --job {done}")).await.with_dead_letters();
    let report = server.get(&path(&done)).await;
    assert_eq!(report.status, 200);
    for (header, value) in [
        ("content-type", "text/html; charset=utf-8".to_owned()),
        ("content-disposition", format!("attachment; filename=\"{done}.html\"")),
        ("x-content-type-options", "nosniff".to_owned()),
        ("cache-control", "no-store".to_owned()),
    ] {
        assert_eq!(report.header(header), Some(value.as_str()), "{header}");
    }
    assert!(report.header("content-security-policy").unwrap().contains("default-src 'none'"));
    for sentence in
        ["38 of 40 items processed or skipped; 2 dead letters.", "never_negative", "windlass audit"]
    {
        assert!(report.text.contains(sentence), "`{sentence}` is not in: {}", report.text);
    }

    let failed = server.submit(json!({"jobType": "TAKE"})).await;
    let cancelled = server.submit(json!({"jobType": "TAKE"})).await;
    data.run("ALTER TABLE wallets RENAME TO away").await;
    server.sandbox.run(&format!("worker --job {failed}")).await;
    server.post(&format!("/api/v1/jobs/{cancelled}/cancel"), &json!({})).await.is(200);
    for (id, status) in [(&failed, "Failed"), (&cancelled, "Cancelled")] {
        let report = server.get(&path(id)).await;
        assert_eq!(report.status, 200, "{report:?}");
        assert!(report.text.contains(&format!(">{status}</span>")), "{}", report.text);
    }
    server.get(&path("0190a7b2-0000-7000-8000-000000000000")).await.is(404);

    let emptied = take("retention.chunks = \"0s\"\n");
    server.sandbox.write("windlass.toml", &data.config(&emptied));
    server.sandbox.run("prune").await.ok();
    let report = server.get(&path(&done)).await;
    assert!(report.text.contains("The chunks have been pruned"), "{}", report.text);
    assert!(report.text.contains("2 dead letters."), "{}", report.text);
}

on_both!(every_ended_job_has_a_report);
