//! Requests that cannot be served are refused at submit with the name of the field, and change nothing.

use crate::common::{CliSandbox, Data, raise, refused};

#[tokio::test]
async fn a_bad_request_is_refused_with_the_name_of_the_field() {
    for data in Data::both_with_accounts(100).await {
        let handler = "[jobs.ENRICH]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
                       step.handler = \"enrich\"\nstep.version = \"version\"\n";
        let filters = "source.filters = { branches = \"branch\" }\n";
        let sandbox = CliSandbox::on(&data, &(raise(10) + filters + handler));
        let cases: &[(&str, &[&str])] = &[
            ("RAISED", &["WL0002", "jobType", "`RAISED`", "`RAISE`"]),
            ("RAISE --filter branch=1", &["WL0003", "filter.branch", "`branches`"]),
            ("RAISE --filter branches=north", &["WL0003", "filter.branches", "north"]),
            ("RAISE --filter branches=1.5", &["WL0003", "filter.branches", "1.5"]),
            ("RAISE --filter branches", &["--filter", "NAME=VALUE"]),
            ("RAISE --parallel-segments 0", &["WL0003", "parallelSegments", "1 to 1000"]),
            ("RAISE --parallel-segments 100000", &["WL0003", "parallelSegments", "1 to 1000"]),
            ("RAISE --parallel-segments many", &["--parallel-segments", "many"]),
            ("RAISE --max-items-per-segment 0", &["WL0003", "maxItemsPerSegment"]),
            ("RAISE --priority 10", &["WL0003", "priority", "0 to 9"]),
        ];
        for (request, parts) in cases {
            for command in ["run", "submit", "run --dry-run"] {
                refused(&sandbox.run(&format!("{command} {request}")).await, parts);
            }
        }
        refused(&sandbox.run("run ENRICH").await, &["WL0010", "`enrich`", "Engine::builder"]);
        assert_eq!(sandbox.json("jobs").await, serde_json::json!([]), "nothing was submitted");
        data.untouched().await;
    }
}

#[tokio::test]
async fn bad_definitions_are_refused_at_submit_too() {
    for data in Data::both_with_accounts(100).await {
        let with = |line: &str| raise(10) + line + "\n";
        let cases: &[(String, &[&str])] = &[
            (with("source.key = [\"nr\"]"), &["line 7", "source.key", "`nr`"]),
            (with("source.key = [\"owner\"]"), &["line 7", "source.key", "owner", "index"]),
            (with("source.filters = { o = \"owner\" }"), &["line 7", "filters", "owner", "index"]),
            (with("chunk.items = 5"), &["line 12", "duplicate key"]),
            (with("chunk = ]"), &["line 12"]),
            (raise(10).replace("\"accounts\"", "\"count\""), &["source.table", "`count`"]),
        ];
        for (jobs, parts) in cases {
            let sandbox = CliSandbox::on(&data, jobs);
            for command in ["run RAISE", "submit RAISE"] {
                refused(&sandbox.run(command).await, parts);
            }
        }
        data.untouched().await;
    }
}
