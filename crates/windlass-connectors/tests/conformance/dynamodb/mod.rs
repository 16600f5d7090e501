//! DynamoDB: what of the suite applies to it, and what it does in its own way.
//!
//! Of the topics of the other databases these do not apply:
//! - `committing`, `marking`: statements of the user's, which DynamoDB does not run. A refresh is here.
//! - `cutting`, `splitting`: ranges of keys. Here are scans and look-ups, with every record once.
//! - `reading`: reads by ranges, and types that only SQL has. `describing`, `fitting`, `naming`: columns
//!   and indexes as SQL has them. All of it is here in DynamoDB's terms.
//! - `extracting`: how PostgreSQL copies out. `outboxes`: there is none.
//! - Of `writing`: constraints, defaults, foreign keys and lengths, which no table has here.

mod committing;
mod failing;
mod walking;

use crate::harness::{Db, effect, key};
use windlass_connectors::{Commit, Effect, Item, Scope, WriteItem};
use windlass_core::{Counts, KeySet};

macro_rules! on_dynamodb {
    ($($topic:ident: $($test:ident),+;)+) => {$(
        mod $topic {
            $(#[tokio::test]
            async fn $test() {
                crate::$topic::$test(crate::harness::Db::dynamodb().await).await;
            })+
        }
    )+};
}

on_dynamodb! {
    fencing: an_older_epoch_gets_nothing, several_at_once, stalls_are_claims_lost_without_a_commit,
        a_commit_at_an_older_epoch_changes_nothing, a_commit_that_happened_is_not_repeated,
        an_equal_epoch_with_another_nonce_gets_nothing, a_commit_with_another_nonce_changes_nothing,
        a_ledger_remembers_stores_and_jobs,
        preparing_twice_and_at_once, pruning_forgets_one_job;
    holding: a_round_trip, paging_by_key, holding_again_overwrites,
        ledger_rows_come_in_pages_with_what_is_beside_them;
    writing: updates_are_written_and_versions_raised,
        a_concurrent_change_survives_and_the_item_is_held, what_a_conflict_comes_to,
        items_without_an_effect_are_processed, a_deleted_record_is_a_conflict;
    items: segments_and_chunks_hold_every_item_once, records_are_the_items_as_they_came,
        a_batch_ends_at_its_bytes, keys_are_looked_up_and_counted,
        inserts_are_committed_on_the_connection, an_update_is_refused_since_there_is_no_table;
}

const HANDLER: &str = "source.table = \"t\"\nstep.handler = \"h\"\nstep.version = \"version\"";

const REFRESH: &str = "source.table = \"t\"\nstep.refresh = true\nstep.version = \"version\"";

/// Records 1 to `rows`, in five kinds and three counties.
async fn table(db: &Db, rows: i64) {
    let insert = format!(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, kind INT, county TEXT, version INT);
         CREATE INDEX kinds ON t (kind, county); CREATE INDEX counties ON t (county);
         INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         SELECT i, i % 5, 'c' || (i % 3), 1 FROM n"
    );
    db.run(&insert).await;
}

fn write(items: Vec<WriteItem>) -> Commit {
    let counts = Counts { read: items.len() as i64, ..Counts::default() };
    Commit { counts, ..effect(Effect::Write(items)) }
}

async fn read(db: &Db, scope: &Scope, ids: std::ops::RangeInclusive<i64>) -> Vec<Item> {
    let key_set = KeySet::keys(ids.map(key).collect());
    db.data.read(scope, &key_set, 1000, usize::MAX).await.unwrap().items
}
