//! The same rows give the same bytes and the same hash. Different rows do not.

use crate::common::{batch, folder_destination};
use proptest::prelude::*;
use std::sync::OnceLock;
use tokio::runtime::Runtime;
use windlass_core::{Column, ColumnType as T, Value};
use windlass_export::{
    Compression, Destination, Format, Output, PartWriter, SchemaRef, Written, schema,
};

fn outputs() -> Vec<Output> {
    use Compression::{Gzip, None, Zstd};
    use Format::{Csv, Json, Jsonl, Parquet};
    let all =
        [(Parquet, Zstd), (Parquet, None), (Csv, None), (Csv, Gzip), (Jsonl, Gzip), (Json, None)];
    all.map(|(format, compression)| Output::with(format, compression).unwrap()).to_vec()
}

/// Writes rows in batches of these sizes. The last batch has the rest.
async fn write(
    destination: &Destination,
    schema: &SchemaRef,
    output: Output,
    rows: &[Vec<Value>],
    sizes: &[usize],
) -> Written {
    let mut writer = PartWriter::new(destination, "x", schema.clone(), output).unwrap();
    let mut rest = rows;
    for size in sizes {
        let (some, others) = rest.split_at((*size).min(rest.len()));
        writer.write(batch(schema, some)).await.unwrap();
        rest = others;
    }
    writer.write(batch(schema, rest)).await.unwrap();
    writer.finish().await.unwrap()
}

fn small_schema() -> SchemaRef {
    let column = |name: &str, kind, sql_type: &str| Column {
        name: name.into(),
        kind,
        sql_type: sql_type.into(),
        nullable: true,
    };
    schema(&[
        column("id", T::Int, ""),
        column("amount", T::Numeric, "numeric(12,2)"),
        column("ok", T::Bool, ""),
        column("note", T::Text, ""),
    ])
}

fn any_row() -> impl Strategy<Value = Vec<Value>> {
    let id = proptest::option::of(any::<i64>());
    let amount = proptest::option::of(-999_999_999i64..999_999_999);
    let amount =
        amount.prop_map(|cents| cents.map(|c| format!("{}.{:02}", c / 100, c.abs() % 100)));
    let note = proptest::option::of("[a-c]{0,3}");
    (id, amount, proptest::option::of(any::<bool>()), note)
        .prop_map(|(id, amount, ok, note)| vec![id.into(), amount.into(), ok.into(), note.into()])
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().unwrap())
}

/// `PROPTEST_CASES` changes the number of cases.
fn cases(default: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig::with_cases(cases.unwrap_or(default))
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn the_batch_sizes_do_not_change_the_bytes(
        rows in proptest::collection::vec(any_row(), 0..40),
        sizes in proptest::collection::vec(0usize..15, 0..5),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let destination = folder_destination(folder.path());
        let schema = small_schema();
        let mut hash = None;
        for output in outputs() {
            let whole = runtime().block_on(write(&destination, &schema, output, &rows, &[]));
            let cut = runtime().block_on(write(&destination, &schema, output, &rows, &sizes));
            prop_assert_eq!(&whole, &cut);
            let same = hash.get_or_insert_with(|| whole.content_hash.clone());
            prop_assert_eq!(&whole.content_hash, same, "the format does not matter");
        }
    }

    #[test]
    fn different_rows_have_a_different_hash(
        rows in proptest::collection::vec(any_row(), 1..20),
        others in proptest::collection::vec(any_row(), 1..20),
    ) {
        prop_assume!(rows != others);
        let folder = tempfile::tempdir().unwrap();
        let (destination, schema) = (folder_destination(folder.path()), small_schema());
        let output = Output::of(Format::Csv);
        let one = runtime().block_on(write(&destination, &schema, output, &rows, &[]));
        let other = runtime().block_on(write(&destination, &schema, output, &others, &[]));
        prop_assert_ne!(one.content_hash, other.content_hash);
    }
}

/// Enough rows for several pages, whose boundaries depend on how rows reach the encoder.
#[tokio::test]
async fn page_boundaries_do_not_depend_on_the_batches() {
    let folder = tempfile::tempdir().unwrap();
    let (destination, schema) = (folder_destination(folder.path()), small_schema());
    let row = |n: i64| vec![n.into(), format!("{n}.25").into(), (n % 3 == 0).into(), "abc".into()];
    let many: Vec<_> = (0..60_000).map(row).collect();
    for output in outputs() {
        let whole = write(&destination, &schema, output, &many, &[]).await;
        let cut = write(&destination, &schema, output, &many, &[1, 8191, 1, 5000, 3, 20_001]).await;
        assert_eq!(whole, cut);
        assert_eq!(whole.rows, 60_000);
    }
}

#[tokio::test]
async fn values_with_the_same_text_have_different_hashes() {
    let folder = tempfile::tempdir().unwrap();
    let (destination, schema) = (folder_destination(folder.path()), small_schema());
    let row = |note: Value| vec![Value::Int(1), Value::Null, Value::Null, note];
    let other = vec![Value::Null, Value::Null, Value::Null, "a".into()];
    let mut seen = Vec::new();
    for rows in [
        vec![row("".into())],
        vec![row(Value::Null)],
        vec![row("ab".into()), row("c".into())],
        vec![row("a".into()), row("bc".into())],
        vec![row("abc".into()), row("".into())],
        vec![row("abc".into()), row(Value::Null)],
        vec![row("a".into()), other.clone()],
        vec![other, row("a".into())],
    ] {
        let written = write(&destination, &schema, Output::of(Format::Csv), &rows, &[]).await;
        assert!(!seen.contains(&written.content_hash), "{rows:?}");
        seen.push(written.content_hash);
    }
}

#[tokio::test]
async fn the_hash_is_stable_between_versions() {
    let folder = tempfile::tempdir().unwrap();
    let written = crate::common::write_difficult_rows(
        &folder_destination(folder.path()),
        "x",
        Output::of(Format::Parquet),
    )
    .await;
    // The manifests of two nights must be comparable.
    let hash = "5f3d881f1d7e474d46bf62a0af863aa23315dc12b42d093971b3054f88ff476a";
    assert_eq!(written.content_hash, hash);
}
