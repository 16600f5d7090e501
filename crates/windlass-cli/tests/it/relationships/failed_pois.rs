//! The view `failed_pois` has the columns of the specification, on both kinds of store.

use crate::common::{Data, text};
use crate::relationships::fixture::RelationshipsFixture;
use serde_json::Value as Json;

#[tokio::test]
async fn failed_pois_shows_the_dead_letters_with_the_columns_of_the_specification() {
    for data in Data::both().await {
        let store = data.store_url();
        let command = match &data {
            Data::Postgres(_) => format!("failed_pois.py {store}"),
            _ => "failed_pois.py".to_owned(),
        };
        let fixture = RelationshipsFixture::on(data, &store).await;
        let _worker = fixture.resolve().await;
        let rows = async || {
            let shown = fixture.python(&command).await.ok().stdout;
            let rows = shown.lines().map(|line| serde_json::from_str(line).unwrap());
            rows.collect::<Vec<Json>>()
        };
        let failed = rows().await;
        assert_eq!(failed.len(), 2, "{failed:#?}");
        let letters = fixture.letters("").await;
        let job = fixture.sandbox.job(&fixture.job_of("sources/payment.py").await).await;
        for row in &failed {
            let mut columns: Vec<&str> =
                row.as_object().unwrap().keys().map(String::as_str).collect();
            columns.sort_unstable();
            let all = "errorContext errorMessage failedAt id originalJobId originalPoiData status";
            assert_eq!(columns.join(" "), all);
            let letter = letters.iter().find(|letter| letter["id"] == row["id"]).unwrap();
            assert_eq!(
                row["originalJobId"], job["request"]["idempotencyKey"],
                "the payload's jobId"
            );
            assert_eq!(row["errorMessage"], "what is called is computed: HANDLERS[kind]");
            assert!(text(&row["errorContext"]).contains("Traceback"), "{row:#}");
            assert_eq!(row["originalPoiData"], letter["record"]);
            assert_eq!(row["status"], "new");
            let created = text(&letter["createdAt"]);
            assert_eq!(text(&row["failedAt"])[..19], created[..19], "in UTC");
        }

        fixture.sandbox.run(&format!("dead ignore {}", text(&failed[0]["id"]))).await.ok();
        fixture.sandbox.write("overrides.json", r#"{"HANDLERS[kind]": ["pay_by_card"]}"#);
        let again = fixture.sandbox.json("dead redrive --type RESOLVE_RELATIONSHIPS").await;
        fixture.ended(&text(&again[0]["jobId"])).await;
        let statuses: Vec<String> = rows().await.iter().map(|row| text(&row["status"])).collect();
        assert_eq!(statuses, ["ignored", "reprocessed"]);
    }
}
