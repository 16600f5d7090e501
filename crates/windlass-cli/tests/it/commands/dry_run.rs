//! `windlass run --dry-run` shows each record before and after, and changes nothing.

use crate::common::{CliSandbox, Data, raise, refused};

#[tokio::test]
async fn a_dry_run_shows_before_and_after_and_changes_nothing() {
    for (data, sandbox) in CliSandbox::on_both(1000, &raise(100)).await {
        let output = sandbox.run("run RAISE --dry-run").await.ok();
        assert!(output.stdout.contains("1,000 records would be processed"), "{}", output.stdout);
        assert!(output.stdout.contains("nothing was changed"), "{}", output.stdout);
        assert!(output.stdout.contains("amount: 7 → 8"), "{}", output.stdout);
        assert!(!output.stdout.contains("owner:"), "only changed columns are shown");

        let json = sandbox.json("run RAISE --dry-run").await;
        assert_eq!(json["records"], 1000);
        assert_eq!(json["sample"][1]["key"], 2);
        assert_eq!(json["sample"][1]["before"]["amount"], 14);
        assert_eq!(json["sample"][1]["after"]["amount"], 15);
        assert_eq!(json["sample"][1]["outcome"], "update");

        data.untouched().await;
        assert_eq!(sandbox.json("jobs").await, serde_json::json!([]), "no job is created");
    }
}

#[tokio::test]
async fn a_dry_run_reaches_the_rows_that_the_job_would_reach() {
    for data in Data::both_with_accounts(1000).await {
        let refresh = "[jobs.REFRESH]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
                       source.filters = { branches = \"branch\" }\n\
                       step.refresh = true\nstep.version = \"version\"\n";
        let sandbox = CliSandbox::on(&data, refresh);
        let json = sandbox.json("run REFRESH --filter branches=2 --dry-run").await;
        assert_eq!(json["records"], 100);
        assert_eq!(json["sample"][0]["key"], 2);
        assert_eq!(json["sample"][0]["after"]["version"], 2);
        sandbox.write("ids.txt", "4\n9\n");
        let json = sandbox.json("run REFRESH --ids-file ids.txt --dry-run").await;
        assert_eq!(json["records"], 2);
        assert_eq!(json["sample"][1]["key"], 9);
        refused(&sandbox.run("run REFRESH --filter b=1 --dry-run").await, &["filter.b"]);
        data.untouched().await;
    }
}
