//! What a database says of a table: its columns, key and indexes.

use crate::Value;
use serde::{Deserialize, Serialize};

/// A table or query of the source, as the database describes it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Table {
    /// The name as configured.
    pub name: String,
    /// Its columns in order.
    pub columns: Vec<Column>,
    /// The primary key's columns; empty when there is none.
    pub primary_key: Vec<String>,
    /// Its usable indexes, the primary key's among them. Partial indexes are left out.
    pub indexes: Vec<Index>,
    /// About how many rows it has.
    pub estimated_rows: u64,
    /// Whether an UPDATE touches every row that its condition finds: there is no trigger, rule,
    /// row security or partition that could pass one over.
    pub plain: bool,
    /// Whether a record may have columns that are not listed here, as in DynamoDB, which knows
    /// those of its keys and indexes only.
    pub open: bool,
    /// Columns that the schema lets be null although no row had a null when the table was
    /// described, as in most primary keys of SQLite. Planning looks at the rows again.
    pub unchecked_nulls: Vec<String>,
    /// The tables that inherit from this one (PostgreSQL). No index is unique across them.
    pub children: Vec<String>,
}

/// One column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The kind of values it holds.
    pub kind: ColumnType,
    /// The type as the database writes it, for casts: `numeric(12,2)`.
    pub sql_type: String,
    /// Whether it may hold nulls.
    pub nullable: bool,
}

/// One index.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// Its columns in order.
    pub columns: Vec<String>,
    /// Whether it allows no two equal rows.
    pub unique: bool,
}

/// The kinds of values that Windlass tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// Booleans.
    Bool,
    /// Integers.
    Int,
    /// Binary floating point.
    Float,
    /// Exact decimals.
    Numeric,
    /// Text.
    Text,
    /// UUIDs.
    Uuid,
    /// Dates.
    Date,
    /// Timestamps, with or without a zone.
    Timestamp,
    /// Bytes.
    Bytes,
    /// JSON documents.
    Json,
    /// Anything else, carried as text.
    Other,
}

impl Table {
    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// An index that begins with exactly these columns, in this order.
    pub fn index_on<'a>(&'a self, columns: &[&str]) -> Option<&'a Index> {
        self.indexes.iter().find(|index| {
            index.columns.len() >= columns.len()
                && index.columns.iter().zip(columns).all(|(have, want)| have == want)
        })
    }

    /// Whether the schema promises that none of these columns is ever null.
    pub fn is_never_null(&self, columns: &[&str]) -> bool {
        columns.iter().all(|name| {
            self.column(name).is_some_and(|column| !column.nullable)
                && !self.unchecked_nulls.iter().any(|unchecked| unchecked == name)
        })
    }

    /// Whether these columns together are unique.
    pub fn is_unique(&self, columns: &[&str]) -> bool {
        self.indexes.iter().any(|index| {
            index.unique && index.columns.iter().all(|c| columns.contains(&c.as_str()))
        })
    }
}

impl ColumnType {
    /// Reads a value that a request writes for a column of this type, so that a wrong one is
    /// refused at the door and not by the database in the night.
    pub fn read(self, json: &serde_json::Value) -> Result<Value, String> {
        let text = match json {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Number(number) => number.to_string(),
            serde_json::Value::Bool(value) => value.to_string(),
            other if self == ColumnType::Bytes => {
                return match Value::from_json(other.clone()) {
                    bytes @ Value::Bytes(_) => Ok(bytes),
                    _ => Err(format!("{other} is not bytes, such as {{\"$bytes\":\"0aff\"}}")),
                };
            }
            other => return Err(format!("{other} is not a single value")),
        };
        let wrong = |example: &str| format!("`{text}` is not {example}");
        Ok(match self {
            ColumnType::Int => {
                Value::Int(text.parse().map_err(|_| wrong("an integer, such as 2024"))?)
            }
            ColumnType::Float => {
                Value::Float(text.parse().map_err(|_| wrong("a number, such as 1.5"))?)
            }
            ColumnType::Bool => Value::Bool(text.parse().map_err(|_| wrong("`true` or `false`"))?),
            ColumnType::Numeric if !is_decimal(&text) => {
                return Err(wrong("a decimal number, such as 12.50"));
            }
            ColumnType::Uuid => {
                Value::Text(uuid::Uuid::parse_str(&text).map_err(|_| wrong("a UUID"))?.to_string())
            }
            ColumnType::Date if text.parse::<chrono::NaiveDate>().is_err() => {
                return Err(wrong("a date, such as 2025-01-31"));
            }
            ColumnType::Timestamp if !is_timestamp(&text) => {
                return Err(wrong("a timestamp, such as 2025-01-31T03:00:00Z"));
            }
            _ => Value::Text(text),
        })
    }
}

fn is_decimal(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut dots = 0;
    let only_digits = digits.chars().all(|c| {
        c.is_ascii_digit()
            || (c == '.' && {
                dots += 1;
                true
            })
    });
    only_digits && dots <= 1 && digits.chars().any(|c| c.is_ascii_digit())
}

fn is_timestamp(text: &str) -> bool {
    chrono::DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1)).is_ok()
        || text.replacen(' ', "T", 1).parse::<chrono::NaiveDateTime>().is_ok()
        || chrono::DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f%#z").is_ok()
        || text.parse::<chrono::NaiveDate>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn right_values_are_read_and_wrong_ones_refused_with_an_example() {
        for (kind, right, wrong) in [
            (ColumnType::Int, json!("2024"), json!("twenty")),
            (ColumnType::Bool, json!(true), json!("maybe")),
            (ColumnType::Numeric, json!("-12.50"), json!("1.2.3")),
            (ColumnType::Uuid, json!("018f3c2a-0000-7000-8000-000000000001"), json!("018f")),
            (ColumnType::Date, json!("2025-01-31"), json!("2025-02-31")),
            (ColumnType::Timestamp, json!("2025-01-31 03:00:00+00"), json!("yesterday")),
            (ColumnType::Bytes, json!({"$bytes": "0aff"}), json!(["x"])),
            (ColumnType::Text, json!("x"), json!(["x"])),
        ] {
            assert!(kind.read(&right).is_ok(), "{kind:?} {right}");
            assert!(kind.read(&wrong).is_err(), "{kind:?} {wrong}");
        }
    }

    #[test]
    fn an_index_serves_only_in_its_own_order() {
        let index = Index { columns: vec!["a".into(), "b".into()], unique: true };
        let table = Table { indexes: vec![index], ..Table::default() };
        assert!(table.index_on(&["a"]).is_some());
        assert!(table.index_on(&["b"]).is_none());
        assert!(table.is_unique(&["b", "a"]));
        assert!(!table.is_unique(&["a"]));
    }
}
