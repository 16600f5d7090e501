//! The statements that look up many values of a filter at once. A value mostly has fewer records than a
//! chunk: its one chunk is found without a statement of its own.

use crate::array::Array;
use crate::mysql::Cells;
use crate::predicate::{Bounds, push_limits, relation};
use crate::sql::{Dialect, Sql, cast_type};
use crate::{ChunkPage, Scope};
use windlass_core::{FilterValue, Key, KeyRange, KeySet, Keys, Value};

/// A look-up of some values of a filter. The values are numbered from 1.
pub(crate) struct ByValue<'a> {
    dialect: Dialect,
    filter: &'a str,
    column: &'a str,
    /// The scope without the filter, whose values are in `values`.
    others: Scope,
    everything: KeySet,
    /// The values; `None` for one that has more records than a chunk.
    values: Vec<Option<&'a Value>>,
    /// Whether a chunk is a range of keys; otherwise it is a list of them.
    pub(crate) ranges: bool,
}

impl<'a> ByValue<'a> {
    pub(crate) fn new(
        dialect: Dialect,
        scope: &'a Scope,
        filter: &'a str,
        values: &'a [Value],
    ) -> ByValue<'a> {
        let mut others = scope.clone();
        others.filters.retain(|(name, _, _)| name != filter);
        let within = FilterValue { filter: filter.to_owned(), value: Value::Null };
        ByValue {
            dialect,
            filter,
            column: scope.job_type.source.filters.get(filter).map_or(filter, String::as_str),
            others,
            everything: KeySet::range(None, None),
            values: values.iter().map(Some).collect(),
            ranges: scope.walks_by_key(Some(&within)),
        }
    }

    /// Selects the numbers of the values that have more records than a chunk. Reads at most one
    /// record more than a chunk for each value.
    pub(crate) fn larger(&self, items: u32) -> Sql<'_> {
        let mut sql = self.with_values();
        sql.push(format!(
            "SELECT windlass_n FROM windlass_values WHERE (SELECT 1 FROM {} WHERE ",
            relation(self.dialect, &self.others)
        ));
        self.push_condition(&mut sql);
        sql.push(format!(" LIMIT 1 OFFSET {}) IS NOT NULL", items.max(1)));
        sql
    }

    /// Leaves out the values of these numbers.
    pub(crate) fn leave_out(&mut self, numbers: &[i64]) {
        for number in numbers {
            if let Some(value) = place(*number).and_then(|place| self.values.get_mut(place)) {
                *value = None;
            }
        }
    }

    /// Selects keys of the values that are left, each with the number of its value and the number of
    /// records: the last key of a value that is a range, otherwise all its keys in order.
    pub(crate) fn keys(&self) -> Sql<'_> {
        let (dialect, scope) = (self.dialect, &self.others);
        let columns = dialect.quote_columns(scope.key(), None);
        let order = columns.join(", ");
        let rendered = |(n, name): (usize, &String)| {
            let expression = if self.ranges { format!("windlass_{n}") } else { columns[n].clone() };
            let column = scope.table.column(name);
            column.map_or(expression.clone(), |column| dialect.render(column, &expression))
        };
        let rendered: Vec<String> = scope.key().iter().enumerate().map(rendered).collect();
        // The values come first: each is looked up in the index of the filter's column.
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
            // Named, since ORDER BY would otherwise take the text of a key for the key.
            let keys = named("windlass_", &rendered);
            sql.push(format!("SELECT {keys}, windlass_n, windlass_n AS windlass_items {from}"));
            self.push_condition(&mut sql);
            sql.push(format!(" ORDER BY windlass_n, {order}"));
        }
        sql
    }

    /// The chunks of the keys that were found: the number of the value, the key and the number of
    /// records of a range.
    pub(crate) fn cuts(&self, found: Vec<(i64, Key, i64)>) -> Vec<Option<ChunkPage>> {
        let none = |value: &Option<&Value>| {
            value.map(|_| ChunkPage { chunks: Vec::new(), last: None, done: true })
        };
        let mut cuts: Vec<Option<ChunkPage>> = self.values.iter().map(none).collect();
        for (number, key, items) in found {
            let Some(place) = place(number) else { continue };
            let (Some(Some(cut)), Some(Some(value))) =
                (cuts.get_mut(place), self.values.get(place))
            else {
                continue;
            };
            cut.last = Some(key.clone());
            match cut.chunks.last_mut() {
                Some((KeySet { keys: Keys::List(keys), .. }, items)) => {
                    keys.push(key);
                    *items += 1;
                }
                _ => {
                    let value = Value::clone(value);
                    let within = Some(FilterValue { filter: self.filter.to_owned(), value });
                    let (part, items) = match self.ranges {
                        true => (Keys::Range(KeyRange { after: None, upto: Some(key) }), items),
                        false => (Keys::List(vec![key]), 1),
                    };
                    cut.chunks.push((KeySet { within, keys: part }, items));
                }
            }
        }
        cuts
    }

    /// Begins a statement with the values and their numbers. A value that was left out is NULL, which
    /// equals nothing.
    fn with_values(&self) -> Sql<'_> {
        let column = self.others.table.column(self.column);
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

    /// Adds the condition of a value's records. The column comes first: its collation decides.
    fn push_condition<'s>(&'s self, sql: &mut Sql<'s>) {
        let column = self.dialect.quote(self.column);
        sql.push(format!("{column} = windlass_values.windlass_value"));
        push_limits(sql, &self.others, &self.everything, None, Bounds::All);
    }
}

/// The place of a value of this number.
fn place(number: i64) -> Option<usize> {
    usize::try_from(number - 1).ok()
}
