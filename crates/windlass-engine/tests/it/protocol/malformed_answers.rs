//! A handler whose answers are all malformed is found by its first batch. The job pauses and names the field, and no
//! item fails.

use crate::protocol::common::*;
use windlass_core::JobStatus;

const ROWS: i64 = 20;

/// A program that writes its answers with this expression.
fn program(fixture: &EngineFixture, answer: &str) -> String {
    let path = fixture.folder.path().join("answers.py");
    let text = format!(
        "import json, sys\n\
         for line in sys.stdin:\n\
         \x20   items = json.loads(line)['items']\n\
         \x20   results = [{answer} for item in items]\n\
         \x20   print(json.dumps({{'results': results}}), flush=True)\n"
    );
    std::fs::write(&path, text).unwrap();
    let step = format!("step.command = [\"python3\", \"{}\"]", path.display());
    job(&format!("{step}\nstep.version = \"version\""), "chunk.items = 5")
}

const RIGHT: &str = "{'key': item['key'], 'update': {'amount': item['record']['amount'] + 1}}";

pub(crate) async fn a_misspelt_field_pauses_the_job_at_once(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let misspelt = RIGHT.replace("update", "updates");
    let engine = fixture.engine(&program(&fixture, &misspelt)).await;
    let paused = run(&engine).await;
    assert_eq!(paused.status, JobStatus::Paused, "{:?}", paused.error);
    let reason = paused.error.unwrap();
    let named =
        "every answer of the first batch is malformed: unknown field `updates`, expected one";
    assert!(reason.contains(named), "{reason}");
    assert_eq!((paused.items.processed, paused.items.dead), (0, 0));
    assert!(letters(&engine, paused.id).await.is_empty());

    // The corrected program is started when the job is resumed.
    program(&fixture, RIGHT);
    engine.resume(paused.id).await.unwrap();
    let done = work(&engine, paused.id).await;
    proven(&engine, &done).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS, 0));
    fixture.each_once(ROWS).await;
}

pub(crate) async fn a_field_of_the_wrong_type_pauses_the_job_at_once(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let listed = "{'key': item['key'], 'update': [item['key']]}";
    let engine = fixture.engine(&program(&fixture, listed)).await;
    let paused = run(&engine).await;
    assert_eq!(paused.status, JobStatus::Paused, "{:?}", paused.error);
    let reason = paused.error.unwrap();
    assert!(reason.contains("`update`: invalid type: sequence, expected a map"), "{reason}");
}

/// Malformed answers for some items are errors of these items.
pub(crate) async fn a_malformed_answer_fails_only_its_item(fixture: EngineFixture) {
    fixture.visits(ROWS).await;
    let some = format!(
        "({RIGHT} if item['key'] not in (3, 7) else {{'key': item['key'], 'updates': {{}}}})"
    );
    let engine = fixture.engine(&program(&fixture, &some)).await;
    let done = complete(&engine).await;
    assert_eq!((done.items.processed, done.items.dead), (ROWS - 2, 2));
    let letters = letters(&engine, done.id).await;
    assert_eq!(keys(&letters), [3, 7]);
    assert!(letters[0].error.contains("unknown field `updates`"), "{}", letters[0].error);
    assert_eq!(letters[0].attempts, 1);
}

on_both!(
    a_misspelt_field_pauses_the_job_at_once,
    a_field_of_the_wrong_type_pauses_the_job_at_once,
    a_malformed_answer_fails_only_its_item,
);
