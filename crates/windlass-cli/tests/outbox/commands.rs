//! The commands of the outbox and of items.

use crate::common::{Data, Place, config, refused};
use crate::world::Shop;

#[tokio::test]
async fn an_outbox_that_is_not_made_yet_is_said_to_be_missing() {
    for data in Data::both().await {
        data.run("CREATE TABLE t (a integer)").await;
        let without = Place::with(&config("sqlite:store.db", &data.url(), ""));
        let said = without.run("outbox").await.ok().stdout;
        assert!(said.contains("no outboxes; `outbox = true`"), "{said}");
        let place = Place::with(&config("sqlite:store.db", &data.url(), "outbox = true\n"));
        let said = place.run("outbox").await.ok().stdout;
        assert!(
            said.contains("no table `windlass_outbox`; create it with `windlass migrate`"),
            "{said}"
        );
        assert_eq!(place.json("outbox").await[0]["hasTable"], false);
        let printed = place.run("migrate --print").await.ok().stdout;
        let needed = match &data {
            Data::Postgres(_) => "GRANT EXECUTE ON FUNCTION windlass_enqueue(text, jsonb) TO",
            _ => "CONSTRAINT request_is_a_json_object",
        };
        assert!(printed.contains(needed), "{printed}");
        assert_eq!(place.json("outbox").await[0]["hasTable"], false, "printed only");
        // What was printed can be run as it stands, and is what is needed.
        data.run(&printed).await;
        assert_eq!(place.json("outbox").await[0]["hasTable"], true);
        place.run("migrate").await.ok();
    }
}

#[tokio::test]
async fn items_come_from_a_file_as_a_list_or_line_by_line() {
    let shop = Shop::on(Data::sqlite()).await;
    shop.place.write("list.json", "[\n  {\"order\": \"a\"},\n  {\"order\": \"b\"}\n]\n");
    shop.place.write("lines.jsonl", "{\"order\": \"c\"}\n\n{\"order\": \"d\"}\n");
    for file in ["list.json", "lines.jsonl"] {
        let job = shop.place.json(&format!("run SHIP --items-file {file}")).await;
        assert_eq!((&job["status"], &job["items"]["processed"]), (&"COMPLETED".into(), &2.into()));
    }
    let dry = shop.place.json("run SHIP --items-file list.json --dry-run").await;
    assert_eq!(dry["records"], 2, "{dry:#}");
    assert_eq!(shop.data.number("SELECT count(*) FROM shipments").await, 4);

    shop.place.write("bad.jsonl", "{\"order\": \"c\"}\n{\"order\":\n");
    let output = shop.place.run("submit SHIP --items-file bad.jsonl").await;
    refused(&output, &["--items-file: line 2 is not JSON"]);
    shop.place.write("twice.json", "[{\"order\": \"a\"}, {\"order\": \"a\"}]");
    let output = shop.place.run("submit SHIP --items-file twice.json").await;
    refused(&output, &["items[1]: has the key of items[0]"]);
    refused(&shop.place.run("submit SHIP").await, &["items: is missing"]);
    let checked = shop.place.run("check").await.ok().stdout;
    assert!(checked.contains("reads     the items of each request by (order)"), "{checked}");
}

#[tokio::test]
async fn what_cannot_go_with_items_is_refused_with_its_line() {
    let shop = Shop::on(Data::sqlite()).await;
    let config = shop.place.read("windlass.toml");
    let step = "step.command = [\"python3\", \"ship.py\"]";
    let place = Place::with(&config.replace(step, "step.refresh = true"));
    let line = config.lines().position(|line| line == "[jobs.SHIP]").unwrap() + 1;
    let output = place.run("check").await;
    let at = format!("line {line}: jobs.SHIP.step.refresh: works on a table");
    refused(&output, &[&at]);
    let claims = config.replace("items = true", "items = true, claims = { a = \"b\" }");
    refused(
        &Place::with(&claims).run("check").await,
        &["jobs.SHIP.source.claims: filters the rows"],
    );
}
