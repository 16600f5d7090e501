//! The statements of a walk along the keys, jump by jump, for databases that are asked for each.

use crate::Scope;
use crate::predicate::{Bounds, push_extent, relation};
use crate::sql::{Dialect, Sql};
use windlass_core::Extent;

/// Which keys of an extent to take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    /// Nothing, or ` DESC`.
    pub(crate) direction: &'a str,
    pub(crate) limit: u64,
    pub(crate) offset: u64,
}

/// Keys of an extent in order.
pub(crate) fn select<'a>(
    dialect: Dialect,
    scope: &'a Scope,
    extent: &'a Extent,
    bounds: Bounds,
    Step { direction, limit, offset }: Step<'_>,
) -> Sql<'a> {
    let columns = dialect.quote_columns(scope.key(), None);
    let text = format!("SELECT {} FROM {} WHERE ", columns.join(", "), relation(dialect, scope));
    let mut sql = Sql::new(dialect, text);
    push_extent(&mut sql, scope, extent, None, bounds);
    let order = columns.join(&format!("{direction}, "));
    sql.push(format!(" ORDER BY {order}{direction} LIMIT {limit} OFFSET {offset}"));
    sql
}

/// Numbers all keys of an extent in one pass: for queries and views, where each jump might run the
/// whole query.
pub(crate) fn number<'a>(
    dialect: Dialect,
    scope: &'a Scope,
    extent: &'a Extent,
    every: u64,
    most: u64,
) -> Sql<'a> {
    let columns = dialect.quote_columns(scope.key(), None);
    let named = |(n, column): (usize, &String)| format!("{column} AS windlass_{n}");
    let selected: Vec<String> = columns.iter().enumerate().map(named).collect();
    let names: Vec<String> = (0..columns.len()).map(|n| format!("windlass_{n}")).collect();
    let mut sql = Sql::new(
        dialect,
        format!(
            "SELECT {} FROM (SELECT {}, row_number() OVER (ORDER BY {}) AS windlass_n \
             FROM {} WHERE ",
            names.join(", "),
            selected.join(", "),
            columns.join(", "),
            relation(dialect, scope),
        ),
    );
    push_extent(&mut sql, scope, extent, None, Bounds::All);
    sql.push(format!(
        ") AS numbered WHERE windlass_n % {every} = 0 ORDER BY windlass_n LIMIT {most}"
    ));
    sql
}
