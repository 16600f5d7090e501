//! A batch of a thousand with seven poison items: 993 are processed, and seven become dead letters with the reason.

use crate::common::{parse, text};
use crate::steps::fixture::{
    TWO_TRIES, batches, by_command, items, keys, letters, raised_but, with_accounts,
};
use serde_json::json;

const ROWS: i64 = 1000;
const POISON: [i64; 7] = [13, 142, 271, 500, 501, 730, 1000];

#[tokio::test]
async fn seven_items_with_error_results_become_dead_letters() {
    let command = "python3 poison.py refuses=13,142,271 delays=500,501,730,1000";
    let more = "retry = { attempts = 3, backoff = \"10ms\" }\n";
    let (data, sandbox) = with_accounts(ROWS, &by_command(command, more)).await;
    let output = sandbox.run("run RAISE").await.with_dead_letters();
    assert!(output.stdout.contains("993 processed, 0 skipped, 7 dead letters"), "{output:?}");
    let id = text(&sandbox.json("jobs").await[0]["id"]);
    let letters = letters(&sandbox, &id).await;
    assert_eq!(keys(&letters), POISON);
    for letter in &letters {
        let key = letter["key"].as_i64().unwrap();
        assert_eq!(letter["error"], format!("account {key} is poison"));
        assert_eq!(letter["context"], json!({"account": key}));
        assert_eq!(letter["attempts"], if key < 500 { 1 } else { 3 }, "{letter:#}");
    }
    assert_eq!(items(&batches(&sandbox)[0]).len(), ROWS as usize, "the batch was a thousand");
    raised_but(&data, ROWS, &POISON).await;
    sandbox.prove(&id).await;
}

#[tokio::test]
async fn seven_items_that_crash_the_program_in_different_ways_become_dead_letters() {
    let ways = ["exits", "killed", "hangs", "rubbish", "wrong", "twice", "missing"];
    let arguments: Vec<String> =
        ways.iter().zip(POISON).map(|(way, key)| format!("{way}={key}")).collect();
    let command = format!("python3 poison.py {}", arguments.join(" "));
    let more = format!("step.timeout = \"2s\"\n{TWO_TRIES}");
    let (data, sandbox) = with_accounts(ROWS, &by_command(&command, &more)).await;
    let job = parse(&sandbox.run("run RAISE --concurrency 1 --json").await.with_dead_letters());
    assert_eq!(job["items"]["processed"], 993, "{job:#}");
    let id = text(&job["id"]);
    let letters = letters(&sandbox, &id).await;
    assert_eq!(keys(&letters), POISON);
    for letter in &letters {
        let key = letter["key"].as_i64().unwrap();
        assert_eq!(letter["attempts"], 2, "{letter:#}");
        let said = format!("account {key} is poison");
        assert!(letter["context"].to_string().contains(&said), "{letter:#}");
    }
    assert!(text(&letters[0]["error"]).contains("exit"), "{:#}", letters[0]);
    assert!(text(&letters[5]["error"]).contains("twice"), "{:#}", letters[5]);
    assert_eq!(items(&batches(&sandbox)[0]).len(), ROWS as usize, "the batch was a thousand");
    raised_but(&data, ROWS, &POISON).await;
    sandbox.prove(&id).await;
}
