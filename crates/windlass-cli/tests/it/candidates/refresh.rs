//! A refresh writes every record back once. Triggers on writes run, and no other field changes.

use crate::candidates::fixture::CandidatesFixture;

#[tokio::test]
async fn every_candidate_is_written_once_and_its_trigger_runs() {
    let fixture = CandidatesFixture::new(1000).await;
    fixture.data.run("CREATE TABLE before AS SELECT * FROM candidates").await;
    assert_eq!(fixture.candidates("document ? 'creator'").await, 1000);
    let job = fixture.complete("REFRESH_CANDIDATES").await;
    assert_eq!(job["items"]["processed"], 1000);

    let right = "SELECT count(*) FROM candidates c JOIN before b USING (identifier) WHERE
        c.document = (b.document - 'creator')
            || jsonb_build_object('creators', jsonb_build_array(b.document -> 'creator'))
        AND (c.reporting_year, c.institution_id, c.status, c.version)
            = (b.reporting_year, b.institution_id, b.status, b.version + 1)";
    assert_eq!(fixture.number(right).await, 1000);
    let indexed = "SELECT count(*) FROM search_index JOIN candidates USING (identifier, version)";
    assert_eq!(fixture.number(indexed).await, 1000);
}

#[tokio::test]
async fn a_refresh_of_periods_leaves_candidates_unchanged() {
    let fixture = CandidatesFixture::new(10).await;
    fixture.data.run("CREATE TABLE before AS SELECT * FROM periods").await;
    fixture.complete("REFRESH_PERIODS").await;
    let right = "SELECT count(*) FROM periods p JOIN before b USING (year, closes) \
                 WHERE p.version = b.version + 1";
    assert_eq!(fixture.number(right).await, 4);
    assert_eq!(fixture.at_version(1, "true").await, 10, "candidates are not periods");
}
