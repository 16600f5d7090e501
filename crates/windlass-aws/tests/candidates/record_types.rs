//! `source.match`: a record that changed its type between planning, reading and writing is not written.

use crate::fixture::{CandidatesFixture, Plan, event, failures, migrate, refresh};
use windlass_drivers::dynamodb::sdk::Client;
use windlass_drivers::dynamodb::sdk::types::AttributeValue;
use windlass_testkit::Moto;
use windlass_testkit::aws::Moment;

/// Candidates are the records whose kind is `CANDIDATE`.
async fn fixture() -> CandidatesFixture {
    let candidates = "source.match = { kind = \"CANDIDATE\" }";
    let plan = Plan { refresh: candidates, migrate: candidates, ..Plan::default() };
    let fixture = CandidatesFixture::with(Moto::shared(), plan).await;
    for (id, kind) in [("c0", "CANDIDATE"), ("c1", "CANDIDATE"), ("p0", "PERIOD")] {
        fixture.put_candidate(id, &[("kind", kind)]).await;
    }
    fixture
}

/// Makes a record another type, without raising its version.
async fn retype(dynamo: &Client, table: &str, id: &str) {
    let update = dynamo.update_item().table_name(table);
    let update = update.key("identifier", AttributeValue::S(id.to_owned()));
    let update = update.update_expression("SET #k = :k").expression_attribute_names("#k", "kind");
    let archived = AttributeValue::S("ARCHIVED".to_owned());
    update.expression_attribute_values(":k", archived).send().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_names_another_record_type_is_skipped() {
    let fixture = fixture().await;
    let messages = [("m0", refresh("c0")), ("m1", refresh("p0")), ("m2", migrate("p0"))];
    let answer = fixture.process.invoke(event(&messages)).await.unwrap();
    assert_eq!(failures(&answer), [""; 0]);
    let all = fixture.all_candidates().await;
    assert_eq!((all["c0"].version(), all["p0"].version()), (2, 1));
    assert!(fixture.process.log().contains("it does not match source.match"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_changes_its_type_between_read_and_write_is_not_written() {
    let fixture = fixture().await;
    for (id, message) in [("c0", refresh("c0")), ("c1", migrate("c1"))] {
        let (dynamo, table) = (fixture.dynamo.clone(), fixture.candidates.clone());
        let runtime = tokio::runtime::Handle::current();
        fixture.gateway.at("UpdateItem", Moment::Before, 0, move || {
            tokio::task::block_in_place(|| runtime.block_on(retype(&dynamo, &table, id)));
        });
        let answer = fixture.process.invoke(event(&[("m", message)])).await.unwrap();
        assert_eq!(failures(&answer), [""; 0]);
        let record = fixture.candidate(id).await;
        assert_eq!((record.version(), record.text("title")), (1, "a title"), "{id}");
        assert_eq!(record.jobs(), [""; 0]);
    }
    assert_eq!(fixture.gateway.count("UpdateItem"), 2, "each was refused once and not repeated");
}
