//! Another program that writes the same records while jobs work on them.

use super::history::Write;
use super::job_types::{ITEMS, TRACED};
use crate::common::Data;
use crate::common::seeded_rng::SeededRng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Appends tokens to random records until it is told to stop, and now and then breaks or mends a record. Returns its
/// writes.
pub(super) async fn write(data: &Data, seed: u64, stop: &AtomicBool) -> Vec<Write> {
    let mut rng = SeededRng::new(seed);
    let mut writes = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let table = TRACED[rng.next_in(0..TRACED.len() as u64) as usize];
        let version = if table == "plain" { "" } else { ", version = version + 1" };
        if table != "refreshed" && rng.next_in(0..6) == 0 {
            let item = 7 + 60 * rng.next_in(0..ITEMS as u64 / 60);
            let sql = format!("UPDATE {table} SET bad = 1 - bad{version} WHERE id = {item}");
            let _ = data.try_run(&sql).await;
        }
        let token = format!("b{}", writes.len());
        let first = rng.next_in(1..ITEMS as u64 - 40) as i64;
        let items: Vec<i64> = (0..4).map(|nth| first + nth * 10).collect();
        let sql = append(data, table, &token, version, &items);
        let is_acknowledged = data.try_run(&sql).await.is_ok();
        writes.push(Write { table, token, items, is_acknowledged });
        tokio::time::sleep(Duration::from_millis(rng.next_in(20..150))).await;
    }
    writes
}

/// One statement, so that all records are written or none.
fn append(data: &Data, table: &str, token: &str, version: &str, items: &[i64]) -> String {
    let trace = match data {
        Data::Mariadb(_) => format!("CONCAT(trace, ' {token}')"),
        _ => format!("trace || ' {token}'"),
    };
    let items = items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    format!("UPDATE {table} SET trace = {trace}{version} WHERE id IN ({items})")
}
