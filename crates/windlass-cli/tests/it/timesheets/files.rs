//! Output as CSV, report files over the API, and the report of a cancelled job.

use crate::common::eventually;
use crate::timesheets::fixture::{TimesheetsFixture, report_of};
use serde_json::{Value as Json, json};

#[tokio::test]
async fn output_is_downloaded_as_csv() {
    let fixture = TimesheetsFixture::new(50).await;
    let server = fixture.serve(2).await;
    let keys: Vec<i64> = (1..=20).collect();
    let request = report_of("TIMESHEET_REPORT", "2025-01", &keys);
    let id = server.submit(&fixture.chief, &request).await;
    server.is(&fixture.chief, &id, "COMPLETED").await;
    let rows = server.output(&fixture.chief, &id).await;
    let path = format!("jobs/{id}/output");
    let (csv, headers) = server.download(&fixture.chief, &path, "text/csv").await;
    assert_eq!(csv.status, 200, "{csv:?}");
    assert!(headers["content-type"].to_str().unwrap().starts_with("text/csv"), "{headers:?}");
    assert_eq!(headers["vary"], "accept");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    let name = format!("attachment; filename=\"{id}.csv\"");
    assert_eq!(headers["content-disposition"], name.as_str());
    let mut lines = csv.text.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mut fields: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(columns, fields);
    let keys = |line: &str| {
        let field = columns.iter().position(|column| *column == "timesheet").unwrap();
        line.split(',').nth(field).unwrap().parse::<i64>().unwrap()
    };
    let sent: Vec<i64> = lines.map(keys).collect();
    let emitted: Vec<i64> = rows.iter().map(|row| row["timesheet"].as_i64().unwrap()).collect();
    assert_eq!(sent, emitted);
    // JSON lines stay the default.
    let (lines, headers) = server.download(&fixture.chief, &path, "*/*").await;
    assert_eq!(headers["content-type"], "application/x-ndjson");
    assert_eq!(lines.text.lines().count(), rows.len());
}

#[tokio::test]
async fn a_report_is_downloaded_by_those_who_see_its_job_only() {
    let fixture = TimesheetsFixture::new(50).await;
    let server = fixture.serve(2).await;
    let kent = fixture.token("kent-clerk", "clerk", "Kent").await;
    let other = fixture.token("devon-clerk", "clerk", "Devon").await;
    let id = server.submit(&kent, &json!({"jobType": "COUNTY_HOURS"})).await;
    server.is(&kent, &id, "COMPLETED").await;
    let name = format!("{id}.csv");
    let files = server.get(&kent, &format!("jobs/{id}/files")).await.is(200);
    let written = std::fs::read(fixture.sandbox.path(&format!("reports/{name}"))).unwrap();
    assert_eq!(
        (files.as_array().unwrap().len(), &files[0]["name"]),
        (1, &json!(name)),
        "{files:#}"
    );
    assert_eq!((&files[0]["kind"], &files[0]["bytes"]), (&json!("report"), &json!(written.len())));
    let path = format!("jobs/{id}/files/{name}");
    let (file, headers) = server.download(&kent, &path, "*/*").await;
    assert_eq!((file.status, file.text.as_bytes()), (200, written.as_slice()));
    assert!(file.text.starts_with("county,month,timesheets,hours\nKent,"), "{}", file.text);
    assert!(!file.text.contains("Devon"), "{}", file.text);
    assert_eq!(headers["content-type"], "text/csv; charset=utf-8");
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(headers["content-length"], written.len().to_string().as_str());
    let attachment = format!("attachment; filename=\"{name}\"");
    assert_eq!(headers["content-disposition"], attachment.as_str());

    // Who does not see the job does not see its files.
    for path in [format!("jobs/{id}/files"), path.clone()] {
        assert_eq!(server.get(&other, &path).await.status, 404, "{path}");
        assert_eq!(server.get("none", &path).await.status, 401, "{path}");
    }
    // Only names of the job's files are served.
    for name in ["windlass.toml", "..%2Fwindlass.toml", "%2e%2e", "%2Fetc%2Fpasswd", "..%5Cx", "."]
    {
        let refused = server.get(&kent, &format!("jobs/{id}/files/{name}")).await;
        assert!([404, 400].contains(&refused.status), "{name}: {refused:?}");
    }
    // A file that is not the one of the job is not sent: another job may have written it.
    fixture.sandbox.write(&format!("reports/{name}"), "county\nDevon\n");
    assert_eq!(server.get(&kent, &path).await.status, 404);
}

#[tokio::test]
async fn a_cancelled_job_leaves_no_report() {
    let fixture = TimesheetsFixture::new(50).await;
    let config = fixture
        .sandbox
        .read("windlass.toml")
        .replace("backoff = \"1s\"", "backoff = \"1h\", max = \"1h\"");
    fixture.sandbox.write("windlass.toml", &config);
    // The merge fails behind its report.
    let refuse = "CREATE FUNCTION no_result() RETURNS trigger LANGUAGE plpgsql AS \
                      $$ BEGIN RAISE EXCEPTION 'no result today'; END $$; \
                  CREATE TRIGGER no_result BEFORE INSERT ON windlass_parts FOR EACH ROW \
                      WHEN (NEW.chunk = -1) EXECUTE FUNCTION no_result()";
    fixture.data.run(refuse).await;
    let server = fixture.serve(2).await;
    let id = server.submit(&fixture.chief, &json!({"jobType": "COUNTY_HOURS"})).await;
    let report = fixture.sandbox.path(&format!("reports/{id}.csv"));
    eventually("the report is written", async || report.exists()).await;
    eventually("the merge waits for its next attempt", async || {
        server.job(&fixture.chief, &id).await["waitsFor"] == "retry"
    })
    .await;
    let job = server.steer(&fixture.chief, &id, "cancel").await;
    assert_eq!((&job["status"], &job["error"]), (&json!("CANCELLED"), &Json::Null), "{job:#}");
    assert!(!report.exists(), "the report of a cancelled job stays");
    let files = server.get(&fixture.chief, &format!("jobs/{id}/files")).await.is(200);
    assert_eq!(files, json!([]));
}
