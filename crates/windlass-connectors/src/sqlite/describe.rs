//! Describes tables and queries by the schema.

use super::failed;
use crate::Result;
use crate::names::{duplicate_column, missing_table, user_tables};
use crate::predicate::query_relation;
use crate::sql::quote;
use rusqlite::{Connection, OptionalExtension as _, params};
use windlass_core::{Column, ColumnType, Index, Source, Table};

/// Describes the source's table or query.
pub(super) fn describe(connection: &Connection, source: &Source) -> Result<Table> {
    let Some(name) = &source.table else {
        let query = source.query.as_deref().unwrap_or_default();
        let columns = query_columns(connection, query)?;
        let any_type = columns.iter().map(|column| column.name.clone()).collect();
        return Ok(Table { name: "source".to_owned(), columns, any_type, ..Table::default() });
    };
    let Some(table) = Relation::find(connection, name)? else {
        return Err(missing_table(name, tables(connection)?).into());
    };
    let (mut columns, primary_key) = table.columns(connection)?;
    let (indexes, is_rowid) = table.indexes(connection, &columns, &primary_key)?;
    let mut unchecked_nulls = Vec::new();
    for column in &mut columns {
        if column.nullable && primary_key.contains(&column.name) {
            column.nullable = !is_rowid && table.has_null(connection, &column.name)?;
            if !column.nullable && !is_rowid {
                unchecked_nulls.push(column.name.clone());
            }
        }
    }
    let estimated_rows = estimated_rows(connection, &table)?;
    let plain = table.is_table && !table.has_triggers;
    let any_type = table.any_type(&columns, &primary_key);
    let rewritable = table.rewritable(connection)?;
    Ok(Table {
        name: name.clone(),
        columns,
        primary_key,
        indexes,
        estimated_rows,
        plain,
        any_type,
        unchecked_nulls,
        rewritable,
        ..Table::default()
    })
}

/// The names of the user's tables and views.
pub(super) fn tables(connection: &Connection) -> Result<Vec<String>> {
    listed(connection, include_str!("../../sql/sqlite/names.sql"))
}

/// The tables with rows of their own.
pub(super) fn base_tables(connection: &Connection) -> Result<Vec<String>> {
    listed(connection, include_str!("../../sql/sqlite/base_tables.sql"))
}

fn listed(connection: &Connection, sql: &str) -> Result<Vec<String>> {
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let names = statement.query_map([], |row| row.get(0)).and_then(Iterator::collect);
    Ok(user_tables(names.map_err(failed)?))
}

/// The columns of a table. `None` when the table does not exist.
pub(super) fn columns_of(connection: &Connection, table: &str) -> Result<Option<Vec<Column>>> {
    match Relation::find(connection, table)? {
        Some(table) => Ok(Some(table.columns(connection)?.0)),
        None => Ok(None),
    }
}

/// A table or view in the schema.
pub(super) struct Relation {
    schema: String,
    name: String,
    is_table: bool,
    without_rowid: bool,
    has_triggers: bool,
    is_strict: bool,
}

impl Relation {
    pub(super) fn find(connection: &Connection, name: &str) -> Result<Option<Relation>> {
        let (schema, table) = match name.split_once('.') {
            Some((schema, table)) => (Some(schema), table),
            None => (None, name),
        };
        let sql = include_str!("../../sql/sqlite/table.sql");
        let mut statement = connection.prepare_cached(sql).map_err(failed)?;
        let found = statement.query_row(params![schema, table], |row| {
            Ok(Relation {
                schema: row.get(0)?,
                name: row.get(1)?,
                is_table: row.get::<_, String>(2)? == "table",
                without_rowid: row.get(3)?,
                has_triggers: row.get(4)?,
                is_strict: row.get(5)?,
            })
        });
        found.optional().map_err(failed)
    }

    /// The columns whose values may be of any type: all except the rowid and the columns of strict tables.
    fn any_type(&self, columns: &[Column], primary_key: &[String]) -> Vec<String> {
        let is = |column: &Column, name: &str| column.sql_type.eq_ignore_ascii_case(name);
        let is_any = |column: &&Column| {
            let is_rowid = !self.without_rowid
                && is(column, "INTEGER")
                && matches!(primary_key, [key] if *key == column.name);
            (!self.is_strict || is(column, "ANY")) && !is_rowid
        };
        columns.iter().filter(is_any).map(|column| column.name.clone()).collect()
    }

    /// A name for the rowid that no column has. `None` when there is no rowid.
    pub(super) fn rowid(&self, columns: &[Column]) -> Option<&'static str> {
        let hidden = |name: &str| columns.iter().any(|c| c.name.eq_ignore_ascii_case(name));
        let free = ["rowid", "_rowid_", "oid"].into_iter().find(|name| !hidden(name));
        free.filter(|_| self.is_table && !self.without_rowid)
    }

    fn rewritable(&self, connection: &Connection) -> Result<Option<String>> {
        let sql = include_str!("../../sql/sqlite/rewritable.sql");
        let mut statement = connection.prepare_cached(sql).map_err(failed)?;
        let found = statement.query_row(params![self.name, self.schema], |row| row.get(0));
        found.optional().map_err(failed)
    }

    fn quoted(&self) -> String {
        format!("{}.{}", quote(&self.schema), quote(&self.name))
    }

    /// The columns, and the names of the primary key's in its order.
    fn columns(&self, connection: &Connection) -> Result<(Vec<Column>, Vec<String>)> {
        let sql = include_str!("../../sql/sqlite/columns.sql");
        let mut statement = connection.prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query(params![self.name, self.schema]).map_err(failed)?;
        let (mut columns, mut key) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next().map_err(failed)? {
            let name: String = row.get(0).map_err(failed)?;
            let sql_type: String = row.get(1).map_err(failed)?;
            let not_null: bool = row.get(2).map_err(failed)?;
            let position: i64 = row.get(3).map_err(failed)?;
            if position > 0 {
                key.push((position, name.clone()));
            }
            let nullable = !(not_null || (position > 0 && self.without_rowid));
            columns.push(Column { name, kind: kind(&sql_type), sql_type, nullable });
        }
        key.sort();
        Ok((columns, key.into_iter().map(|(_, name)| name).collect()))
    }

    /// The usable indexes, and whether the primary key is the rowid, which is never null. Entries of a
    /// secondary index end with the rowid, or with the primary key if there is no rowid, and are ordered
    /// by it too. So an index on `(year)` is also one on `(year, id)`.
    fn indexes(
        &self,
        connection: &Connection,
        columns: &[Column],
        primary_key: &[String],
    ) -> Result<(Vec<Index>, bool)> {
        let sql = include_str!("../../sql/sqlite/indexes.sql");
        let mut statement = connection.prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query(params![self.name, self.schema]).map_err(failed)?;
        let mut found: Vec<FoundIndex> = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let name: String = row.get(0).map_err(failed)?;
            let column: Option<String> = row.get(4).map_err(failed)?;
            let descending: bool = row.get(5).map_err(failed)?;
            let collation: String = row.get(6).map_err(failed)?;
            if found.last().is_none_or(|last| last.name != name) {
                found.push(FoundIndex {
                    name,
                    is_key: row.get::<_, String>(2).map_err(failed)? == "pk",
                    index: Index { columns: Vec::new(), unique: row.get(1).map_err(failed)? },
                    whole: true,
                    descending,
                });
            }
            let Some(last) = found.last_mut() else { continue };
            match column {
                Some(column)
                    if last.whole
                        && last.descending == descending
                        && self.collates(connection, &column, &collation)? =>
                {
                    last.index.columns.push(column);
                }
                _ => (last.whole, last.index.unique) = (false, false),
            }
        }
        let has_key_index = found.iter().any(|found| found.is_key);
        let mut indexes = Vec::new();
        let is_rowid = self.rowid(columns).is_some() && !has_key_index && primary_key.len() == 1;
        if is_rowid {
            indexes.push(Index { columns: primary_key.to_vec(), unique: true });
        }
        let carries_key = is_rowid || self.without_rowid;
        for FoundIndex { index, whole, is_key, descending, .. } in found {
            // A descending index still ends with its key ascending.
            if carries_key && whole && !is_key && !descending {
                let mut longer = Index { unique: false, ..index.clone() };
                let more = primary_key.iter().filter(|name| !index.columns.contains(name));
                longer.columns.extend(more.cloned());
                indexes.push(longer);
            }
            indexes.push(index);
        }
        indexes.retain(|index| !index.columns.is_empty());
        Ok((indexes, is_rowid))
    }

    /// Whether an index sorts a column by the column's own collation.
    fn collates(&self, connection: &Connection, column: &str, collation: &str) -> Result<bool> {
        let (_, own, ..) = connection
            .column_metadata(Some(self.schema.as_str()), self.name.as_str(), column)
            .map_err(failed)?;
        let own = own.map(|own| own.to_string_lossy());
        Ok(own.is_none_or(|own| own.eq_ignore_ascii_case(collation)))
    }

    /// SQLite allows nulls in most primary keys, so the rows are checked.
    fn has_null(&self, connection: &Connection, column: &str) -> Result<bool> {
        let (table, column) = (self.quoted(), quote(column));
        let sql = format!("SELECT 1 FROM {table} WHERE {column} IS NULL LIMIT 1");
        let found = connection.query_row(&sql, [], |_| Ok(())).optional().map_err(failed)?;
        Ok(found.is_some())
    }
}

struct FoundIndex {
    name: String,
    is_key: bool,
    index: Index,
    /// Whether every column so far is usable.
    whole: bool,
    descending: bool,
}

/// Counts up to a limit. Beyond it, takes the result of ANALYZE, or the span of the rowids limited by the
/// size of the file.
fn estimated_rows(connection: &Connection, table: &Relation) -> Result<u64> {
    let number = |sql: &str| {
        let number = connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
        number.map(Option::unwrap_or_default).map_err(failed)
    };
    let quoted = table.quoted();
    let counted =
        number(&format!("SELECT count(*) FROM (SELECT 1 FROM {quoted} LIMIT {MAX_COUNTED_ROWS})"))?;
    if counted < MAX_COUNTED_ROWS || !table.is_table {
        return Ok(counted as u64);
    }
    let analyzed = connection.table_exists(Some(table.schema.as_str()), "sqlite_stat1");
    if analyzed.map_err(failed)? {
        let sql = format!("SELECT stat FROM {}.sqlite_stat1 WHERE tbl = ?1", quote(&table.schema));
        let stat: Option<String> = connection
            .query_row(&sql, [&table.name], |row| row.get(0))
            .optional()
            .map_err(failed)?;
        let rows = stat.and_then(|stat| stat.split(' ').next()?.parse::<u64>().ok());
        if let Some(rows) = rows {
            return Ok(rows.max(counted as u64));
        }
    }
    let size = number("PRAGMA page_count")?.saturating_mul(number("PRAGMA page_size")?);
    let max_rows = size / MIN_ROW_BYTES;
    let (columns, _) = table.columns(connection)?;
    let Some(rowid) = table.rowid(&columns) else { return Ok(max_rows.max(counted) as u64) };
    let least = number(&format!("SELECT min({rowid}) FROM {quoted}"))?;
    let greatest = number(&format!("SELECT max({rowid}) FROM {quoted}"))?;
    Ok(greatest.saturating_sub(least).saturating_add(1).min(max_rows).max(counted) as u64)
}

/// The most rows that are counted.
const MAX_COUNTED_ROWS: i64 = 100_000;
/// The approximate size of the smallest possible row, in bytes.
const MIN_ROW_BYTES: i64 = 16;

/// The columns of a query, without running it.
pub(super) fn query_columns(connection: &Connection, query: &str) -> Result<Vec<Column>> {
    let sql = format!("SELECT * FROM {} LIMIT 0", query_relation(query));
    let statement = connection.prepare(&sql).map_err(failed)?;
    let mut columns: Vec<Column> = Vec::new();
    for name in statement.column_names() {
        if columns.iter().any(|column| column.name == name) {
            return Err(duplicate_column(name, &columns).into());
        }
        columns.push(Column {
            name: name.to_owned(),
            kind: ColumnType::Other,
            sql_type: String::new(),
            nullable: true,
        });
    }
    Ok(columns)
}

/// The kind of a declared type, by SQLite's rules of affinity and by common names. Dates are text or numbers,
/// depending on the application.
fn kind(declared: &str) -> ColumnType {
    let declared = declared.to_ascii_uppercase();
    let has = |names: &[&str]| names.iter().any(|name| declared.contains(name));
    if has(&["BOOL"]) {
        ColumnType::Bool
    } else if has(&["INT"]) {
        ColumnType::Int
    } else if has(&["CHAR", "CLOB", "TEXT"]) {
        ColumnType::Text
    } else if has(&["BLOB"]) {
        ColumnType::Bytes
    } else if has(&["REAL", "FLOA", "DOUB"]) {
        ColumnType::Float
    } else if has(&["NUM", "DEC"]) {
        ColumnType::Numeric
    } else {
        ColumnType::Other
    }
}
