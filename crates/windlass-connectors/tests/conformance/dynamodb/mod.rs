//! DynamoDB: the shared tests that apply to it, and its own.
//!
//! These topics of the other databases do not apply:
//! - `committing`, `marking`: user statements, which DynamoDB does not run. The refresh is tested here.
//! - `cutting`, `splitting`: key ranges. Scans and index queries are tested here.
//! - `reading`: ranges and SQL types. `describing`, `validation`, `quoting`: SQL columns and indexes. Their counterparts
//!   are here.
//! - `extracting`: PostgreSQL's COPY. `outboxes`: DynamoDB has none.
//! - Of `writing`: constraints, defaults, foreign keys and lengths, which DynamoDB does not have.

mod committing;
mod failing;
mod matching;
mod scanning;

use crate::harness::{Db, effect, key};
use windlass_connectors::{Commit, Effect, Item, ReadLimits, Scope, WriteItem};
use windlass_core::{Counts, KeySet};

macro_rules! on_dynamodb {
    ($($topic:ident: $($test:ident),+;)+) => {$(
        mod $topic {
            $(#[tokio::test]
            async fn $test() {
                crate::$topic::$test(crate::harness::Db::dynamodb().await).await;
            })+
        }
    )+
        /// The same against a second implementation.
        mod ministack {
            $(mod $topic {
                $(#[tokio::test]
                async fn $test() {
                    crate::$topic::$test(crate::harness::Db::ministack().await).await;
                })+
            })+
        }
    };
}

on_dynamodb! {
    fencing: an_older_epoch_is_refused, several_at_once, lost_leases_without_a_commit_count_as_stalls,
        a_commit_at_an_older_epoch_changes_nothing, an_applied_commit_is_not_repeated,
        fencing_again_reads_the_row_and_creates_none,
        an_equal_epoch_with_another_nonce_is_refused, a_commit_with_another_nonce_changes_nothing,
        the_history_has_stores_and_jobs,
        preparing_twice_and_at_once, pruning_deletes_one_job;
    deferred_items: a_round_trip, paging_by_key, deferring_again_overwrites,
        ledger_rows_are_paged_with_their_counts;
    writing: updates_are_written_and_versions_raised,
        a_concurrent_change_survives_and_the_item_is_deferred, conflicts_are_handled_by_on_conflict,
        items_without_an_effect_are_processed, a_deleted_record_is_a_conflict;
    inline_source:
        inserts_are_committed_on_the_connection, an_update_is_refused_since_there_is_no_table;
}

const HANDLER: &str = "source.table = \"t\"\nstep.handler = \"h\"\nstep.version = \"version\"";

const REFRESH: &str = "source.table = \"t\"\nstep.refresh = true\nstep.version = \"version\"";

/// A database with [`table`], and the scope of this step.
async fn with_table(rows: i64, step: &str) -> (Db, Scope) {
    let db = Db::dynamodb().await;
    table(&db, rows).await;
    let scope = db.scope(step).await;
    (db, scope)
}

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
    db.data.read(scope, &key_set, ReadLimits::new(1000, usize::MAX)).await.unwrap().items
}
