//! The guard as SQL: an expression that is selected with every record that may be updated, and that the update
//! compares again. It reads the row exactly as the database has it, so that a change of any kind shows, and
//! an unchanged row never looks changed because a value lost something on its way through Windlass.

use crate::Scope;
use crate::sql::Dialect;
use windlass_core::{Column, ColumnType, Guard};
use windlass_drivers::{Error, ErrorClass};

/// The name of the expression in a SELECT.
pub(crate) const NAME: &str = "windlass_guard";

/// The guard's expression. `None` when the job updates no records, or has no guard.
pub(crate) fn expression(dialect: Dialect, scope: &Scope, alias: Option<&str>) -> Option<String> {
    let row = |guard| match guard {
        Guard::Xmin => format!("{}::text", dialect.qualified("xmin", alias)),
        _ => dialect.comparable(columns(dialect, scope, alias)),
    };
    let version = || scope.job_type.step.version.as_deref();
    Some(match scope.job_type.guard(&scope.table)? {
        Guard::Version if version_column(scope).is_some() => dialect.qualified(version()?, alias),
        // Writers that add one to NULL leave NULL, so a row without a version is compared as a whole.
        Guard::Version => {
            let (version, row) =
                (dialect.qualified(version()?, alias), row(scope.table.row_guard()));
            match dialect {
                Dialect::Postgres => format!("coalesce({version}::text, 'row ' || {row})"),
                Dialect::Sqlite => format!("coalesce({version}, {row})"),
                Dialect::Mysql => {
                    let version = dialect.comparable(format!("CAST({version} AS CHAR)"));
                    format!("COALESCE({version}, {row})")
                }
            }
        }
        guard => row(guard),
    })
}

/// The version column, if the guard is its value and nothing else.
pub(crate) fn version_column(scope: &Scope) -> Option<&Column> {
    let guard = scope.job_type.guard(&scope.table)?;
    let name = scope.job_type.step.version.as_deref().filter(|_| guard == Guard::Version)?;
    scope.table.column(name).filter(|column| !column.nullable)
}

/// The assignment that raises the version, in an UPDATE. NULL becomes 1. `None` without a version.
pub(crate) fn raise_version(
    dialect: Dialect,
    scope: &Scope,
    alias: Option<&str>,
) -> Option<String> {
    let name = scope.job_type.step.version.as_deref()?;
    let value = match scope.table.column(name) {
        Some(column) if !column.nullable => dialect.qualified(name, alias),
        _ => format!("coalesce({}, 0)", dialect.qualified(name, alias)),
    };
    // Only MySQL updates several tables at once, and wants to know which one has the column.
    let target = dialect.qualified(name, alias.filter(|_| dialect == Dialect::Mysql));
    Some(format!("{target} = {value} + 1"))
}

/// The error of an update without a guard.
pub(crate) fn missing(scope: &Scope) -> Error {
    let table = &scope.table.name;
    let message = format!(
        "update: nothing guards updates of `{table}` against other writers; name the version column in \
         step.version"
    );
    Error::new(ErrorClass::Definition, message)
}

/// A hash of all columns.
fn columns(dialect: Dialect, scope: &Scope, alias: Option<&str>) -> String {
    let table = &scope.table;
    let cell = |column: &Column| {
        let name = dialect.qualified(&column.name, alias);
        match dialect {
            Dialect::Postgres if table.text_only.contains(&column.name) => format!("{name}::text"),
            Dialect::Postgres | Dialect::Sqlite => name,
            Dialect::Mysql => format!("COALESCE(SHA2({}, 256), '')", mysql_bytes(column, name)),
        }
    };
    let cells: Vec<String> = table.columns.iter().map(cell).collect();
    match dialect {
        // The binary form depends on no setting of the session, and keeps every digit.
        Dialect::Postgres => {
            format!("encode(sha256(record_send(ROW({}))), 'hex')", cells.join(", "))
        }
        Dialect::Sqlite => {
            cells.chunks(SQLITE_MAX_ARGUMENTS - 1).fold("''".to_owned(), |hash, cells| {
                format!("windlass_hash({hash}, {})", cells.join(", "))
            })
        }
        // Column by column, since CONCAT returns NULL beyond max_allowed_packet.
        Dialect::Mysql => format!("SHA2(CONCAT_WS(',', {}), 256)", cells.join(", ")),
    }
}

/// SQLite's functions have at most this many arguments.
const SQLITE_MAX_ARGUMENTS: usize = 100;

/// What MySQL hashes of a column. The text of a FLOAT has six digits only, that of a DOUBLE all of them.
fn mysql_bytes(column: &Column, name: String) -> String {
    let sql_type = column.sql_type.as_str();
    let is_geometry = GEOMETRY.iter().any(|geometry| sql_type.starts_with(geometry));
    match column.kind {
        ColumnType::Float => format!("CAST({name} AS DOUBLE)"),
        _ if is_geometry => format!("HEX({name})"),
        _ => name,
    }
}

/// MySQL's types that are no strings although they are bytes.
const GEOMETRY: [&str; 8] = [
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geomcollection",
];

impl Dialect {
    /// A text that is compared by its characters, whatever the collation of the session.
    fn comparable(self, text: String) -> String {
        match self {
            Dialect::Mysql => format!("CONVERT({text} USING utf8mb4) COLLATE utf8mb4_bin"),
            Dialect::Postgres | Dialect::Sqlite => text,
        }
    }
}
