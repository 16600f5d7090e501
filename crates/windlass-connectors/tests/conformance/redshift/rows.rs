//! Which rows a load replaces, and how their values arrive.

use super::fixture::{LOADED, RedshiftFixture, column, load, params};
use uuid::Uuid;
use windlass_connectors::{Bound, CopyRequest, Params};
use windlass_core::{ColumnType as T, Cursor, Value};

#[tokio::test]
async fn rows_are_replaced_by_param_by_value_or_not_at_all() {
    let fixture = RedshiftFixture::new().await;
    let files = fixture.branches().await;
    let ledger = async || fixture.fence(Uuid::now_v7(), 1).await.unwrap().unwrap();
    fixture.reset().await;
    fixture.copy(&ledger().await, &files).await.unwrap();
    fixture.copy(&ledger().await, &files).await.unwrap();
    assert_eq!(fixture.totals().await, LOADED, "by a param");

    fixture.database.run("UPDATE totals SET branch = NULL WHERE branch = 'c'").await;
    let named = [column("branch", T::Text, "text"), column("n", T::Int, "bigint")];
    let rows = [vec![Value::from("a"), Value::Int(7)], vec![Value::Null, Value::Int(8)]];
    let by_value = fixture.files(&named, &rows).await;
    let load_by = load(&["branch"]);
    fixture.copy_as(&ledger().await, &by_value, &load_by, &Params::new(), &[]).await.unwrap();
    let found = fixture.totals().await;
    assert_eq!(found, "2024-12-31 old 1 1.00, 2025-01-01 b 2 2.50, a 7, 8", "null equals null");

    fixture.copy_as(&ledger().await, &by_value, &load(&[]), &Params::new(), &[]).await.unwrap();
    assert_eq!(fixture.totals().await.matches("a 7").count(), 2, "nothing is replaced");
}

#[tokio::test]
async fn an_empty_result_deletes_the_rows_of_its_params() {
    let fixture = RedshiftFixture::new().await;
    let files = fixture.branches().await;
    fixture.reset().await;
    let ledger = fixture.fence(Uuid::now_v7(), 1).await.unwrap().unwrap();
    let (load, params) = (load(&["day"]), params("2025-01-01"));
    let request = CopyRequest {
        load: &load,
        manifest: None,
        iam_role: "default",
        columns: &files.columns,
        rows: 0,
        params: &params,
        bounds: &[],
    };
    fixture.connection.copy(&ledger, request).await.unwrap();
    assert_eq!(fixture.totals().await, "2024-12-31 old 1 1.00");
}

#[tokio::test]
async fn a_claim_is_compared_by_bytes() {
    let fixture = RedshiftFixture::new().await;
    fixture
        .database
        .run("INSERT INTO totals VALUES (NULL, 'kent', 1, 1), (NULL, 'Kent', 1, 1)")
        .await;
    // As in a database of Redshift that was created case-insensitive.
    fixture
        .database
        .run(
            "CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
             ALTER TABLE totals ALTER COLUMN branch TYPE varchar(20) COLLATE folded",
        )
        .await;
    let columns = [column("branch", T::Text, "text"), column("n", T::Int, "bigint")];
    let files = fixture.files(&columns, &[vec![Value::from("Kent"), Value::Int(5)]]).await;
    let bound =
        Bound { column: "branch".into(), values: vec![Value::from("Kent")], is_claim: true };
    let ledger = fixture.fence(Uuid::now_v7(), 1).await.unwrap().unwrap();
    let load = load(&["branch"]);
    fixture.copy_as(&ledger, &files, &load, &Params::new(), &[bound]).await.unwrap();
    let mut found: Vec<String> = fixture.totals().await.split(", ").map(str::to_owned).collect();
    found.sort();
    assert_eq!(found, ["Kent 5", "kent 1 1.00"]);
}

#[tokio::test]
async fn every_type_and_every_character_arrives() {
    let fixture = RedshiftFixture::new().await;
    fixture
        .database
        .run(
            "CREATE TABLE kinds (a boolean, b smallint, c double precision, d numeric(10,3), e varchar(99), \
             f date, g timestamp, h timestamptz, i varchar(40))",
        )
        .await;
    let columns = [
        column("a", T::Bool, "boolean"),
        column("b", T::Int, "bigint"),
        column("c", T::Float, "double precision"),
        column("d", T::Numeric, "numeric(10,3)"),
        column("e", T::Text, "text"),
        column("f", T::Date, "date"),
        column("g", T::Timestamp, "timestamp without time zone"),
        column("h", T::Timestamp, "timestamp with time zone"),
        column("i", T::Json, "jsonb"),
    ];
    let row = vec![
        Value::Bool(true),
        Value::Int(-7),
        Value::Float(0.1),
        Value::from("12.345"),
        Value::from("O'Hara \\ \"é\" {job}\n"),
        Value::from("2024-02-29"),
        Value::from("2024-02-29 23:59:59.123456"),
        Value::from("2024-02-29 23:59:59.5+00"),
        Value::from("{\"a\": 1}"),
    ];
    let files = fixture.files(&columns, &[row, vec![Value::Null; 9]]).await;
    let ledger = fixture.fence(Uuid::now_v7(), 1).await.unwrap().unwrap();
    let load = windlass_core::Load::into_table("w", "public.kinds", Vec::<String>::new());
    let loaded = fixture.copy_as(&ledger, &files, &load, &Params::new(), &[]).await.unwrap();
    assert_eq!((loaded.cursor, loaded.counts.processed), (Cursor::End, 2));
    let text = "SELECT concat_ws('|', a, b, c, d, e, f, g, h AT TIME ZONE 'UTC', i) FROM kinds \
                WHERE b IS NOT NULL";
    let found: String = fixture.database.one(text).await;
    assert_eq!(
        found,
        "t|-7|0.1|12.345|O'Hara \\ \"é\" {job}\n|2024-02-29|2024-02-29 23:59:59.123456|\
         2024-02-29 23:59:59.5|{\"a\": 1}"
    );
    let nulls = "SELECT count(*) FROM kinds WHERE num_nulls(a, b, c, d, e, f, g, h, i) = 9";
    assert_eq!(fixture.database.one::<i64>(nulls).await, 1);
}
