//! A job's output, whole and in ranges.

use crate::api::server_fixture::{ApiResponse, TestServer};
use crate::common::{CliSandbox, Data};
use reqwest::Method;
use serde_json::json;

/// Emits a row for every account.
pub(crate) const EMITTER: &str = r#"
import json, sys
for line in sys.stdin:
    items = json.loads(line)["items"]
    results = [{"key": i["key"], "emit": [{"account": i["key"]}]} for i in items]
    print(json.dumps({"results": results}), flush=True)
"#;

/// The job type that does.
pub(crate) fn emit() -> String {
    "[jobs.EMIT]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
     step.version = \"version\"\nstep.command = [\"python3\", \"emit.py\"]\n"
        .to_owned()
}

#[tokio::test]
async fn output_is_downloaded_whole_and_in_ranges() {
    let data = Data::sqlite().with_accounts(2500).await;
    let sandbox = CliSandbox::on(&data, &emit());
    sandbox.write("emit.py", EMITTER);
    let server = TestServer::with(sandbox, 2).await;
    let id = server.submit(json!({"jobType": "EMIT"})).await;
    server.until(&id, "COMPLETED").await;
    let path = format!("/api/v1/jobs/{id}/output");
    let whole = server.get(&path).await;
    assert_eq!((whole.status, whole.header("accept-ranges")), (200, Some("bytes")));
    assert_eq!(whole.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(whole.text.lines().count(), 2500);
    assert_eq!(whole.text, server.sandbox.run(&format!("output {id}")).await.ok().stdout);

    let total = whole.text.len();
    let ask = async |range: &str, version: &str| {
        let request = server.request(Method::GET, &path).header("range", range);
        ApiResponse::of(if version.is_empty() {
            request
        } else {
            request.header("if-range", version)
        })
        .await
    };
    for (range, from, to) in [
        ("bytes=0-9".to_owned(), 0, 10),
        ("bytes=-7".to_owned(), total - 7, total),
        (format!("bytes={}-", total / 2), total / 2, total),
        (format!("bytes=17-{}", total * 2), 17, total),
    ] {
        let part = ask(&range, "").await;
        assert_eq!((part.status, part.text.as_str()), (206, &whole.text[from..to]), "{range}");
        let expected = format!("bytes {from}-{}/{total}", to - 1);
        assert_eq!(part.header("content-range"), Some(expected.as_str()));
    }
    let beyond = ask(&format!("bytes={total}-"), "").await;
    assert_eq!(
        (beyond.status, beyond.header("content-range")),
        (416, Some(format!("bytes */{total}").as_str()))
    );
    assert_eq!(ask("bytes=0-9", whole.header("etag").unwrap()).await.status, 206);
    assert_eq!(ask("bytes=0-9", "\"another\"").await.text, whole.text);
}

#[tokio::test]
async fn a_running_job_has_no_ranges() {
    let data = Data::sqlite().with_accounts(3).await;
    let server = TestServer::start(CliSandbox::on(&data, &crate::common::raise(10))).await;
    let id = server.submit(json!({"jobType": "RAISE"})).await;
    let request = server.request(Method::GET, &format!("/api/v1/jobs/{id}/output"));
    let response = ApiResponse::of(request.header("range", "bytes=0-9")).await;
    assert_eq!((response.status, response.text.as_str(), response.header("etag")), (200, "", None));
}
