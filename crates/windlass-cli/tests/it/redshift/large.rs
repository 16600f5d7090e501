//! A result that is larger than the store keeps and than the merge holds in memory.

use crate::common::{CliSandbox, config};
use windlass_testkit::{Moto, PostgresServer, RedshiftServer};

const JOBS: &str = r#"
[jobs.NOISE]
source = { connection = "app", table = "readings" }
step.map = "SELECT id, noise FROM {source} WHERE {chunk}"
reduce = "SELECT id, noise FROM parts"
load = { connection = "warehouse", table = "readings", replace = ["id"], copy = { from = "s3://windlass/{job_id}/", iam_role = "default" } }
chunk.items = 5000
"#;

/// 60,000 rows of 640 characters: 38 MB, and more than 16 MiB when they are compressed.
#[tokio::test]
async fn a_result_larger_than_the_limit_of_the_store_is_loaded() {
    let (source, warehouse) =
        (PostgresServer::shared().database().await, PostgresServer::shared().database().await);
    source
        .run(
            "CREATE TABLE readings AS SELECT id::bigint, (SELECT string_agg(md5(concat(id, ' ', n)), '') \
             FROM generate_series(1, 20) AS n) AS noise FROM generate_series(1, 60000) AS id;
             ALTER TABLE readings ADD PRIMARY KEY (id)",
        )
        .await;
    warehouse.run("CREATE TABLE readings (id bigint, noise varchar(1000))").await;
    let redshift = RedshiftServer::start(&warehouse, Moto::shared()).await;
    let jobs = format!("[connections.warehouse]\nurl = \"{}\"\n{JOBS}", redshift.url());
    let sandbox = CliSandbox::with(&config("sqlite:windlass.db", source.url(), &jobs));
    let environment = Moto::shared().environment();
    let sandbox =
        environment.iter().fold(sandbox, |sandbox, (name, value)| sandbox.env(name, value));
    let id = sandbox.submit("NOISE").await;
    sandbox.run(&format!("worker --job {id}")).await.ok();
    let hash =
        "SELECT concat(count(*), ' ', md5(string_agg(md5(noise), '' ORDER BY id))) FROM readings";
    assert_eq!(warehouse.one::<String>(hash).await, source.one::<String>(hash).await);
    let job = sandbox.job(&id).await;
    assert_eq!(job["outputs"][0]["rows"], 60000, "{job}");
    sandbox.prove(&id).await;
    // The job's page shows the first rows.
    sandbox.run(&format!("job {id} --html page.html")).await.ok();
    assert!(sandbox.read("page.html").contains("60,000 rows"));
}
