//! New job types and filters need only lines in windlass.toml, and single candidates can be submitted by their
//! identifiers.

use crate::candidates::fixture::CandidatesFixture;
use crate::common::refused;

#[tokio::test]
async fn new_job_types_and_filters_need_only_configuration() {
    let fixture = CandidatesFixture::new(600).await;
    fixture.edit(
        "[jobs.MIGRATE_CANDIDATES]",
        "[jobs.EXTEND_PERIODS]\nsource.connection = \"app\"\nsource.table = \"periods\"\n\
         source.filters = { reportingYears = \"year\" }\n\
         step.sql = \"UPDATE periods SET closes = closes + 30, version = version + 1 WHERE {chunk}\"\n\n\
         [jobs.MIGRATE_CANDIDATES]",
    );
    fixture.complete("EXTEND_PERIODS --filter reportingYears=2025").await;
    let extended = "SELECT count(*) FROM periods WHERE closes = '2026-04-30' AND version = 2";
    assert_eq!(fixture.number(extended).await, 1);
    assert_eq!(fixture.number("SELECT count(*) FROM periods WHERE version = 1").await, 3);

    fixture.edit(
        "source.filters = { reportingYears = \"reporting_year\" }",
        "source.filters = { reportingYears = \"reporting_year\", status = \"status\" }",
    );
    fixture.sandbox.run("check").await.ok();
    let of = "status = 'pending' AND reporting_year IN ('2023', '2024')";
    fixture
        .complete("REFRESH_CANDIDATES --filter status=pending --filter reportingYears=2023,2024")
        .await;
    assert_eq!(fixture.at_version(2, of).await, 100);
    assert_eq!(fixture.at_version(2, "true").await, 100);
}

#[tokio::test]
async fn listed_candidates_are_processed() {
    let fixture = CandidatesFixture::new(400).await;
    fixture.generate("--originals --candidates 400").await;
    let mut these = fixture.identifiers("2022", 4).await;
    these.push(these[0].to_uppercase());
    fixture.sandbox.write("ids", &these.join("\n"));
    let id = fixture.sandbox.submit("MIGRATE_CANDIDATES --ids-file ids").await;
    fixture.sandbox.run(&format!("worker --job {id}")).await.ok();
    let job = fixture.sandbox.job(&id).await;
    assert_eq!(job["items"]["processed"], 4, "each once, in every spelling: {job:#}");
    assert_eq!(fixture.at_version(2, "document ? 'title'").await, 4);

    fixture.sandbox.write("ids", "not-an-identifier\n");
    let refusal = fixture.sandbox.run("submit MIGRATE_CANDIDATES --ids-file ids").await;
    refused(&refusal, &["ids[0]", "not-an-identifier"]);
}
