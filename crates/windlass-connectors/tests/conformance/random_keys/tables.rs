//! Random tables: the columns of their keys, how the keys are declared, and their rows.

use crate::harness::Db;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::BoxedStrategy;

/// A type of key columns.
pub(super) struct KeyColumn {
    sql_type: &'static str,
    /// SQL expressions of its values.
    values: BoxedStrategy<String>,
    /// Whether its values are too long for a key of several columns.
    alone: bool,
}

impl KeyColumn {
    pub(super) fn new(sql_type: &'static str, values: BoxedStrategy<String>) -> KeyColumn {
        KeyColumn { sql_type, values, alone: false }
    }

    /// The same for keys of one column.
    pub(super) fn alone(self) -> KeyColumn {
        KeyColumn { alone: true, ..self }
    }
}

/// How a job reaches the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A table with this primary key.
    Unique,
    /// A table with an index that is not unique.
    Repeated,
    /// A query over a table without such an index.
    Query,
    /// The values of a filter whose index has no key: chunks list their keys.
    ListedByFilter,
    /// The values of a filter whose index continues with the key.
    CutByFilter,
}

const SHAPES: [Shape; 5] =
    [Shape::Unique, Shape::Repeated, Shape::Query, Shape::ListedByFilter, Shape::CutByFilter];

impl Shape {
    pub(super) fn has_filter(self) -> bool {
        matches!(self, Shape::ListedByFilter | Shape::CutByFilter)
    }
}

/// A table and how it is cut.
#[derive(Clone, Debug)]
pub(super) struct RandomTable {
    pub(super) shape: Shape,
    /// The types of the key's columns.
    pub(super) types: Vec<&'static str>,
    /// The keys as SQL expressions.
    pub(super) rows: Vec<Vec<String>>,
    pub(super) segments: u32,
    pub(super) chunk_items: u32,
    pub(super) max_chunks: u32,
}

/// Tables with keys of these columns.
pub(super) fn random_tables(columns: Vec<KeyColumn>) -> impl Strategy<Value = RandomTable> {
    let several: Vec<usize> = (0..columns.len()).filter(|n| !columns[*n].alone).collect();
    let single = (0..columns.len()).prop_map(|n| vec![n]);
    let chosen = prop_oneof![3 => single, 1 => prop::collection::vec(select(several), 2..=3)];
    let rows_of = move |chosen: Vec<usize>| {
        let types = chosen.iter().map(|n| columns[*n].sql_type).collect::<Vec<_>>();
        let row: Vec<_> = chosen.iter().map(|n| columns[*n].values.clone()).collect();
        (Just(types), prop::collection::vec(row, 1..24))
    };
    (chosen.prop_flat_map(rows_of), select(&SHAPES[..]), 1..4u32, 1..7u32, 1..4u32).prop_map(
        |((types, rows), shape, segments, chunk_items, max_chunks)| RandomTable {
            shape,
            types,
            rows,
            segments,
            chunk_items,
            max_chunks,
        },
    )
}

impl RandomTable {
    /// The names of the key's columns.
    pub(super) fn key(&self) -> Vec<String> {
        (0..self.types.len()).map(|n| format!("k{n}")).collect()
    }

    /// Creates and fills the table `t`. A row whose key exists already by the database's opinion is left out if the key
    /// is unique. Every other row has the kind 1, the rest have 0.
    pub(super) async fn create(&self, db: &Db) {
        let key = self.key().join(", ");
        let columns: Vec<String> = self
            .types
            .iter()
            .enumerate()
            .map(|(n, kind)| format!("k{n} {kind} NOT NULL"))
            .collect();
        let primary = if self.shape == Shape::Unique { &key } else { "id" };
        let table = format!(
            "CREATE TABLE t (id BIGINT NOT NULL, kind INT NOT NULL, v INT NOT NULL, {}, \
             PRIMARY KEY ({primary}))",
            columns.join(", ")
        );
        let indexes: &[String] = &match self.shape {
            Shape::Unique | Shape::Query => vec![],
            Shape::Repeated => vec![key],
            Shape::ListedByFilter => vec![key, "kind".to_owned()],
            Shape::CutByFilter => vec![format!("kind, {key}"), key],
        };
        db.run("DROP TABLE IF EXISTS t").await;
        db.run(&table).await;
        for (n, columns) in indexes.iter().enumerate() {
            db.run(&format!("CREATE INDEX i{n} ON t ({columns})")).await;
        }
        let row =
            |(n, row): (usize, &Vec<String>)| format!("({n}, {}, 0, {})", n % 2, row.join(", "));
        let rows: Vec<String> = self.rows.iter().enumerate().map(row).collect();
        let insert = db.pick("INSERT", "INSERT OR IGNORE", "INSERT IGNORE");
        let end = db.pick("ON CONFLICT DO NOTHING", "", "");
        db.run(&format!("{insert} INTO t VALUES {} {end}", rows.join(", "))).await;
    }

    /// The source of the job type.
    pub(super) fn source(&self) -> String {
        let key = self.key();
        let source = match self.shape {
            Shape::Query => format!("query = \"SELECT id, kind, v, {} FROM t\"", key.join(", ")),
            _ => "table = \"t\"".to_owned(),
        };
        let filters =
            if self.shape.has_filter() { "source.filters = { kinds = \"kind\" }" } else { "" };
        format!("source.{source}\nsource.key = {key:?}\n{filters}")
    }
}
