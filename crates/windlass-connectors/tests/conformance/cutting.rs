//! Chunks contain every record exactly once, page by page, and respect their limits.

use crate::harness::{Db, Random, key, on_every_backend};
use std::collections::HashSet;
use windlass_connectors::{CutLimits, CutRange, FilterValues, ReadLimits, Scope};
use windlass_core::{FilterValue, Identity, Key, KeyRange, KeySet, Keys, Request, Value};

on_every_backend!(
    random_sizes_cover_every_row,
    conditions_are_respected,
    the_limit_of_items_is_respected,
    the_chunks_cover_the_range_to_its_end,
    an_open_range_ends_at_its_last_key,
    within_a_value_by_its_index,
    within_a_value_by_key_lists,
    a_query_is_cut_too,
    a_view_is_cut_too,
    equal_keys_stay_together,
    equal_keys_within_a_value_stay_together,
    cutting_many_values_equals_cutting_each,
);

async fn filled(db: &Db, rows: i64) -> Scope {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, kind INT, county TEXT, v INT)").await;
    db.run("CREATE INDEX by_kind ON t (kind, id)").await;
    insert(db, rows).await;
    db.scope("source.table = \"t\"\nstep.sql = \"UPDATE t SET v = 1 WHERE {chunk}\"").await
}

async fn insert(db: &Db, rows: i64) {
    for first in (0..rows).step_by(1000) {
        let row = |n: i64| format!("({}, {}, 'c{}', 0)", n * 3, n % 5, n % 3);
        let values: Vec<String> = (first..rows.min(first + 1000)).map(row).collect();
        db.run(&format!("INSERT INTO t (id, kind, county, v) VALUES {}", values.join(", "))).await;
    }
}

/// Cuts the ranges page by page with changing sizes: the chunks cover each range, their counts are right, and
/// every record is read exactly once.
pub(crate) async fn covers(db: &Db, scope: &Scope, ranges: &[KeyRange], rows: i64) {
    let mut random = Random(7);
    let (mut seen, mut total) = (HashSet::new(), 0);
    for range in ranges {
        let mut chunks = Vec::new();
        let mut rest = range.clone();
        loop {
            let items = random.below(300) as u32 + 1;
            let most = random.below(4) as u32 + 1;
            let cuts = db
                .data
                .cut(scope, CutRange::new(None, &rest), CutLimits::new(items, most, None))
                .await
                .unwrap();
            assert!(cuts.chunks.len() <= most as usize);
            let (key_sets, counts): (Vec<_>, Vec<_>) = cuts.chunks.iter().cloned().unzip();
            assert_eq!(db.data.count_each(scope, &key_sets).await.unwrap(), counts);
            for (key_set, count) in &cuts.chunks {
                assert!(*count <= i64::from(items));
                assert_eq!(db.data.count(scope, key_set).await.unwrap(), *count);
                let batch =
                    db.data.read(scope, key_set, ReadLimits::new(1000, usize::MAX)).await.unwrap();
                assert!(batch.end);
                assert_eq!(batch.items.len() as i64, *count);
                for item in batch.items {
                    assert!(seen.insert(item.key.to_text()), "{} twice", item.key);
                }
                total += count;
            }
            chunks.extend(cuts.chunks.into_iter().map(|(key_set, _)| range_of(&key_set)));
            if cuts.done {
                break;
            }
            rest.after = cuts.last;
        }
        range.check_tiling(&chunks).unwrap();
    }
    assert_eq!((total, seen.len() as i64), (rows, rows));
}

fn range_of(key_set: &KeySet) -> KeyRange {
    match &key_set.keys {
        Keys::Range(range) => range.clone(),
        Keys::List(_) => panic!("not a range: {key_set:?}"),
    }
}

async fn random_sizes_cover_every_row(db: Db) {
    let scope = filled(&db, 2500).await;
    for segments in [1, 3, 7] {
        let ranges = db.data.split(&scope, segments).await.unwrap();
        covers(&db, &scope, &ranges, 2500).await;
    }
}

async fn conditions_are_respected(db: Db) {
    filled(&db, 600).await;
    let toml = "source.table = \"t\"\nsource.where = \"v = 0 -- or any\"\n\
                source.filters = { kinds = \"kind\" }\n\
                source.claims = { county = \"county\" }\n\
                step.sql = \"UPDATE t SET v = 1 WHERE {chunk}\"";
    let request = Request {
        filter: Some([("kinds".to_owned(), Some(vec![1.into(), "2".into()]))].into()),
        ..Request::new("J")
    };
    let claims = [("county".to_owned(), vec![Value::from("c0"), Value::from("c1")])].into();
    let identity = Identity { name: "clerk".into(), claims, ..Identity::default() };
    let scope = db.scope_for(toml, request, identity).await;
    db.run("UPDATE t SET v = 9 WHERE id < 300").await;
    let expected = db
        .number(
            "SELECT count(*) FROM t WHERE id >= 300 AND kind IN (1, 2) AND county IN ('c0', 'c1')",
        )
        .await;
    assert!(expected > 50);
    let ranges = db.data.split(&scope, 4).await.unwrap();
    covers(&db, &scope, &ranges, expected).await;
}

async fn the_limit_of_items_is_respected(db: Db) {
    let scope = filled(&db, 1000).await;
    for (items, most_chunks, limit, chunks) in [
        (100, 50, 250, 3),
        (100, 50, 300, 3),
        (100, 50, 40, 1),
        (100, 2, 1000, 2),
        (100, 2, 200, 2),
    ] {
        let range = KeyRange { after: None, upto: Some(key(2997)) };
        let cuts = db
            .data
            .cut(
                &scope,
                CutRange::new(None, &range),
                CutLimits::new(items, most_chunks, Some(limit)),
            )
            .await
            .unwrap();
        assert_eq!(cuts.chunks.len(), chunks);
        let total: i64 = cuts.chunks.iter().map(|(_, count)| count).sum();
        let page = u64::from(items) * u64::from(most_chunks);
        assert_eq!(total as u64, limit.min(page));
        assert_eq!(cuts.done, limit <= page);
        assert_eq!(cuts.last, Some(key((total - 1) * 3)));
        assert_eq!(range_of(&cuts.chunks[chunks - 1].0).upto, cuts.last);
    }
    // The limit exceeds the number of records.
    let cuts = db
        .data
        .cut(&scope, CutRange::new(None, &KeyRange::ALL), CutLimits::new(300, 10, Some(5000)))
        .await
        .unwrap();
    let counts: Vec<i64> = cuts.chunks.iter().map(|(_, count)| *count).collect();
    assert_eq!((counts, cuts.done), (vec![300, 300, 300, 100], true));
}

async fn the_chunks_cover_the_range_to_its_end(db: Db) {
    let scope = filled(&db, 100).await;
    // The end is behind the last record, and the chunks still extend to it.
    for (after, upto, expected) in [
        (-1, 5000, vec![50, 50]),
        (-1, 297, vec![50, 50]),
        (297, 5000, vec![0]),
        (5000, 5000, vec![]),
    ] {
        let range = KeyRange { after: Some(key(after)), upto: Some(key(upto)) };
        let cuts = db
            .data
            .cut(&scope, CutRange::new(None, &range), CutLimits::new(50, 10, None))
            .await
            .unwrap();
        let counts: Vec<i64> = cuts.chunks.iter().map(|(_, count)| *count).collect();
        assert_eq!((&counts, cuts.done), (&expected, true), "{range:?}");
        if !counts.is_empty() {
            let ranges: Vec<KeyRange> = cuts.chunks.iter().map(|(e, _)| range_of(e)).collect();
            range.check_tiling(&ranges).unwrap();
            assert_eq!(cuts.last, range.upto);
        }
    }
}

async fn an_open_range_ends_at_its_last_key(db: Db) {
    let scope = filled(&db, 70).await;
    let cuts = db
        .data
        .cut(&scope, CutRange::new(None, &KeyRange::ALL), CutLimits::new(50, 10, None))
        .await
        .unwrap();
    assert_eq!((cuts.chunks.len(), cuts.done), (2, true));
    assert_eq!(cuts.last, Some(key(69 * 3)));
    let beyond = KeyRange { after: cuts.last, upto: None };
    let cuts = db
        .data
        .cut(&scope, CutRange::new(None, &beyond), CutLimits::new(50, 10, None))
        .await
        .unwrap();
    assert_eq!((cuts.chunks.len(), cuts.last, cuts.done), (0, None, true));
}

async fn filtered(db: &Db, toml: &str) -> (Scope, FilterValue) {
    let request = Request {
        filter: Some([("kinds".to_owned(), Some(vec![1.into(), 2.into()]))].into()),
        ..Request::new("J")
    };
    let scope = db.scope_for(toml, request, Identity::default()).await;
    (scope, FilterValue { filter: "kinds".into(), value: Value::Int(2) })
}

const FILTERED: &str = "source.table = \"t\"\nsource.filters = { kinds = \"kind\" }\n\
                        step.sql = \"UPDATE t SET v = 1 WHERE {chunk}\"";

async fn within_a_value_by_its_index(db: Db) {
    filled(&db, 1000).await;
    let (scope, within) = filtered(&db, FILTERED).await;
    let ids = all_within(&db, &scope, &within, |part| matches!(part, Keys::Range(_))).await;
    let expected: Vec<Key> = (0..1000).filter(|n| n % 5 == 2).map(|n| key(n * 3)).collect();
    assert_eq!(ids, expected);
}

async fn within_a_value_by_key_lists(db: Db) {
    // No index includes the key: in PostgreSQL it is only on `kind`, in SQLite the key is not the rowid, and in
    // MariaDB it is not the primary key.
    let id = db.pick(
        "id BIGINT NOT NULL PRIMARY KEY",
        "id BIGINT NOT NULL PRIMARY KEY",
        "id BIGINT NOT NULL UNIQUE, nr BIGINT AUTO_INCREMENT PRIMARY KEY",
    );
    db.run(&format!("CREATE TABLE t ({id}, kind INT, county TEXT, v INT)")).await;
    db.run("CREATE INDEX by_kind ON t (kind)").await;
    insert(&db, 1000).await;
    let (scope, within) = filtered(&db, &format!("source.key = [\"id\"]\n{FILTERED}")).await;
    let ids = all_within(&db, &scope, &within, |part| matches!(part, Keys::List(_))).await;
    let expected: Vec<Key> = (0..1000).filter(|n| n % 5 == 2).map(|n| key(n * 3)).collect();
    assert_eq!(ids, expected);
}

/// The keys of all chunks within a value, in order.
async fn all_within(
    db: &Db,
    scope: &Scope,
    within: &FilterValue,
    right: impl Fn(&Keys) -> bool,
) -> Vec<Key> {
    let (mut rest, mut keys) = (KeyRange::ALL, Vec::new());
    loop {
        let cuts = db
            .data
            .cut(scope, CutRange::new(Some(within), &rest), CutLimits::new(30, 3, None))
            .await
            .unwrap();
        for (key_set, count) in &cuts.chunks {
            assert!(right(&key_set.keys), "{key_set:?}");
            assert_eq!(key_set.within.as_ref(), Some(within));
            let batch =
                db.data.read(scope, key_set, ReadLimits::new(100, usize::MAX)).await.unwrap();
            assert_eq!(batch.items.len() as i64, *count);
            keys.extend(batch.items.into_iter().map(|item| item.key));
        }
        if cuts.done {
            return keys;
        }
        rest.after = cuts.last;
    }
}

async fn a_query_is_cut_too(db: Db) {
    filled(&db, 500).await;
    let toml = "source.query = \"SELECT a.id, a.kind FROM t a JOIN t b ON a.id = b.id;\"\n\
                source.key = [\"id\"]\nstep.sql = \"UPDATE t SET v = v + 1 WHERE {chunk}\"";
    let scope = db.scope(toml).await;
    let ranges = db.data.split(&scope, 4).await.unwrap();
    covers(&db, &scope, &ranges, 500).await;
}

async fn a_view_is_cut_too(db: Db) {
    filled(&db, 500).await;
    db.run("CREATE VIEW seen AS SELECT id, kind FROM t WHERE kind < 3").await;
    let mut job_type = crate::harness::job_type(
        "source.table = \"seen\"\nsource.key = [\"id\"]\n\
         step.sql = \"UPDATE t SET v = v + 1 WHERE {chunk}\"",
    );
    let table = db.data.describe(&job_type.source).await.unwrap();
    let problems = windlass_connectors::validate(&mut job_type, &table);
    assert!(problems.iter().any(|p| p.detail.contains("no index")), "{problems:?}");
    let scope = Scope::new(job_type, table, &Request::new("J"), &Identity::default()).unwrap();
    let ranges = db.data.split(&scope, 4).await.unwrap();
    covers(&db, &scope, &ranges, 300).await;
}

async fn equal_keys_stay_together(db: Db) {
    db.run("CREATE TABLE t (day INT NOT NULL, v INT)").await;
    db.run("CREATE INDEX by_day ON t (day)").await;
    for day in 0..20 {
        db.run(&format!("INSERT INTO t VALUES {}", vec![format!("({day}, 0)"); 10].join(", ")))
            .await;
    }
    let scope = db
        .scope("source.table = \"t\"\nsource.key = [\"day\"]\nstep.sql = \"UPDATE t SET v = 1 WHERE {chunk}\"")
        .await;
    let ranges = db.data.split(&scope, 3).await.unwrap();
    let mut total = 0;
    for range in ranges {
        let cuts = db
            .data
            .cut(&scope, CutRange::new(None, &range), CutLimits::new(15, 100, None))
            .await
            .unwrap();
        assert!(cuts.done);
        for (key_set, items) in &cuts.chunks {
            assert_eq!(db.data.count(&scope, key_set).await.unwrap(), *items);
            total += items;
        }
    }
    assert_eq!(total, 200);
}

/// The chunks of a value list their keys, each once, although all records of a day have the same key.
async fn equal_keys_within_a_value_stay_together(db: Db) {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, day INT NOT NULL, kind INT, v INT)").await;
    db.run("CREATE INDEX by_day ON t (day)").await;
    db.run("CREATE INDEX by_kind ON t (kind)").await;
    let row = |n: i64| format!("({n}, {}, {}, 0)", n / 4, 1 + n % 2);
    let rows: Vec<String> = (0..80).map(row).collect();
    db.run(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    let (scope, within) = filtered(&db, &format!("source.key = [\"day\"]\n{FILTERED}")).await;
    // Each day has two records of the kind.
    for (items, keys_in_chunk) in [(1, 1), (3, 2), (4, 2)] {
        let (mut rest, mut days) = (KeyRange::ALL, Vec::new());
        loop {
            let limits = CutLimits::new(items, 3, None);
            let cuts = db.data.cut(&scope, CutRange::new(Some(&within), &rest), limits).await;
            let cuts = cuts.unwrap();
            for (key_set, count) in &cuts.chunks {
                let Keys::List(keys) = &key_set.keys else { panic!("{key_set:?}") };
                assert_eq!((keys.len(), *count), (keys_in_chunk, 2 * keys_in_chunk as i64));
                days.extend(keys.iter().cloned());
            }
            if cuts.done {
                break;
            }
            rest.after = cuts.last;
        }
        assert_eq!(days, (0..20).map(key).collect::<Vec<Key>>());
    }
    let values = [Value::Int(2)];
    let values = FilterValues { filter: "kinds", values: &values, chunk_items: 100 };
    let found = db.data.cut_values(&scope, values).await.unwrap().remove(0).unwrap();
    let keys = (0..20).map(key).collect();
    let expected = KeySet::new(Some(within), Keys::List(keys));
    assert_eq!(found.chunks, [(expected, 40)]);
}

/// The lookup of many values gives the same chunks as cutting each value, except for those with more records
/// than a chunk.
async fn cutting_many_values_equals_cutting_each(db: Db) {
    db.run(
        "CREATE TABLE t (a INT NOT NULL, b VARCHAR(9) NOT NULL, kind INT, county VARCHAR(9), \
         ord INT, PRIMARY KEY (a, b))",
    )
    .await;
    db.run("CREATE TABLE u (id BIGINT NOT NULL, kind INT, county VARCHAR(9), ord INT)").await;
    db.run("CREATE UNIQUE INDEX by_id ON u (id)").await;
    db.run("CREATE INDEX by_kind ON t (kind, a, b)").await;
    for index in ["t (county)", "u (kind)", "u (county)"] {
        let name = index.replace([' ', '(', ')'], "_");
        db.run(&format!("CREATE INDEX {name} ON {index}")).await;
    }
    // Each kind has as many records as its number. A third of them do not match `source.where`.
    let (mut t, mut u) = (Vec::new(), Vec::new());
    for kind in 0..40 {
        for n in 0..kind {
            let (county, ord) = (["Kent", "Essex"][n % 2], n % 3);
            t.push(format!("({}, 'b{kind}-{n}', {kind}, '{county}', {ord})", n % 4));
            u.push(format!("({}, {kind}, '{county}', {ord})", kind * 100 + n));
        }
    }
    db.run(&format!("INSERT INTO t (a, b, kind, county, ord) VALUES {}", t.join(", "))).await;
    db.run(&format!("INSERT INTO u (id, kind, county, ord) VALUES {}", u.join(", "))).await;
    let query = "SELECT u.id, u.kind, u.county, u.ord FROM u JOIN u AS w ON w.id = u.id";
    for (source, is_range) in [
        ("source.table = \"t\"".to_owned(), true),
        ("source.table = \"u\"\nsource.key = [\"id\"]".to_owned(), false),
        (format!("source.query = \"{query}\"\nsource.key = [\"id\"]"), false),
    ] {
        let toml = format!(
            "{source}\nsource.where = \"ord < 2 -- and no more\"\n\
             source.filters = {{ kinds = \"kind\", counties = \"county\" }}\n\
             source.claims = {{ county = \"county\" }}\n\
             step.sql = \"DELETE FROM t WHERE {{chunk}}\""
        );
        let (kinds, counties) = ((0..60).map(Into::into), ["Essex", "Kent"].map(Into::into));
        let filter = [
            ("kinds".to_owned(), Some(kinds.collect())),
            ("counties".to_owned(), Some(counties.into())),
        ];
        let request = Request { filter: Some(filter.into()), ..Request::new("J") };
        let claims = [("county".to_owned(), vec![Value::from("Kent"), Value::from("Surrey")])];
        let identity = Identity { claims: claims.into(), ..Identity::default() };
        let scope = db.scope_for(&toml, request, identity).await;
        let values: Vec<Value> = (0..60).rev().map(Value::Int).collect();
        for items in [1, 5, 10, 1000] {
            let found = db
                .data
                .cut_values(
                    &scope,
                    FilterValues { filter: "kinds", values: &values, chunk_items: items },
                )
                .await
                .unwrap();
            assert_eq!(found.len(), values.len());
            let mut records = 0;
            for (value, found) in values.iter().zip(found) {
                let within = FilterValue { filter: "kinds".into(), value: value.clone() };
                let all = KeyRange::ALL;
                let alone = db
                    .data
                    .cut(
                        &scope,
                        CutRange::new(Some(&within), &all),
                        CutLimits::new(items, 1000, None),
                    )
                    .await;
                let alone = alone.unwrap();
                for (key_set, count) in &alone.chunks {
                    assert_eq!(matches!(key_set.keys, Keys::Range(_)), is_range);
                    records += count;
                }
                let expected = (alone.chunks.len() < 2).then_some(alone);
                assert_eq!(found, expected, "{source} {value} {items}");
            }
            // Of n records the even ones are in Kent, without every third.
            let kent = |n: &i64| n % 2 == 0 && n % 3 < 2;
            let all: usize = (0..40).map(|kind| (0..kind).filter(kent).count()).sum();
            assert_eq!(records, all as i64);
        }
        // Text values are found by the collation of the column.
        let texts = ["Kent", "kent", "KENT ", "Surrey", "'; DROP TABLE t; --", "\u{0}", ""];
        let texts: Vec<Value> = texts.into_iter().map(Value::from).collect();
        let texts = if db.is_postgres() { &texts[..5] } else { &texts[..] };
        let found = db
            .data
            .cut_values(
                &scope,
                FilterValues { filter: "counties", values: texts, chunk_items: 1000 },
            )
            .await
            .unwrap();
        for (value, found) in texts.iter().zip(found) {
            let within = FilterValue { filter: "counties".into(), value: value.clone() };
            let all = KeyRange::ALL;
            let alone = db
                .data
                .cut(&scope, CutRange::new(Some(&within), &all), CutLimits::new(1000, 1000, None))
                .await
                .unwrap();
            assert_eq!(found, Some(alone), "{source} {value}");
        }
    }
}
