//! The report of a job for people: one page, once the job has ended, however it ended.

use crate::api::accounts_fixture::take;
use crate::api::served::Served;
use crate::common::{CliSandbox, Data};
use serde_json::json;

async fn every_job_that_has_ended_has_one(data: Data) {
    let served = Served::start(CliSandbox::on(&data, &take(""))).await;
    let path = |id: &str| format!("/api/v1/jobs/{id}/report");
    let done = served.submit(json!({"jobType": "TAKE"})).await;
    let waiting = served.get(&path(&done)).await.is(409);
    assert_eq!(waiting["code"], "WL0008", "{waiting}");
    served.sandbox.run(&format!("worker --job {done}")).await.ok();
    let report = served.get(&path(&done)).await;
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
    for sentence in ["40 items: 2 are dead letters", "never_negative", "windlass audit"] {
        assert!(report.text.contains(sentence), "`{sentence}` is not in: {}", report.text);
    }

    let failed = served.submit(json!({"jobType": "TAKE"})).await;
    let cancelled = served.submit(json!({"jobType": "TAKE"})).await;
    data.run("ALTER TABLE savings RENAME TO away").await;
    served.sandbox.run(&format!("worker --job {failed}")).await;
    served.post(&format!("/api/v1/jobs/{cancelled}/cancel"), &json!({})).await.is(200);
    for (id, status) in [(&failed, "Failed"), (&cancelled, "Cancelled")] {
        let report = served.get(&path(id)).await;
        assert_eq!(report.status, 200, "{report:?}");
        assert!(report.text.contains(&format!(">{status}</span>")), "{}", report.text);
    }
    served.get(&path("0190a7b2-0000-7000-8000-000000000000")).await.is(404);

    let emptied = take("retention.chunks = \"0s\"\n");
    served.sandbox.write("windlass.toml", &data.config(&emptied));
    served.sandbox.run("prune").await.ok();
    let report = served.get(&path(&done)).await;
    assert!(report.text.contains("Its chunks have been pruned"), "{}", report.text);
    assert!(report.text.contains("40 items: 2 are dead letters"), "{}", report.text);
}

on_both!(every_job_that_has_ended_has_one);
