//! `windlass run --dry-run`: before → after, and nothing changed.

use crate::common::{Data, Place, raise, refused};

#[tokio::test]
async fn it_shows_before_and_after_and_changes_nothing() {
    for data in Data::both().await {
        let data = data.with_accounts(1000).await;
        let place = Place::on(&data, &raise(100));
        let output = place.run("run RAISE --dry-run").await.ok();
        assert!(output.stdout.contains("1,000 records would be processed"), "{}", output.stdout);
        assert!(output.stdout.contains("nothing was changed"), "{}", output.stdout);
        assert!(output.stdout.contains("amount: 7 → 8"), "{}", output.stdout);
        assert!(!output.stdout.contains("owner:"), "only what changes is shown");

        let json = place.json("run RAISE --dry-run").await;
        assert_eq!(json["records"], 1000);
        assert_eq!(json["sample"][1]["key"], 2);
        assert_eq!(json["sample"][1]["before"]["amount"], 14);
        assert_eq!(json["sample"][1]["after"]["amount"], 15);
        assert_eq!(json["sample"][1]["outcome"], "update");

        data.untouched().await;
        assert_eq!(place.json("jobs").await, serde_json::json!([]), "no job is left behind");
    }
}

#[tokio::test]
async fn it_reaches_what_the_job_would_reach() {
    for data in Data::both().await {
        let data = data.with_accounts(1000).await;
        let refresh = "[jobs.REFRESH]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
                       source.filters = { branches = \"branch\" }\n\
                       step.refresh = true\nstep.version = \"version\"\n";
        let place = Place::on(&data, refresh);
        let json = place.json("run REFRESH --filter branches=2 --dry-run").await;
        assert_eq!(json["records"], 100);
        assert_eq!(json["sample"][0]["key"], 2);
        assert_eq!(json["sample"][0]["after"]["version"], 2);
        place.write("ids.txt", "4\n9\n");
        let json = place.json("run REFRESH --ids-file ids.txt --dry-run").await;
        assert_eq!(json["records"], 2);
        assert_eq!(json["sample"][1]["key"], 9);
        refused(&place.run("run REFRESH --filter b=1 --dry-run").await, &["filter.b"]);
        data.untouched().await;
    }
}
