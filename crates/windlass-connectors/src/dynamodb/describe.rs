//! Describes tables. DynamoDB knows the keys and indexes of a table and the types of their attributes,
//! but no other attributes.

use super::DynamodbConnection;
use crate::Result;
use std::collections::HashSet;
use windlass_core::problem::{Code, Problem};
use windlass_core::{Column, ColumnType, Index, Table};
use windlass_drivers::dynamodb::sdk::types::{
    IndexStatus, KeySchemaElement, KeyType, Projection, ProjectionType, ScalarAttributeType,
    TableDescription,
};
use windlass_drivers::{Error, ErrorClass};

/// The keys and indexes of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TableSchema {
    pub(super) key: Vec<String>,
    /// The indexes by which the values of a filter can be looked up, the table itself first.
    pub(super) indexes: Vec<LookupIndex>,
}

/// The table itself, or one of its indexes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LookupIndex {
    /// `None` for the table itself.
    pub(super) name: Option<String>,
    pub(super) columns: Vec<String>,
    /// The attributes that it includes. `None` means all of them.
    projected: Option<HashSet<String>>,
}

impl LookupIndex {
    /// Whether it includes this attribute, so that a condition on it can be checked in the index.
    pub(super) fn projects(&self, column: &str) -> bool {
        self.projected.as_ref().is_none_or(|projected| projected.contains(column))
    }
}

/// Describes the table of a source.
pub(super) async fn describe(
    data: &DynamodbConnection,
    source: &windlass_core::Source,
) -> Result<Table> {
    let Some(name) = &source.table else {
        let detail = "is not supported by DynamoDB; name a table in source.table";
        return Err(Problem::field(Code::Source, "source.query", detail).into());
    };
    let described = describe_table(data, name).await?;
    let schema = schema(&described);
    check_projections(source, &schema)?;
    let table = Table {
        name: name.clone(),
        columns: columns(&described),
        primary_key: schema.key.clone(),
        indexes: schema.indexes.iter().map(index).collect(),
        estimated_rows: described.item_count().and_then(|n| n.try_into().ok()).unwrap_or(0),
        open: true,
        ..Table::default()
    };
    data.remember_schema(name, schema);
    Ok(table)
}

/// Refuses an index without the attributes of `source.match`: a query of it would also return the keys of other
/// record types.
fn check_projections(source: &windlass_core::Source, schema: &TableSchema) -> Result<()> {
    for (filter, column) in &source.filters {
        let used = schema.indexes.iter().find(|index| index.columns.first() == Some(column));
        let Some(LookupIndex { name: Some(name), .. }) = used else { continue };
        let lacks = |attribute: &&String| used.is_some_and(|index| !index.projects(attribute));
        if let Some(attribute) = source.matches.keys().find(lacks) {
            let detail = format!(
                "`{attribute}` is not in the index `{name}`, in which the filter `{filter}` looks up keys; \
                 include it in the projection of the index"
            );
            return Err(Problem::field(Code::Source, "source.match", detail).into());
        }
    }
    Ok(())
}

/// Fails with the name of the table where it does not exist.
pub(super) async fn describe_table(
    data: &DynamodbConnection,
    name: &str,
) -> Result<TableDescription> {
    let described = data.client.describe_table().table_name(name).send().await;
    let described = described.map_err(|error| with_table_name(name, error.into()))?;
    let missing = || Error::new(ErrorClass::Definition, format!("there is no table `{name}`"));
    Ok(described.table.ok_or_else(missing)?)
}

/// Adds the table's name, which DynamoDB leaves out of the error for a missing table.
pub(super) fn with_table_name(table: &str, error: Error) -> Error {
    match error.class {
        ErrorClass::Definition => {
            Error { message: format!("there is no table `{table}`"), ..error }
        }
        _ => error,
    }
}

/// The names of all tables.
pub(super) async fn tables(data: &DynamodbConnection) -> Result<Vec<String>> {
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

pub(super) fn schema(table: &TableDescription) -> TableSchema {
    let key = key(table.key_schema());
    let own = LookupIndex { name: None, columns: key.clone(), projected: None };
    let mut others: Vec<LookupIndex> = Vec::new();
    for index in table.global_secondary_indexes() {
        let hashes = index.key_schema().iter().filter(|part| part.key_type == KeyType::Hash);
        // An index that is being filled lacks records, and one with several hash attributes cannot be
        // queried by one of them.
        let is_ready = index.index_status() == Some(&IndexStatus::Active);
        let is_filled = !index.backfilling().unwrap_or(false);
        if hashes.count() == 1 && is_ready && is_filled {
            let columns = self::key(index.key_schema());
            let projected = projected(index.projection(), &columns, &key);
            others.push(LookupIndex {
                name: index.index_name().map(str::to_owned),
                columns,
                projected,
            });
        }
    }
    // Prefer indexes that include all attributes, since they can check every condition.
    others.sort_by_key(|index| index.projected.is_some());
    TableSchema { key, indexes: std::iter::once(own).chain(others).collect() }
}

fn key(schema: &[KeySchemaElement]) -> Vec<String> {
    let of = |kind: KeyType| schema.iter().filter(move |part| part.key_type == kind);
    of(KeyType::Hash).chain(of(KeyType::Range)).map(|part| part.attribute_name.clone()).collect()
}

fn projected(
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
    let key_position = |column: &Column| key.iter().position(|name| *name == column.name);
    columns.sort_by_key(|column| (key_position(column).unwrap_or(usize::MAX), column.name.clone()));
    columns
}

fn index(lookup: &LookupIndex) -> Index {
    Index { columns: lookup.columns.clone(), unique: lookup.name.is_none() }
}
