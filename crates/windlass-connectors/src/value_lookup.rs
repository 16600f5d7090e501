//! Statements that look up many values of a filter at once. Most values have fewer records than a chunk, and
//! their one chunk needs no statement of its own.

use crate::array::Array;
use crate::mysql::Cells;
use crate::predicate::{Bounds, push_conditions, relation};
use crate::sql::{Dialect, Sql, cast_type};
use crate::{ChunkPage, Scope, key_walk};
use windlass_core::{FilterValue, Key, KeyRange, KeySet, Keys, Value};

/// A lookup of some values of a filter. The values are numbered from 1.
pub(crate) struct ValueLookup<'a> {
    dialect: Dialect,
    filter: &'a str,
    column: &'a str,
    /// The scope without this filter.
    scope: Scope,
    everything: KeySet,
    /// The values. `None` replaces a value that has more records than a chunk.
    values: Vec<Option<&'a Value>>,
    /// Whether a chunk is a range of keys. Otherwise it is a list of keys.
    pub(crate) ranges: bool,
}

impl<'a> ValueLookup<'a> {
    pub(crate) fn new(
        dialect: Dialect,
        scope: &'a Scope,
        filter: &'a str,
        values: &'a [Value],
    ) -> ValueLookup<'a> {
        let mut unfiltered = scope.clone();
        unfiltered.filters.retain(|(name, _, _)| name != filter);
        let within = FilterValue { filter: filter.to_owned(), value: Value::Null };
        ValueLookup {
            dialect,
            filter,
            column: scope.job_type.source.filters.get(filter).map_or(filter, String::as_str),
            scope: unfiltered,
            everything: KeySet::range(None, None),
            values: values.iter().map(Some).collect(),
            ranges: scope.walks_by_key(Some(&within)),
        }
    }

    /// Selects the numbers of the values that have more records than a chunk. Reads at most one
    /// record more than a chunk per value.
    pub(crate) fn larger_than(&self, chunk_items: u32) -> Sql<'_> {
        let mut sql = self.with_values();
        sql.push(format!(
            "SELECT windlass_n FROM windlass_values WHERE (SELECT 1 FROM {} WHERE ",
            relation(self.dialect, &self.scope)
        ));
        self.push_condition(&mut sql);
        sql.push(format!(" LIMIT 1 OFFSET {}) IS NOT NULL", chunk_items.max(1)));
        sql
    }

    /// Removes the values with these numbers.
    pub(crate) fn remove(&mut self, numbers: &[i64]) {
        for number in numbers {
            if let Some(value) = index(*number).and_then(|index| self.values.get_mut(index)) {
                *value = None;
            }
        }
    }

    /// Selects keys of the remaining values, each with the number of its value and a number of records:
    /// the last key of a value whose chunk is a range, or all different keys in order.
    pub(crate) fn keys(&self) -> Sql<'_> {
        let (dialect, scope) = (self.dialect, &self.scope);
        let columns = dialect.quote_columns(scope.key(), None);
        let order = columns.join(", ");
        let rendered = |(n, name): (usize, &String)| {
            let expression = if self.ranges { format!("windlass_{n}") } else { columns[n].clone() };
            let column = scope.table.column(name);
            column.map_or(expression.clone(), |column| dialect.render(column, &expression))
        };
        let rendered: Vec<String> = scope.key().iter().enumerate().map(rendered).collect();
        // Forces the join order: each value is looked up in the index of the filter's column.
        let join = match dialect {
            Dialect::Mysql => "STRAIGHT_JOIN",
            Dialect::Postgres | Dialect::Sqlite => "CROSS JOIN",
        };
        let from = format!("FROM windlass_values {join} {} WHERE ", relation(dialect, scope));
        let named = |name: &str, of: &[String]| {
            let named = of.iter().enumerate().map(|(n, of)| format!("{of} AS {name}{n}"));
            named.collect::<Vec<_>>().join(", ")
        };
        let mut sql = self.with_values();
        if self.ranges {
            sql.push(format!(
                "SELECT {}, windlass_n, windlass_items FROM (SELECT {}, windlass_n, \
                 row_number() OVER (PARTITION BY windlass_n ORDER BY {order}) AS windlass_at, \
                 count(*) OVER (PARTITION BY windlass_n) AS windlass_items {from}",
                rendered.join(", "),
                named("windlass_", &columns)
            ));
            self.push_condition(&mut sql);
            sql.push(") AS numbered WHERE windlass_at = windlass_items");
        } else {
            // Renamed, since ORDER BY would otherwise sort by the text of a cast column.
            let keys = named("windlass_", &rendered);
            let records = key_walk::records_of_key(dialect, scope);
            sql.push(format!("SELECT {keys}, windlass_n, {records} AS windlass_items {from}"));
            self.push_condition(&mut sql);
            if scope.key_may_repeat() {
                sql.push(format!(" GROUP BY windlass_n, {order}"));
            }
            sql.push(format!(" ORDER BY windlass_n, {order}"));
        }
        sql
    }

    /// The chunks of the keys that were found, given as the number of the value, the key and the number
    /// of records of the range or of the key.
    pub(crate) fn pages(&self, found: Vec<(i64, Key, i64)>) -> Vec<Option<ChunkPage>> {
        let empty = |value: &Option<&Value>| {
            value.map(|_| ChunkPage { chunks: Vec::new(), last: None, done: true })
        };
        let mut pages: Vec<Option<ChunkPage>> = self.values.iter().map(empty).collect();
        for (number, key, items) in found {
            let Some(index) = index(number) else { continue };
            let (Some(Some(page)), Some(Some(value))) =
                (pages.get_mut(index), self.values.get(index))
            else {
                continue;
            };
            page.last = Some(key.clone());
            match page.chunks.last_mut() {
                Some((KeySet { keys: Keys::List(keys), .. }, total)) => {
                    keys.push(key);
                    *total += items;
                }
                _ => {
                    let value = Value::clone(value);
                    let within = Some(FilterValue { filter: self.filter.to_owned(), value });
                    let keys = match self.ranges {
                        true => Keys::Range(KeyRange { after: None, upto: Some(key) }),
                        false => Keys::List(vec![key]),
                    };
                    page.chunks.push((KeySet::new(within, keys), items));
                }
            }
        }
        pages
    }

    /// Begins a statement with the values and their numbers. A removed value is NULL, which equals
    /// nothing.
    fn with_values(&self) -> Sql<'_> {
        let column = self.scope.table.column(self.column);
        let values: Vec<&Value> =
            self.values.iter().map(|value| value.unwrap_or(&Value::Null)).collect();
        let begin = "WITH windlass_values (windlass_n, windlass_value) AS (";
        let mut sql = Sql::new(self.dialect, begin);
        match self.dialect {
            Dialect::Postgres => {
                let cast = column.map_or(String::new(), |c| format!("::{}", cast_type(c)));
                sql.push(format!("SELECT n, v{cast} FROM unnest("));
                sql.array(Array::of(&values, column));
                sql.push(") WITH ORDINALITY AS listed (v, n)");
            }
            Dialect::Sqlite => {
                let numbered = values.into_iter().cloned().zip(1..);
                let rows: Vec<[Value; 2]> =
                    numbered.map(|(value, n)| [Value::Int(n), value]).collect();
                sql.json_rows(rows.iter().map(<[Value; 2]>::as_slice), 2);
            }
            Dialect::Mysql => {
                let mut cells = Cells::default();
                let value = cells.compared(values.into_iter(), column);
                sql.push(format!("SELECT v.ord, {value} FROM "));
                cells.push(&mut sql);
            }
        }
        sql.push(") ");
        sql
    }

    /// Adds the condition for a value's records. The column is on the left, so its collation applies.
    fn push_condition<'s>(&'s self, sql: &mut Sql<'s>) {
        let column = self.dialect.quote(self.column);
        sql.push(format!("{column} = windlass_values.windlass_value"));
        push_conditions(sql, &self.scope, &self.everything, None, Bounds::All);
    }
}

/// The index of the value with this number.
fn index(number: i64) -> Option<usize> {
    usize::try_from(number - 1).ok()
}
