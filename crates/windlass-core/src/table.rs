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
    /// The columns that may hold values of any type, whatever they are declared as, as in SQLite.
    pub any_type: Vec<String>,
    /// Columns that the schema lets be null although no row had a null when the table was
    /// described, as in most primary keys of SQLite. Planning looks at the rows again.
    pub unchecked_nulls: Vec<String>,
    /// The tables that inherit from this one (PostgreSQL). No index is unique across them.
    pub children: Vec<String>,
    /// Whether every row has the system column `xmin`, as in tables of PostgreSQL. Views and foreign
    /// tables have none.
    pub has_xmin: bool,
    /// A column that an UPDATE may set to its own value to write the row again. `None` where the
    /// database does not write a row that stays the same, as MySQL.
    pub rewritable: Option<String>,
    /// Columns of types without a binary form (PostgreSQL). They are compared by their text.
    pub text_only: Vec<String>,
    /// Generated columns whose values an UPDATE ignores without an error (MariaDB).
    pub generated: Vec<String>,
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

    /// Reads what a request writes for a key column, so that a key as it is stored is found again.
    pub fn read_key(&self, name: &str, json: &serde_json::Value) -> Result<Value, String> {
        let Some(column) = self.column(name) else { return ColumnType::Other.read(json) };
        if !self.any_type.iter().any(|any| any == name) {
            return column.read(json);
        }
        let as_stored = || match Value::from_json(json.clone()) {
            Value::Null | Value::Json(_) => Err(format!("{json} is not a single value")),
            value => Ok(value),
        };
        match column.kind {
            // A number does not equal its text here: the declared type makes neither the other.
            ColumnType::Other | ColumnType::Bytes => as_stored(),
            kind => kind.read(json).or_else(|_| as_stored()),
        }
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

impl Column {
    /// Reads a value that a request writes for this column: what its kind takes, and what its own
    /// type holds beyond that.
    pub fn read(&self, json: &serde_json::Value) -> Result<Value, String> {
        let number = || match json {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        self.kind.read(json).or_else(|refused| {
            let (text, sql_type) = (number().unwrap_or_default(), &self.sql_type);
            match self.kind {
                // MySQL's booleans are small integers.
                ColumnType::Bool if sql_type.starts_with("tinyint") => {
                    text.parse().map(Value::Int).map_err(|_| refused)
                }
                ColumnType::Int if sql_type.contains("unsigned") || sql_type.starts_with("bit") => {
                    text.parse::<u64>().map(|_| Value::Text(text)).map_err(|_| refused)
                }
                _ => Err(refused),
            }
        })
    }
}

impl ColumnType {
    /// Reads a value that a request writes for a column of this type, so that a wrong one is
    /// refused at submit and not by the database while the job runs.
    pub fn read(self, json: &serde_json::Value) -> Result<Value, String> {
        let text = match json {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Number(number) => number.to_string(),
            serde_json::Value::Bool(value) => value.to_string(),
            other => match (self, Value::from_json(other.clone())) {
                (ColumnType::Bytes, bytes @ Value::Bytes(_)) => return Ok(bytes),
                (ColumnType::Bytes, _) => {
                    return Err(format!("{other} is not bytes, such as {{\"$bytes\":\"0aff\"}}"));
                }
                (ColumnType::Float, float @ Value::Float(_)) => return Ok(float),
                // As DynamoDB's numbers come that no float holds exactly.
                (ColumnType::Numeric, _) if other["$number"].is_string() => {
                    other["$number"].as_str().unwrap_or_default().to_owned()
                }
                _ => return Err(format!("{other} is not a single value")),
            },
        };
        let wrong = |example: &str| format!("`{text}` is not {example}");
        Ok(match self {
            ColumnType::Int => {
                Value::Int(text.parse().map_err(|_| wrong("an integer, such as 2024"))?)
            }
            ColumnType::Float => {
                Value::Float(float(&text).ok_or_else(|| wrong("a number, such as 1.5"))?)
            }
            ColumnType::Bool => Value::Bool(text.parse().map_err(|_| wrong("`true` or `false`"))?),
            ColumnType::Numeric if !is_decimal(&text) && !is_non_finite(&text) => {
                return Err(wrong("a decimal number, such as 12.50"));
            }
            ColumnType::Uuid => {
                Value::Text(uuid::Uuid::parse_str(&text).map_err(|_| wrong("a UUID"))?.to_string())
            }
            ColumnType::Date if !is_date(&text) => {
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

/// Whether it is one of PostgreSQL's words for what is beyond every number or date.
fn is_non_finite(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    matches!(text.as_str(), "nan" | "infinity" | "-infinity" | "inf" | "-inf")
}

/// A float, unless the text is a number beyond all floats, which would become infinite.
fn float(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() || is_non_finite(text))
}

fn is_date(text: &str) -> bool {
    is_infinite(text) || is_day(text.strip_suffix(" BC").unwrap_or(text))
}

fn is_infinite(text: &str) -> bool {
    matches!(text, "infinity" | "-infinity")
}

/// A day of any year that PostgreSQL has, which are more than chrono's.
fn is_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| !text.starts_with('+'));
    let (Some(year), Some(month), Some(day)) = (number(year), number(month), number(day)) else {
        return false;
    };
    // The calendar repeats itself every 400 years.
    let year = i32::try_from(year % 400).unwrap_or_default() + 2000;
    chrono::NaiveDate::from_ymd_opt(year, month, day).is_some()
}

fn is_timestamp(text: &str) -> bool {
    if is_infinite(text) {
        return true;
    }
    let text = text.strip_suffix(" BC").unwrap_or(text);
    let Some((day, time)) = text.split_once([' ', 'T']) else { return is_day(text) };
    // Years before standard time have offsets with seconds, which chrono does not read.
    let time = match time.rsplit_once(['+', '-']) {
        Some((_, offset)) if offset.len() == "00:00:00".len() => &time[..time.len() - 3],
        _ => time,
    };
    let text = format!("2000-01-01T{time}");
    is_day(day)
        && (chrono::DateTime::parse_from_rfc3339(&text).is_ok()
            || text.parse::<chrono::NaiveDateTime>().is_ok()
            || chrono::DateTime::parse_from_str(&text, "%Y-%m-%dT%H:%M:%S%.f%#z").is_ok())
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
            (ColumnType::Float, json!({"$float": "NaN"}), json!("1e400")),
            (ColumnType::Float, json!("-Infinity"), json!({"$float": "1"})),
            (ColumnType::Numeric, json!("NaN"), json!("NaN1")),
            (ColumnType::Numeric, json!({"$number": "0.1000"}), json!({"$number": 1})),
            (ColumnType::Date, json!("infinity"), json!("Infinity1")),
            (ColumnType::Date, json!("0044-03-15 BC"), json!("0044-13-15 BC")),
            (ColumnType::Date, json!("5874897-12-31"), json!("+2025-01-01")),
            (ColumnType::Timestamp, json!("-infinity"), json!("infinite")),
            (
                ColumnType::Timestamp,
                json!("4714-11-24 00:00:00+00 BC"),
                json!("0001-02-30 00:00:00 BC"),
            ),
            (
                ColumnType::Timestamp,
                json!("0044-03-15 09:18:59+09:18:59 BC"),
                json!("2025-01-01 x"),
            ),
            (
                ColumnType::Timestamp,
                json!("294276-12-31 23:59:59.999999"),
                json!("2025-01-01 25:00"),
            ),
        ] {
            assert!(kind.read(&right).is_ok(), "{kind:?} {right}");
            assert!(kind.read(&wrong).is_err(), "{kind:?} {wrong}");
        }
    }

    #[test]
    fn a_column_reads_what_its_own_type_holds() {
        let column = |kind, sql_type: &str| Column {
            name: "c".into(),
            kind,
            sql_type: sql_type.into(),
            nullable: false,
        };
        let greatest = json!(u64::MAX);
        let text = Value::Text(u64::MAX.to_string());
        assert_eq!(
            column(ColumnType::Int, "bigint(20) unsigned").read(&greatest),
            Ok(text.clone())
        );
        assert_eq!(column(ColumnType::Int, "bit(64)").read(&text.to_json()), Ok(text));
        assert!(column(ColumnType::Int, "bigint").read(&greatest).is_err());
        assert_eq!(column(ColumnType::Bool, "tinyint(1)").read(&json!(5)), Ok(Value::Int(5)));
        assert!(column(ColumnType::Bool, "boolean").read(&json!(5)).is_err());
    }

    #[test]
    fn a_column_of_any_type_reads_keys_as_they_are_stored() {
        let column = |name: &str, kind| Column {
            name: name.into(),
            kind,
            sql_type: String::new(),
            nullable: false,
        };
        let table = Table {
            columns: vec![column("any", ColumnType::Other), column("int", ColumnType::Int)],
            any_type: vec!["any".into(), "int".into()],
            ..Table::default()
        };
        assert_eq!(table.read_key("any", &json!(5)), Ok(Value::Int(5)));
        assert_eq!(table.read_key("any", &json!("5")), Ok(Value::from("5")));
        assert_eq!(table.read_key("any", &json!({"$bytes": "00"})), Ok(Value::Bytes(vec![0])));
        assert_eq!(table.read_key("int", &json!("5")), Ok(Value::Int(5)));
        assert_eq!(table.read_key("int", &json!("abc")), Ok(Value::from("abc")));
        assert!(table.read_key("int", &json!(["abc"])).is_err());
        let typed = Table { any_type: Vec::new(), ..table };
        assert!(typed.read_key("int", &json!("abc")).is_err());
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
