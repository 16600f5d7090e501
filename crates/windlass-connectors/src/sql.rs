//! Generated SQL: text and bound values grow together, and the dialects differ here only.

use crate::array::Array;
use crate::literal;
use crate::mysql::{cast, compared};
use std::borrow::Cow;
use windlass_core::{Column, ColumnType, Value};

/// The ways of write_tx names, placeholders, lists and values.
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
    /// Why a value could not be written.
    refused: Option<&'static str>,
}

/// A value bound to a statement.
#[derive(Debug)]
pub(crate) enum Bind<'a> {
    /// One value, of the type that a cast or the context gives it.
    Value(Cow<'a, Value>),
    /// A typed array (PostgreSQL).
    Array(Array<'a>),
}

/// A statement of the user's as it stands inside another one.
pub(crate) fn inner(sql: &str) -> &str {
    sql.trim().trim_end_matches(';')
}

impl<'a> Sql<'a> {
    /// A statement that begins with this text.
    pub(crate) fn new(dialect: Dialect, text: impl Into<String>) -> Sql<'a> {
        Sql { dialect, text: text.into(), binds: Vec::new(), literal: false, refused: None }
    }

    /// The same with values written into the text as quoted literals: PostgreSQL's COPY cannot
    /// bind. Their type comes from the cast or the context, as that of a bound value does.
    pub(crate) fn with_literals(dialect: Dialect, text: impl Into<String>) -> Sql<'a> {
        Sql { literal: true, ..Sql::new(dialect, text) }
    }

    /// The text of a statement with literals, if all of them could be written.
    pub(crate) fn literal_text(&self) -> Result<&str, windlass_drivers::Error> {
        match self.refused {
            None => Ok(&self.text),
            Some(why) => Err(windlass_drivers::Error::new(windlass_drivers::Class::Data, why)),
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

    /// Adds a placeholder whose type the context gives.
    pub(crate) fn bind(&mut self, value: Cow<'a, Value>) -> &mut Self {
        if self.literal {
            return self.push_literal(literal::of_value(&value));
        }
        self.binds.push(Bind::Value(value));
        let number = self.binds.len();
        match self.dialect {
            Dialect::Postgres => self.push(format!("${number}")),
            Dialect::Sqlite => self.push(format!("?{number}")),
            // By their order alone.
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

    /// Adds `= value` or the dialect's way of saying that a column equals one of several values.
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

    /// Adds that the bytes of an expression's text are those of one of the values.
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

    /// Adds a SELECT of rows that travel as one JSON document, so that their number meets no limit
    /// of bound values. What SQLite would not read back exactly as it was travels in a form that
    /// `windlass_cell` reads.
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

/// A value in a document for SQLite. Its numbers with a fraction would be read a bit too large or
/// too small, and a text ends at a zero byte: their bits and bytes are what `windlass_cell` takes.
fn cell(value: &Value) -> serde_json::Value {
    match value {
        Value::Float(value) => serde_json::json!({ "float": value.to_bits().cast_signed() }),
        Value::Bytes(bytes) => serde_json::json!({ "bytes": hex::encode(bytes) }),
        Value::Text(text) if text.contains('\0') => {
            serde_json::json!({ "text": hex::encode(text) })
        }
        // As it is bound: its text.
        Value::Json(json) => json.to_string().into(),
        other => other.to_json(),
    }
}

impl Dialect {
    /// How a column is selected so that its value arrives whole and always as the same text.
    /// A timestamp with a zone is written in UTC by an expression and not by `SET TimeZone`, which
    /// would change what the user's own conditions mean.
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

/// Whether a collation or the type of a column may hold texts equal that differ: `acme`, `ACME` and
/// `acme ` under MySQL's default, citext, `char(n)`, NOCASE.
pub(crate) fn has_collation(column: Option<&Column>) -> bool {
    column.is_none_or(|column| matches!(column.kind, ColumnType::Text | ColumnType::Other))
}

impl Dialect {
    /// The text of an expression, compared byte by byte whatever its collation.
    pub(crate) fn bytes(self, expression: &str) -> String {
        let (before, after) = self.around_bytes();
        format!("{before}{expression}{after}")
    }

    /// MySQL converts first, since a column may have another character set than the connection.
    /// Its binary collations would ignore spaces at the end.
    fn around_bytes(self) -> (&'static str, &'static str) {
        match self {
            Dialect::Postgres => ("(", "::text COLLATE pg_catalog.\"C\")"),
            Dialect::Sqlite => ("CAST(", " AS BLOB)"),
            Dialect::Mysql => ("CAST(CONVERT(", " USING utf8mb4) AS BINARY)"),
        }
    }
}

impl Dialect {
    /// An identifier, quoted: whatever it holds, it is a name and nothing else.
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

    /// A column with the alias of its table when there is one. The alias stands unquoted, as it
    /// does in the user's statement, so that the database folds the case of both alike; the
    /// template lets only names of letters, digits and `_` through.
    pub(crate) fn qualified(self, column: &str, alias: Option<&str>) -> String {
        match alias {
            Some(alias) => format!("{alias}.{}", self.quote(column)),
            None => self.quote(column),
        }
    }
}

/// The type that PostgreSQL casts a column's values to. Without a decimal's digits: rounded to
/// them, a value would equal another one.
pub(crate) fn cast_type(column: &Column) -> &str {
    if column.sql_type.starts_with("numeric(") { "numeric" } else { &column.sql_type }
}

/// Whether a column of PostgreSQL's holds arrays: an array of those is no type of its own, so that a
/// list of texts cannot be cast to it as a whole.
pub(crate) fn is_array(column: Option<&Column>) -> bool {
    column.is_some_and(|column| column.sql_type.ends_with("[]"))
}

/// An identifier, quoted as the standard has it.
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
