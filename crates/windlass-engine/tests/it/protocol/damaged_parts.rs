//! Parts in the store that were damaged at random: a merge reads what was written, or fails with the reason, and so does
//! a reader of the result. `PROPTEST_CASES` raises the number of damages.

use crate::protocol::common::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::json;
use windlass_connectors::EmittedCursor;
use windlass_core::JobStatus;
use windlass_engine::Engine;

const DAMAGES: u32 = 16;

const MAP: &str = "step.map = \"SELECT county, count(*) AS n FROM {source} WHERE {chunk} GROUP BY county\"\n\
                   reduce = \"SELECT county, sum(n) AS n FROM parts GROUP BY county ORDER BY county\"\n\
                   report = { to = \"file:{folder}/{job_id}.json\" }\nchunk.items = 7";

/// The number of the part that holds the merged result.
const MERGED: i64 = -1;

/// An expression for the damaged content of a part.
fn damages() -> impl Strategy<Value = String> {
    let place = any::<u32>().prop_map(|place| format!("({place} % length(content))"));
    prop_oneof![
        4 => (place.clone(), any::<u8>()).prop_map(|(place, byte)| format!(
            "CAST(substr(content, 1, {place}) || x'{byte:02x}' || substr(content, {place} + 2) AS BLOB)"
        )),
        1 => place.prop_map(|place| format!("substr(content, 1, {place})")),
        1 => Just("CAST(content || content AS BLOB)".to_owned()),
        1 => Just("x''".to_owned()),
    ]
}

/// Runs the job while each new part of this number is damaged; returns the fields of its result.
async fn result(
    fixture: &EngineFixture,
    engine: &Engine,
    chunk: i64,
    damage: &str,
) -> Result<Vec<String>, String> {
    let trigger = format!(
        "CREATE TRIGGER damage AFTER INSERT ON windlass_parts WHEN new.chunk = {chunk} BEGIN \
         UPDATE windlass_parts SET content = {damage} \
         WHERE job_id = new.job_id AND chunk = new.chunk; END"
    );
    fixture.store.run(&trigger).await;
    let job = run(engine).await;
    fixture.store.run("DROP TRIGGER damage").await;
    if job.status != JobStatus::Completed {
        return Err(job.error.unwrap_or_default());
    }
    let rows = engine.output(job.id, &EmittedCursor::default(), 1000).await;
    let rows = rows.map_err(|error| error.to_string())?;
    Ok(rows.into_iter().map(|row| row.fields).collect())
}

#[tokio::test]
async fn a_damaged_part_is_read_as_written_or_refused() {
    let fixture = EngineFixture::sqlite().await;
    fixture.visits(40).await;
    let map = MAP.replace("{folder}", &fixture.folder.path().display().to_string());
    let engine = fixture.engine(&job(&map, "")).await;
    let expected = result(&fixture, &engine, 0, "content").await.unwrap();
    assert!(!expected.is_empty(), "{}", json!(expected));
    let damages = (damages(), proptest::sample::select(vec![0, 2, MERGED]));
    let mut runner = TestRunner::default();
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let mut refused = 0;
    for _ in 0..cases.unwrap_or(DAMAGES) {
        let (damage, chunk) = damages.new_tree(&mut runner).unwrap().current();
        match result(&fixture, &engine, chunk, &damage).await {
            Ok(rows) => assert_eq!(rows, expected, "chunk {chunk}: {damage}"),
            Err(reason) => {
                assert!(reason.contains("cannot read a stored part"), "{reason}: {damage}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "no damage was noticed");
}
