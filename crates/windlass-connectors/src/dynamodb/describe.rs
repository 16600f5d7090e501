//! What DynamoDB says of a table: its keys and indexes, with the types of their attributes. Of other
//! attributes it knows nothing.

use super::DynamodbData;
use crate::Result;
use std::collections::HashSet;
use windlass_core::problem::{Code, Problem};
use windlass_core::{Column, ColumnType, Index, Table};
use windlass_drivers::dynamodb::sdk::types::{
    IndexStatus, KeySchemaElement, KeyType, Projection, ProjectionType, ScalarAttributeType,
    TableDescription,
};
use windlass_drivers::{Class, Error};

/// A table as requests need it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    pub(super) key: Vec<String>,
    /// What a value of a filter can be looked up by, the table itself first.
    pub(super) indexes: Vec<Lookup>,
}

/// The table or one of its indexes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lookup {
    /// None for the table itself.
    pub(super) name: Option<String>,
    pub(super) columns: Vec<String>,
    /// The attributes it carries; all of them where it is none.
    carries: Option<HashSet<String>>,
}

impl Lookup {
    /// Whether a condition on this attribute can be checked here.
    pub(super) fn carries(&self, column: &str) -> bool {
        self.carries.as_ref().is_none_or(|carried| carried.contains(column))
    }
}

/// What the database says of a source.
pub(super) async fn describe(data: &DynamodbData, source: &windlass_core::Source) -> Result<Table> {
    let Some(name) = &source.table else {
        let detail = "DynamoDB has no queries to read records from; name a table in source.table";
        return Err(Problem::field(Code::Source, "source.query", detail).into());
    };
    let described = look(data, name).await?;
    let shape = shape(&described);
    let table = Table {
        name: name.clone(),
        columns: columns(&described),
        primary_key: shape.key.clone(),
        indexes: shape.indexes.iter().map(index).collect(),
        estimated_rows: described.item_count().and_then(|n| n.try_into().ok()).unwrap_or(0),
        open: true,
        ..Table::default()
    };
    data.learn(name, shape);
    Ok(table)
}

/// Asks for a table, or says that there is none.
pub(super) async fn look(data: &DynamodbData, name: &str) -> Result<TableDescription> {
    let described = data.client.describe_table().table_name(name).send().await;
    let described = described.map_err(|error| named(name, error.into()))?;
    let missing = || Error::new(Class::Definition, format!("there is no table `{name}`"));
    Ok(described.table.ok_or_else(missing)?)
}

/// An error with the table's name, which DynamoDB leaves out when it does not find it.
pub(super) fn named(table: &str, error: Error) -> Error {
    match error.class {
        Class::Definition => Error { message: format!("there is no table `{table}`"), ..error },
        _ => error,
    }
}

/// The names of the tables there are.
pub(super) async fn tables(data: &DynamodbData) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut after = None;
    loop {
        let page = data.client.list_tables().set_exclusive_start_table_name(after).send().await;
        let page = page.map_err(Error::from)?;
        names.extend(page.table_names.unwrap_or_default());
        after = page.last_evaluated_table_name;
        if after.is_none() {
            break;
        }
    }
    names.retain(|name| name != super::LEDGER);
    Ok(names)
}

pub(super) fn shape(table: &TableDescription) -> Shape {
    let key = key(table.key_schema());
    let own = Lookup { name: None, columns: key.clone(), carries: None };
    let mut others: Vec<Lookup> = Vec::new();
    for index in table.global_secondary_indexes() {
        let hashes = index.key_schema().iter().filter(|part| part.key_type == KeyType::Hash);
        // One that is being filled has not all records yet, and one by several values at once cannot
        // be asked for one of them.
        let is_ready = index.index_status() == Some(&IndexStatus::Active);
        let is_filled = !index.backfilling().unwrap_or(false);
        if hashes.count() == 1 && is_ready && is_filled {
            let columns = self::key(index.key_schema());
            let carries = carried(index.projection(), &columns, &key);
            others.push(Lookup { name: index.index_name().map(str::to_owned), columns, carries });
        }
    }
    // An index with everything on it can check every condition.
    others.sort_by_key(|index| index.carries.is_some());
    Shape { key, indexes: std::iter::once(own).chain(others).collect() }
}

fn key(schema: &[KeySchemaElement]) -> Vec<String> {
    let of = |kind: KeyType| schema.iter().filter(move |part| part.key_type == kind);
    of(KeyType::Hash).chain(of(KeyType::Range)).map(|part| part.attribute_name.clone()).collect()
}

fn carried(
    projection: Option<&Projection>,
    columns: &[String],
    key: &[String],
) -> Option<HashSet<String>> {
    let projection = projection?;
    if projection.projection_type() == Some(&ProjectionType::All) {
        return None;
    }
    let named = projection.non_key_attributes().iter();
    Some(named.chain(columns).chain(key).cloned().collect())
}

fn columns(table: &TableDescription) -> Vec<Column> {
    let key = key(table.key_schema());
    let mut columns: Vec<Column> = table
        .attribute_definitions()
        .iter()
        .map(|attribute| {
            let name = attribute.attribute_name.clone();
            let kind = match attribute.attribute_type {
                ScalarAttributeType::N => ColumnType::Numeric,
                ScalarAttributeType::B => ColumnType::Bytes,
                _ => ColumnType::Text,
            };
            let sql_type = attribute.attribute_type.as_str().to_owned();
            let nullable = !key.contains(&name);
            Column { name, kind, sql_type, nullable }
        })
        .collect();
    let place = |column: &Column| key.iter().position(|name| *name == column.name);
    columns.sort_by_key(|column| (place(column).unwrap_or(usize::MAX), column.name.clone()));
    columns
}

fn index(lookup: &Lookup) -> Index {
    Index { columns: lookup.columns.clone(), unique: lookup.name.is_none() }
}
