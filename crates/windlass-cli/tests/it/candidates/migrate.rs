//! A migration adds the fields that a candidate lacks from its original, in a folder or in S3.

use crate::candidates::fixture::{CandidatesFixture, MISSING};
use serde_json::json;
use windlass_testkit::Moto;

/// The fields of a candidate after its migration.
const MIGRATED: &str = "document ?& ARRAY['title', 'channel', 'language', 'points', 'creators'] \
                        AND NOT document ? 'creator' AND NOT document ? 'pages'";

async fn candidates_are_enriched(fixture: CandidatesFixture) {
    let some = fixture.identifiers("2024", 1).await.remove(0);
    let sql = "UPDATE candidates SET document = document || '{\"title\": \"Its own\"}'";
    fixture.data.run(&format!("{sql} WHERE identifier = '{some}'")).await;

    let job = fixture.complete("MIGRATE_CANDIDATES --filter reportingYears=2024,2025").await;
    let these = "reporting_year IN ('2024', '2025')";
    // Candidates without an original are the first ones that the generator makes, in the years after 2022.
    assert_eq!(job["items"]["dead"], 2, "{job:#}");
    assert_eq!(fixture.candidates(&format!("{these} AND {MIGRATED}")).await, 148);
    assert_eq!(fixture.candidates(&format!("NOT {these} AND version = 1")).await, 150);
    let kept = format!("identifier = '{some}' AND document ->> 'title' = 'Its own' AND {MIGRATED}");
    assert_eq!(fixture.candidates(&kept).await, 1, "existing fields are kept");

    // No field is missing, so nothing is written.
    let again = fixture.complete("MIGRATE_CANDIDATES --filter reportingYears=2024").await;
    let items = &again["items"];
    assert_eq!((&items["processed"], &items["skipped"]), (&json!(0), &json!(74)), "{again:#}");
    let rest = fixture.complete("MIGRATE_CANDIDATES").await;
    assert_eq!(rest["items"]["dead"], MISSING, "{rest:#}");
    assert_eq!(fixture.candidates(MIGRATED).await, 300 - MISSING);
}

#[tokio::test]
async fn from_a_folder() {
    candidates_are_enriched(CandidatesFixture::new(300).await).await;
}

#[tokio::test]
async fn from_s3() {
    candidates_are_enriched(CandidatesFixture::in_a_bucket(300, Moto::shared()).await).await;
}
