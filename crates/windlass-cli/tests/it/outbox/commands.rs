//! The commands for the outbox and for items.

use crate::common::{CliSandbox, Data, config, refused};
use crate::outbox::fixture::OutboxFixture;

#[tokio::test]
async fn a_missing_outbox_is_reported() {
    for data in Data::both().await {
        data.run("CREATE TABLE t (a integer)").await;
        let without = CliSandbox::with(&config("sqlite:store.db", &data.url(), ""));
        let said = without.run("outbox").await.ok().stdout;
        assert!(said.contains("no outboxes; add `outbox = true`"), "{said}");
        let sandbox = CliSandbox::with(&config("sqlite:store.db", &data.url(), "outbox = true\n"));
        let said = sandbox.run("outbox").await.ok().stdout;
        assert!(
            said.contains("no table `windlass_outbox`; create it with `windlass migrate`"),
            "{said}"
        );
        assert_eq!(sandbox.json("outbox").await[0]["hasTable"], false);
        let printed = sandbox.run("migrate --print").await.ok().stdout;
        let needed = match &data {
            Data::Postgres(_) => "GRANT EXECUTE ON FUNCTION windlass_enqueue(text, jsonb) TO",
            _ => "CONSTRAINT request_is_a_json_object",
        };
        assert!(printed.contains(needed), "{printed}");
        assert_eq!(sandbox.json("outbox").await[0]["hasTable"], false, "printed only");
        // The printed statements can be run as they are, and create the outbox.
        data.run(&printed).await;
        assert_eq!(sandbox.json("outbox").await[0]["hasTable"], true);
        sandbox.run("migrate").await.ok();
    }
}

#[tokio::test]
async fn items_are_read_from_a_json_list_or_from_json_lines() {
    let fixture = OutboxFixture::on(Data::sqlite()).await;
    fixture.sandbox.write("list.json", "[\n  {\"order\": \"a\"},\n  {\"order\": \"b\"}\n]\n");
    fixture.sandbox.write("lines.jsonl", "{\"order\": \"c\"}\n\n{\"order\": \"d\"}\n");
    for file in ["list.json", "lines.jsonl"] {
        let job = fixture.sandbox.json(&format!("run SHIP --items-file {file}")).await;
        assert_eq!((&job["status"], &job["items"]["processed"]), (&"COMPLETED".into(), &2.into()));
    }
    let dry = fixture.sandbox.json("run SHIP --items-file list.json --dry-run").await;
    assert_eq!(dry["records"], 2, "{dry:#}");
    assert_eq!(fixture.data.number("SELECT count(*) FROM shipments").await, 4);

    fixture.sandbox.write("bad.jsonl", "{\"order\": \"c\"}\n{\"order\":\n");
    let output = fixture.sandbox.run("submit SHIP --items-file bad.jsonl").await;
    refused(&output, &["--items-file: line 2 is not JSON"]);
    fixture.sandbox.write("twice.json", "[{\"order\": \"a\"}, {\"order\": \"a\"}]");
    let output = fixture.sandbox.run("submit SHIP --items-file twice.json").await;
    refused(&output, &["items[1]: has the key of items[0]"]);
    refused(&fixture.sandbox.run("submit SHIP").await, &["items: is missing"]);
    let checked = fixture.sandbox.run("check").await.ok().stdout;
    assert!(checked.contains("reads     the items of each request by (order)"), "{checked}");
}

#[tokio::test]
async fn an_option_that_conflicts_with_items_is_refused_with_its_line() {
    let fixture = OutboxFixture::on(Data::sqlite()).await;
    let config = fixture.sandbox.read("windlass.toml");
    let step = "step.command = [\"python3\", \"ship.py\"]";
    let sandbox = CliSandbox::with(&config.replace(step, "step.refresh = true"));
    let line = config.lines().position(|line| line == "[jobs.SHIP]").unwrap() + 1;
    let output = sandbox.run("check").await;
    let at = format!("line {line}: jobs.SHIP.step.refresh: requires a table");
    refused(&output, &[&at]);
    let claims = config.replace("items = true", "items = true, claims = { a = \"b\" }");
    refused(
        &CliSandbox::with(&claims).run("check").await,
        &["jobs.SHIP.source.claims: filters the rows"],
    );
}
