//! The input of a program and its possible results: each kind of result, keys of several columns, every column
//! type.

use crate::common::{Data, parse, text};
use crate::steps::fixture::{
    TWO_TRIES, batches, by_command, items, keys, letters, sandbox, with_accounts,
};
use serde_json::json;

#[tokio::test]
async fn each_kind_of_result_has_its_documented_effect() {
    for data in Data::both_with_accounts(10).await {
        data.run("CREATE TABLE greetings (account bigint NOT NULL, words text NOT NULL)").await;
        let sandbox = sandbox(&data, &by_command("python3 outcomes.py", TWO_TRIES));
        let job = parse(&sandbox.run("run RAISE --json").await.with_dead_letters());
        assert_eq!(job["items"]["processed"], 5, "{job:#}");
        assert_eq!(job["items"]["skipped"], 1, "{job:#}");
        assert_eq!(job["items"]["dead"], 4, "{job:#}");

        data.raised_once(3).await;
        let raised = "SELECT count(*) FROM accounts WHERE version = 2 AND id IN (1, 3, 8)";
        assert_eq!(data.number(raised).await, 3);
        let alone = "SELECT count(*) FROM accounts WHERE version = 1 AND amount = id * 7 % 1000";
        assert_eq!(data.number(&format!("{alone} AND id IN (4, 5, 6, 9, 10)")).await, 5);
        let hello = "SELECT count(*) FROM greetings WHERE words = 'hello ' || account";
        assert_eq!(data.number(hello).await, 2, "2 and 3 are greeted");
        let more = "SELECT count(*) FROM greetings WHERE account = 3 AND words IN ('a', 'b')";
        assert_eq!(data.number(more).await, 2, "3 has a list of inserts");
        assert_eq!(data.number("SELECT count(*) FROM greetings").await, 4);

        let id = text(&job["id"]);
        let letters = letters(&sandbox, &id).await;
        assert_eq!(keys(&letters), [5, 6, 9, 10]);
        assert_eq!(letters[0]["error"], "no such town as 5");
        assert_eq!(letters[0]["attempts"], 1, "the program returned a permanent error");
        assert_eq!(letters[0]["context"], json!({"town": "Ys", "seen": 1}));
        assert_eq!(letters[1]["error"], "no such town as 6");
        assert_eq!(letters[1]["attempts"], 2);
        assert_eq!(letters[1]["context"], json!({"town": "Ys", "seen": 2}), "of the last try");
        assert_eq!(letters[1]["record"]["owner"], "owner 6");
        assert_eq!(letters[2]["error"], "a message alone");
        assert_eq!(letters[2]["attempts"], 1);
        assert!(text(&letters[3]["error"]).contains("skip"), "{:#}", letters[3]);
        assert_eq!(letters[3]["attempts"], 1);
        sandbox.prove(&id).await;
    }
}

#[tokio::test]
async fn a_batch_has_the_documented_fields() {
    let (data, sandbox) = with_accounts(3, &by_command("python3 raise.py", "")).await;
    let params = "run RAISE --param month=2025-01 --param rate=3 --json";
    let job = parse(&sandbox.run(params).await.ok());
    data.raised_once(3).await;
    let [batch] = <[_; 1]>::try_from(batches(&sandbox)).unwrap();
    assert_eq!(batch["jobId"], job["id"]);
    assert_eq!(batch["jobType"], "RAISE");
    assert_eq!(batch["params"], json!({"month": "2025-01", "rate": 3}));
    assert_eq!(batch["dryRun"], false);
    let second = &items(&batch)[1];
    assert_eq!(second["key"], 2);
    assert_eq!(second["attempt"], 1);
    assert!(!text(&second["idempotencyKey"]).is_empty());
    let record = json!({"id": 2, "branch": 2, "amount": 14, "owner": "owner 2", "version": 1});
    assert_eq!(second["record"], record);
}

#[tokio::test]
async fn a_key_of_several_columns_is_a_list() {
    for data in Data::both().await {
        data.run(
            "CREATE TABLE lines (book text NOT NULL, line bigint NOT NULL, amount bigint NOT NULL,
                 version bigint NOT NULL, PRIMARY KEY (book, line));
             INSERT INTO lines VALUES ('a', 1, 10, 1), ('a', 2, 20, 1), ('b', 1, 30, 1);",
        )
        .await;
        let jobs = by_command("python3 raise.py", "").replace("\"accounts\"", "\"lines\"");
        let sandbox = sandbox(&data, &jobs);
        let job = parse(&sandbox.run("run RAISE --json").await.ok());
        assert_eq!(job["items"]["processed"], 3, "{job:#}");
        let right = "SELECT count(*) FROM lines WHERE amount IN (11, 21, 31) AND version = 2";
        assert_eq!(data.number(right).await, 3);
        let mut seen: Vec<_> = batches(&sandbox).iter().flat_map(|b| items(b).to_vec()).collect();
        seen.sort_by_key(|item| item["key"].to_string());
        assert_eq!(seen[1]["key"], json!(["a", 2]));
        assert_eq!(seen[2]["key"], json!(["b", 1]));
        sandbox.prove(&text(&job["id"])).await;
    }
}

#[tokio::test]
async fn every_type_of_column_reaches_the_program_and_comes_back() {
    let data = Data::postgres().await;
    data.run(
        "CREATE TABLE things (
             id bigint PRIMARY KEY, price numeric(30, 10), born date, seen timestamptz, code uuid,
             bytes bytea, facts jsonb, big bigint, ratio double precision, good boolean, note text,
             version bigint NOT NULL);
         INSERT INTO things VALUES
             (1, 12345678901234567890.0123456789, '2024-02-29', '2025-03-30 01:02:03.456789+00',
              '0190a7b2-0000-7000-8000-000000000001', '\\x0aff', '{\"a\": [1, null], \"b\": \"ü\"}',
              9007199254740993, 0.1, true, 'line\nbreak \"quoted\" € ', 1),
             (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1);
         CREATE TABLE copies AS SELECT * FROM things;",
    )
    .await;
    let jobs = by_command("python3 echo.py id version", "").replace("\"accounts\"", "\"things\"");
    let sandbox = sandbox(&data, &jobs);
    sandbox.run("run RAISE").await.ok();
    let [batch] = <[_; 1]>::try_from(batches(&sandbox)).unwrap();
    let seen = &items(&batch)[0]["record"];
    assert_eq!(seen["price"], "12345678901234567890.0123456789");
    assert_eq!(seen["born"], "2024-02-29");
    assert!(text(&seen["seen"]).starts_with("2025-03-30"), "{seen}");
    assert_eq!(seen["bytes"], json!({"$bytes": "0aff"}));
    assert_eq!(seen["facts"], json!({"a": [1, null], "b": "ü"}));
    assert_eq!(seen["big"], 9_007_199_254_740_993_i64);
    assert_eq!(seen["ratio"], 0.1);
    assert_eq!(seen["good"], true);
    assert_eq!(seen["note"], "line\nbreak \"quoted\" € ");
    assert_eq!(items(&batch)[1]["record"]["bytes"], json!(null));

    let same = "SELECT count(*) FROM things, copies WHERE things.id = copies.id
                AND to_jsonb(things) - 'version' = to_jsonb(copies) - 'version'
                AND things.version = 2";
    assert_eq!(data.number(same).await, 2, "each column is as it was");
}

#[tokio::test]
async fn items_in_batch_item_failures_are_retried() {
    let jobs = by_command("python3 partial.py 5", TWO_TRIES);
    let (data, sandbox) = with_accounts(20, &jobs).await;
    let job = parse(&sandbox.run("run RAISE --json").await.with_dead_letters());
    assert_eq!(job["items"]["processed"], 19, "{job:#}");
    let letters = letters(&sandbox, &text(&job["id"])).await;
    assert_eq!(keys(&letters), [5]);
    assert_eq!(letters[0]["attempts"], 2);
    let batches = batches(&sandbox);
    let second = batches.iter().flat_map(items).filter(|item| item["attempt"] == 2);
    let mut tried_again: Vec<i64> = second.map(|item| item["key"].as_i64().unwrap()).collect();
    tried_again.sort_unstable();
    assert_eq!(tried_again, [5, 7, 14], "no other is tried twice");
    let kept = "SELECT count(*) FROM accounts WHERE amount = id * 7 % 1000";
    assert_eq!(data.number(kept).await, 20, "a result without an update changes nothing");
}
