//! Builds SQL statements with their bound values, and contains the differences between the dialects.

use crate::array::Array;
use crate::literal;
use crate::mysql::{cast, compared};
use std::borrow::Cow;
use windlass_core::{Column, ColumnType, Value};

/// How names, placeholders, lists and values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Postgres,
    Sqlite,
    Mysql,
}

/// A statement under construction.
#[derive(Debug)]
pub(crate) struct Sql<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) text: String,
    pub(crate) binds: Vec<Bind<'a>>,
    /// Whether values are written into the text, for a statement that cannot bind.
    literal: bool,
    /// Why a value could not be written as a literal.
    refused: Option<&'static str>,
}

/// A value bound to a statement.
#[derive(Debug)]
pub(crate) enum Bind<'a> {
    /// One value, whose type a cast or the context determines.
    Value(Cow<'a, Value>),
    /// A typed array (PostgreSQL).
    Array(Array<'a>),
}

/// A user's statement without a semicolon, for use inside another statement.
pub(crate) fn inner(sql: &str) -> &str {
    sql.trim().trim_end_matches(';')
}

impl<'a> Sql<'a> {
    /// A statement that begins with this text.
    pub(crate) fn new(dialect: Dialect, text: impl Into<String>) -> Sql<'a> {
        Sql { dialect, text: text.into(), binds: Vec::new(), literal: false, refused: None }
    }

    /// The same with values written as quoted literals, since PostgreSQL's COPY cannot bind values. A
    /// cast or the context determines their type.
    pub(crate) fn with_literals(dialect: Dialect, text: impl Into<String>) -> Sql<'a> {
        Sql { literal: true, ..Sql::new(dialect, text) }
    }

    /// The text of a statement with literals. Fails if a value could not be written.
    pub(crate) fn literal_text(&self) -> Result<&str, windlass_drivers::Error> {
        match self.refused {
            None => Ok(&self.text),
            Some(why) => Err(windlass_drivers::Error::new(windlass_drivers::ErrorClass::Data, why)),
        }
    }

    fn push_literal(&mut self, literal: Result<String, &'static str>) -> &mut Self {
        match literal {
            Ok(literal) => self.push(literal),
            Err(why) => {
                self.refused = Some(why);
                self
            }
        }
    }

    /// Adds text.
    pub(crate) fn push(&mut self, text: impl AsRef<str>) -> &mut Self {
        self.text.push_str(text.as_ref());
        self
    }

    /// Adds a placeholder whose type the context determines.
    pub(crate) fn bind(&mut self, value: Cow<'a, Value>) -> &mut Self {
        if self.literal {
            return self.push_literal(literal::of_value(&value));
        }
        self.binds.push(Bind::Value(value));
        let number = self.binds.len();
        match self.dialect {
            Dialect::Postgres => self.push(format!("${number}")),
            Dialect::Sqlite => self.push(format!("?{number}")),
            // MySQL numbers placeholders by their order.
            Dialect::Mysql => self.push("?"),
        }
    }

    /// Adds a placeholder for a value of this column's type.
    pub(crate) fn bind_as(&mut self, value: Cow<'a, Value>, column: Option<&Column>) -> &mut Self {
        match (self.dialect, column) {
            (Dialect::Postgres, Some(column)) => {
                self.bind(value).push("::").push(cast_type(column))
            }
            (Dialect::Mysql, Some(column)) => {
                let value = compared(&value, column);
                let (before, after) = cast(&value, column);
                self.push(before).bind(Cow::Owned(value)).push(after)
            }
            _ => self.bind(value),
        }
    }

    /// Adds `= value`, or the dialect's form of `IN (values)`.
    pub(crate) fn is_one_of(&mut self, mut values: Vec<Value>, column: Option<&Column>) {
        if values.len() == 1 {
            self.push(" = ");
            let value = values.swap_remove(0);
            self.bind_as(Cow::Owned(value), column);
            return;
        }
        match self.dialect {
            Dialect::Postgres => {
                let array = Array::own(values, column);
                if let Some(column) = column.filter(|column| is_array(Some(column))) {
                    let listed = format!(" IN (SELECT one::{} FROM unnest(", cast_type(column));
                    self.push(listed).array(array).push(") AS listed(one))");
                    return;
                }
                self.push(" = ANY(");
                self.array(array);
                if let Some(column) = column {
                    self.push("::").push(cast_type(column)).push("[]");
                }
                self.push(")");
            }
            Dialect::Sqlite => {
                let rows = values.iter().map(std::slice::from_ref);
                self.push(" IN (");
                self.json_rows(rows, 1);
                self.push(")");
            }
            Dialect::Mysql if values.is_empty() => {
                self.push(" IN (NULL)");
            }
            Dialect::Mysql => {
                for (n, value) in values.into_iter().enumerate() {
                    self.push(if n > 0 { ", " } else { " IN (" });
                    self.bind_as(Cow::Owned(value), column);
                }
                self.push(")");
            }
        }
    }

    /// Adds a comparison by bytes of an expression's text with these values.
    pub(crate) fn is_exactly_one_of(&mut self, expression: &str, values: &[Value]) {
        let dialect = self.dialect;
        self.push(dialect.bytes(expression));
        for (n, value) in values.iter().enumerate() {
            self.push(if n > 0 { ", " } else { " IN (" });
            let text = value.to_text().map_or(Value::Null, Value::Text);
            let (before, after) = dialect.around_bytes();
            self.push(before).bind(Cow::Owned(text)).push(after);
        }
        self.push(if values.is_empty() { " IN (NULL)" } else { ")" });
    }

    /// Adds a placeholder for a typed array.
    pub(crate) fn array(&mut self, array: Array<'a>) -> &mut Self {
        let kind = array.sql_type();
        if self.literal {
            return self.push_literal(literal::of_array(&array)).push("::").push(kind);
        }
        self.binds.push(Bind::Array(array));
        self.text.push_str(&format!("${}::{kind}", self.binds.len()));
        self
    }

    /// Adds a SELECT of rows from one JSON document, which is not limited by the number of bound values.
    /// Values that SQLite's JSON functions would change are encoded for `windlass_cell`.
    pub(crate) fn json_rows<'r>(&mut self, rows: impl Iterator<Item = &'r [Value]>, width: usize) {
        let mut encoded = vec![false; width];
        let mut json = String::from("[");
        for row in rows {
            if json.len() > 1 {
                json.push(',');
            }
            let mut cells = Vec::with_capacity(width);
            for (value, encoded) in row.iter().zip(&mut encoded) {
                let cell = cell(value);
                *encoded |= cell.is_object();
                cells.push(cell);
            }
            json.push_str(&serde_json::Value::Array(cells).to_string());
        }
        json.push(']');
        let columns: Vec<String> = (0..width)
            .map(|n| match encoded[n] {
                false => format!("json_extract(value, '$[{n}]')"),
                true => format!(
                    "CASE json_type(value, '$[{n}]') WHEN 'object' \
                     THEN windlass_cell(json_extract(value, '$[{n}]')) \
                     ELSE json_extract(value, '$[{n}]') END"
                ),
            })
            .collect();
        self.push(format!("SELECT {} FROM json_each(", columns.join(", ")));
        self.bind(Cow::Owned(Value::Text(json)));
        self.push(")");
    }
}

/// A value in a JSON document for SQLite. SQLite's JSON functions round fractions and end texts at a zero
/// byte, so these values are encoded as bits or bytes, which `windlass_cell` decodes.
fn cell(value: &Value) -> serde_json::Value {
    match value {
        Value::Float(value) => serde_json::json!({ "float": value.to_bits().cast_signed() }),
        Value::Bytes(bytes) => serde_json::json!({ "bytes": hex::encode(bytes) }),
        Value::Text(text) if text.contains('\0') => {
            serde_json::json!({ "text": hex::encode(text) })
        }
        // As text, like a bound value.
        Value::Json(json) => json.text().into(),
        other => other.to_json(),
    }
}

impl Dialect {
    /// An expression that selects a column without loss and always in the same text form. Timestamps are
    /// converted to UTC by the expression instead of by `SET TimeZone`, which would change the meaning
    /// of the user's own conditions.
    pub(crate) fn render(self, column: &Column, expression: &str) -> String {
        use ColumnType as T;
        match (self, column.kind) {
            (Dialect::Sqlite | Dialect::Mysql, _)
            | (_, T::Bool | T::Int | T::Float | T::Text | T::Bytes | T::Json) => {
                expression.to_owned()
            }
            (_, T::Timestamp) if column.sql_type == "timestamp with time zone" => format!(
                "CASE WHEN {expression} BETWEEN '0001-01-01 00:00:00+00' \
                 AND '9999-12-31 00:00:00+00' \
                 THEN ({expression} AT TIME ZONE 'UTC')::text || '+00' \
                 ELSE {expression}::text END"
            ),
            _ => format!("{expression}::text"),
        }
    }
}

/// Whether different texts of a column may compare as equal, by its collation or its type: `acme`, `ACME`
/// and `acme ` by MySQL's default, citext, `char(n)`, NOCASE.
pub(crate) fn has_collation(column: Option<&Column>) -> bool {
    column.is_none_or(|column| matches!(column.kind, ColumnType::Text | ColumnType::Other))
}

impl Dialect {
    /// The text of an expression, compared by bytes regardless of its collation.
    pub(crate) fn bytes(self, expression: &str) -> String {
        let (before, after) = self.around_bytes();
        format!("{before}{expression}{after}")
    }

    /// MySQL converts first, since the character set of the column may differ from that of the
    /// connection. MySQL's binary collations would ignore trailing spaces.
    fn around_bytes(self) -> (&'static str, &'static str) {
        match self {
            Dialect::Postgres => ("(", "::text COLLATE pg_catalog.\"C\")"),
            Dialect::Sqlite => ("CAST(", " AS BLOB)"),
            Dialect::Mysql => ("CAST(CONVERT(", " USING utf8mb4) AS BINARY)"),
        }
    }
}

impl Dialect {
    /// Quotes an identifier.
    pub(crate) fn quote(self, name: &str) -> String {
        match self {
            Dialect::Mysql => format!("`{}`", name.replace('`', "``")),
            Dialect::Postgres | Dialect::Sqlite => quote(name),
        }
    }

    /// A table's name, `schema.table` quoted part by part.
    pub(crate) fn quote_table(self, name: &str) -> String {
        name.split('.').map(|part| self.quote(part)).collect::<Vec<_>>().join(".")
    }

    /// Columns for a list, quoted, each with the alias of its table when there is one.
    pub(crate) fn quote_columns(self, columns: &[String], alias: Option<&str>) -> Vec<String> {
        columns.iter().map(|column| self.qualified(column, alias)).collect()
    }

    /// A column with the alias of its table if there is one. The alias is not quoted, as in the user's
    /// statement, so that the database folds the case of both alike. The template accepts only aliases
    /// of letters, digits and `_`.
    pub(crate) fn qualified(self, column: &str, alias: Option<&str>) -> String {
        match alias {
            Some(alias) => format!("{alias}.{}", self.quote(column)),
            None => self.quote(column),
        }
    }
}

/// The type to which PostgreSQL casts a column's values. Without the precision of a decimal: a rounded
/// value would equal another one.
pub(crate) fn cast_type(column: &Column) -> &str {
    if column.sql_type.starts_with("numeric(") { "numeric" } else { &column.sql_type }
}

/// Whether a column of PostgreSQL has an array type. There are no arrays of arrays, so a list of texts
/// cannot be cast to a list of its values.
pub(crate) fn is_array(column: Option<&Column>) -> bool {
    column.is_some_and(|column| column.sql_type.ends_with("[]"))
}

/// Quotes an identifier as in standard SQL.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A table's name, `schema.table` quoted part by part.
pub(crate) fn quote_table(name: &str) -> String {
    Dialect::Postgres.quote_table(name)
}

/// Columns for a list, quoted, each with the alias of its table when there is one.
pub(crate) fn quote_columns(columns: &[String], alias: Option<&str>) -> Vec<String> {
    Dialect::Postgres.quote_columns(columns, alias)
}

/// One expression, or several in parentheses.
pub(crate) fn row(expressions: &[String]) -> String {
    match expressions {
        [single] => single.clone(),
        several => format!("({})", several.join(", ")),
    }
}
