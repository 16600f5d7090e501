//! Names and values with any content are quoted or bound, never interpreted as SQL.

use crate::harness::{Db, effect, everything, on_every_backend};
use windlass_connectors::{Effect, Fence, ReadLimits};
use windlass_core::{Change, Identity, Key, KeySet, Request, Value};

on_every_backend!(special_characters_in_names_are_quoted, values_are_never_interpreted_as_sql);

const TABLE: &str = r#"weird "table"; DROP TABLE x; --"#;

async fn special_characters_in_names_are_quoted(db: Db) {
    let quoted = TABLE.replace('"', "\"\"");
    db.run(&format!(
        "CREATE TABLE \"{quoted}\" (\"select\" BIGINT, \"a \"\"b\"\"\" TEXT, \"order\" INT, \
         \"Group\" TEXT, \"user's\" INT NOT NULL, windlass_1 INT, PRIMARY KEY (\"select\", \"a \"\"b\"\"\"))"
    ))
    .await;
    db.run(&format!("CREATE INDEX odd ON \"{quoted}\" (\"order\", \"select\", \"a \"\"b\"\"\")"))
        .await;
    for n in 0..50 {
        db.run(&format!("INSERT INTO \"{quoted}\" VALUES ({n}, 'x', {}, 'g', 1, 0)", n % 2)).await;
    }
    let toml = format!(
        "source.table = '{TABLE}'\nsource.filters = {{ orders = 'order' }}\n\
         source.claims = {{ group = 'Group' }}\nstep.handler = \"h\"\nstep.version = \"user's\""
    );
    let request = Request {
        filter: Some([("orders".to_owned(), Some(vec![1.into()]))].into()),
        ..Request::new("J")
    };
    let claims = [("group".to_owned(), vec![Value::from("g")])].into();
    let scope = db
        .scope_for(&toml, request, Identity { name: "x".into(), claims, ..Identity::default() })
        .await;
    let ranges = db.data.split(&scope, 3).await.unwrap();
    crate::cutting::covers(&db, &scope, &ranges, 25).await;
    let batch =
        db.data.read(&scope, &everything(), ReadLimits::new(100, usize::MAX)).await.unwrap();
    let items = batch
        .items
        .into_iter()
        .map(|item| {
            crate::writing::item(
                item,
                Change::default().set("windlass_1", 7).insert(
                    TABLE,
                    [
                        ("select", Value::Int(1000)),
                        ("a \"b\"", Value::from("new")),
                        ("user's", Value::Int(1)),
                    ],
                ),
            )
        })
        .take(1)
        .collect();
    let ledger = db.fenced(1).await;
    db.data.commit(&scope, &ledger, effect(Effect::Write(items))).await.unwrap();
    assert_eq!(db.number(&format!("SELECT sum(windlass_1) FROM \"{quoted}\"")).await, 7);
    assert_eq!(db.number(&format!("SELECT count(*) FROM \"{quoted}\"")).await, 51);
}

async fn values_are_never_interpreted_as_sql(db: Db) {
    db.run("CREATE TABLE t (id TEXT PRIMARY KEY, county TEXT, v TEXT, version INT NOT NULL)").await;
    let evil = "x'); DROP TABLE t; --";
    db.run("INSERT INTO t VALUES ('x''); DROP TABLE t; --', ''' OR ''1''=''1', 'a', 1), ('y', 'c', 'b', 1)").await;
    let toml = "source.table = \"t\"\nsource.claims = { county = \"county\" }\n\
                step.handler = \"h\"\nstep.version = \"version\"";
    let claims = [("county".to_owned(), vec![Value::from("' OR '1'='1")])].into();
    let scope = db
        .scope_for(
            toml,
            Request::new("J"),
            Identity { name: evil.into(), claims, ..Identity::default() },
        )
        .await;
    let batch = db.data.read(&scope, &everything(), ReadLimits::new(10, usize::MAX)).await.unwrap();
    assert_eq!(batch.items.len(), 1);
    let key = Key(vec![Value::from(evil)]);
    assert_eq!(batch.items[0].key, key);
    assert_eq!(
        db.data
            .count(&scope, &KeySet::keys(vec![key.clone(), Key(vec!["z".into()])]))
            .await
            .unwrap(),
        1
    );
    assert_eq!(db.data.count(&scope, &KeySet::range(None, Some(key.clone()))).await.unwrap(), 1);
    let items = batch
        .items
        .into_iter()
        .map(|item| crate::writing::item(item, Change::default().set("v", evil)))
        .collect();
    let chunk = windlass_core::ChunkId { job: uuid::Uuid::now_v7(), number: 1 };
    let ledger = db
        .data
        .fence(&[Fence { chunk, epoch: 1, nonce: 0, lost: false }])
        .await
        .unwrap()
        .pop()
        .unwrap()
        .unwrap();
    db.data.commit(&scope, &ledger, effect(Effect::Write(items))).await.unwrap();
    assert_eq!(db.rows("SELECT v FROM t ORDER BY v DESC").await, [[evil], ["b"]]);
}

/// PostgreSQL truncates a text that is cast to a shorter type, and pads `char(n)`.
#[tokio::test]
async fn a_claim_is_compared_by_bytes_for_any_type() {
    let db = Db::postgres().await;
    db.run("CREATE TABLE t (id bigint PRIMARY KEY, padded char(6), short varchar(4))").await;
    db.run("INSERT INTO t VALUES (1, 'acme', 'acme'), (2, 'ACME', 'ACME')").await;
    for (column, claim, expected) in [
        ("padded", "acme", 1),
        ("padded", "acme ", 0),
        ("padded", "Acme", 0),
        ("padded", "acme  and sons", 0),
        ("short", "acme", 1),
        ("short", "acme and sons", 0),
    ] {
        let toml = format!(
            "source.table = \"t\"\nsource.claims = {{ c = \"{column}\" }}\n\
             step.sql = \"DELETE FROM t WHERE {{chunk}}\""
        );
        let claims = [("c".to_owned(), vec![Value::from(claim)])].into();
        let identity = Identity { name: "x".into(), claims, ..Identity::default() };
        let scope = db.scope_for(&toml, Request::new("J"), identity).await;
        let count = db.data.count(&scope, &everything()).await.unwrap();
        assert_eq!(count, expected, "{column} {claim}");
    }
}
