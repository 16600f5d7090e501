//! Pages of listings: following their links shows every row once, and a damaged cursor is refused with its name.
//! `PROPTEST_CASES` raises the number of damaged cursors.

use crate::api::server_fixture::TestServer;
use crate::api::wallets_fixture::take;
use crate::common::{CliSandbox, Data, text};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value as Json, json};
use std::collections::HashSet;

const CURSORS: u32 = 25;

/// A listing: its path, the parameter with the cursor, and the field of a row that is the cursor.
struct Listing {
    path: String,
    parameter: &'static str,
    field: &'static str,
}

async fn listings(server: &TestServer, data: &Data) -> Vec<Listing> {
    data.run("UPDATE wallets SET amount = 5 WHERE id < 12").await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(server.submit(json!({"jobType": "TAKE"})).await);
        ids.push(server.submit(json!({"jobType": "EXPORT"})).await);
    }
    for id in &ids {
        server.until(id, "COMPLETED").await;
    }
    let listing = |path: String, parameter, field| Listing { path, parameter, field };
    vec![
        listing("/api/v1/jobs".to_owned(), "before", "id"),
        listing("/api/v1/dead-letters".to_owned(), "before", "id"),
        listing("/api/v1/alerts".to_owned(), "before", "id"),
        listing(format!("/api/v1/jobs/{}/chunks", ids[0]), "after", "chunk"),
        listing(format!("/api/v1/jobs/{}/files", ids[1]), "after", "name"),
    ]
}

fn rows(page: &Json) -> Vec<Json> {
    page.as_array().unwrap().clone()
}

async fn links_lead_to_every_row_once(server: &TestServer, listing: &Listing, all: &[Json]) {
    for limit in [1, 2, 7, all.len().max(1), all.len() + 1] {
        let mut next = Some(format!("{}?limit={limit}", listing.path));
        let mut found = Vec::new();
        while let Some(path) = next {
            let page = server.get(&path).await;
            found.extend(rows(&page.is(200)));
            assert!(found.len() <= all.len(), "{path} shows rows again");
            let link = page.header("link").map(|link| link.split(['<', '>']).nth(1).unwrap());
            next = link.map(str::to_owned);
        }
        assert_eq!(found, all, "{} by {limit}", listing.path);
    }
}

/// What a valid cursor is changed to, as bytes.
fn damaged(valid: String) -> impl Strategy<Value = Vec<u8>> {
    let special = select(vec![
        "",
        " ",
        "0",
        "-1",
        "+5",
        " 5",
        "1e3",
        "0x10",
        "٣",
        "null",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "ffffffffffffffffffffffffffffffff",
        "urn:uuid:018f3c2a-0000-7000-8000-000000000001",
        "{018f3c2a-0000-7000-8000-000000000001}",
        "' OR 1 = 1 --",
    ]);
    let original = valid.clone().into_bytes();
    let bytes = (any::<Index>(), any::<u8>(), 0..3u8).prop_map(move |(place, byte, change)| {
        let mut bytes = original.clone();
        let place = place.index(bytes.len());
        match change {
            0 => bytes[place] = byte,
            1 => bytes.insert(place, byte),
            _ => bytes.truncate(place),
        }
        bytes
    });
    let ids = any::<[u8; 16]>().prop_map(|bytes| uuid_text(&bytes).into_bytes());
    let numbers = any::<i64>().prop_map(|number| number.to_string().into_bytes());
    prop_oneof![
        3 => bytes,
        2 => special.prop_map(|text| text.as_bytes().to_vec()),
        1 => Just(valid.to_uppercase().into_bytes()),
        1 => ids,
        1 => numbers,
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ]
}

fn uuid_text(bytes: &[u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

async fn damaged_cursors_are_refused(server: &TestServer, listing: &Listing, all: &[Json]) {
    let Listing { path, parameter, field } = listing;
    let valid = all.last().map(|row| row[field].to_string().replace('"', ""));
    let strategy = damaged(valid.unwrap_or_else(|| uuid_text(&[7; 16])));
    let mut runner = TestRunner::default();
    let cursors = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let shown: HashSet<String> = all.iter().map(Json::to_string).collect();
    for _ in 0..cursors.unwrap_or(CURSORS) {
        let cursor = strategy.new_tree(&mut runner).unwrap().current();
        let encoded: String = cursor.iter().map(|byte| format!("%{byte:02X}")).collect();
        let response = server.get(&format!("{path}?{parameter}={encoded}")).await;
        match response.status {
            200 => {
                let page = rows(&response.json());
                assert!(page.iter().all(|row| shown.contains(&row.to_string())), "{page:?}");
            }
            400 if cursor.contains(&0) => {
                assert!(text(&response.json()["detail"]).contains("%00"), "{response:?}");
            }
            _ => response.is_rejected(400, parameter),
        }
    }
}

async fn listings_have_every_row_once_and_refuse_damaged_cursors(data: Data) {
    let export = "[jobs.EXPORT]\nsource.connection = \"app\"\nsource.table = \"wallets\"\n\
                  step.export = { to = \"file:parts/{job_id}/\", format = \"csv\" }\nchunk.items = 5\n";
    let server = TestServer::with(CliSandbox::on(&data, &(take("") + "\n" + export)), 2).await;
    for listing in listings(&server, &data).await {
        let all = rows(&server.get(&format!("{}?limit=1000", listing.path)).await.is(200));
        assert!(all.len() > 3 || listing.path.ends_with("alerts"), "{all:?}");
        // Files have no links: a client follows the numbers of the chunks.
        if !listing.path.ends_with("files") {
            links_lead_to_every_row_once(&server, &listing, &all).await;
        }
        damaged_cursors_are_refused(&server, &listing, &all).await;
    }
}

on_both!(listings_have_every_row_once_and_refuse_damaged_cursors,);
