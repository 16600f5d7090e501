//! Splits a table into ranges of similar size by a sample of its keys.

use super::{cut, describe, row};
use crate::predicate::{is_query, relation};
use crate::sql::{Dialect, quote_columns};
use crate::{Result, Scope};
use windlass_core::{Key, KeyRange};
use windlass_drivers::Transaction;

/// Ranges that cover everything up to the greatest key.
pub(super) async fn split(
    transaction: &Transaction,
    scope: &Scope,
    segments: u32,
) -> Result<Vec<KeyRange>> {
    let Some(greatest) = cut::greatest(transaction, scope).await? else {
        return Ok(Vec::new());
    };
    let mut cuts = quantiles(transaction, scope, segments).await?;
    cuts.dedup();
    cuts.retain(|cut| *cut != greatest && !cut.has_null());
    Ok(KeyRange { after: None, upto: Some(greatest) }.cut(cuts))
}

/// The keys that divide a sample into equal parts. The server samples whole pages, a few hundred for a
/// table of any size, and sorts by its own collations.
async fn quantiles(transaction: &Transaction, scope: &Scope, segments: u32) -> Result<Vec<Key>> {
    if segments < 2 || is_query(scope) || !can_be_sampled(transaction, scope).await? {
        return Ok(Vec::new());
    }
    let percent = (100.0 * SAMPLE_ROWS / scope.table.estimated_rows.max(1) as f64).min(100.0);
    let columns = quote_columns(scope.key(), None);
    let names: Vec<String> = (0..columns.len()).map(|n| format!("windlass_{n}")).collect();
    let selected: Vec<String> =
        columns.iter().zip(&names).map(|(column, name)| format!("{column} AS {name}")).collect();
    let rendered: Vec<String> = scope
        .key()
        .iter()
        .zip(&names)
        .map(|(column, name)| match scope.table.column(column) {
            Some(column) => Dialect::Postgres.render(column, name),
            None => name.clone(),
        })
        .collect();
    let sql = format!(
        "SELECT {rendered} FROM (\
         SELECT {selected}, row_number() OVER (ORDER BY {order}) AS windlass_n, \
         count(*) OVER () AS windlass_total FROM {relation} TABLESAMPLE SYSTEM ({percent:.6})\
         ) AS sample \
         WHERE windlass_n * {segments} / windlass_total \
         > (windlass_n - 1) * {segments} / windlass_total AND windlass_n < windlass_total \
         ORDER BY windlass_n",
        rendered = rendered.join(", "),
        selected = selected.join(", "),
        order = columns.join(", "),
        relation = relation(Dialect::Postgres, scope),
    );
    let rows = transaction.query(&sql, &[]).await?;
    rows.iter().map(|row| row::key(row, columns.len())).collect()
}

/// The approximate number of sampled rows. Sampling returns whole pages, so a few rows per segment would
/// not be representative.
const SAMPLE_ROWS: f64 = 20_000.0;

/// Views and foreign tables cannot be sampled.
async fn can_be_sampled(transaction: &Transaction, scope: &Scope) -> Result<bool> {
    let kind = describe::kind_of(transaction, &scope.table.name).await?;
    Ok(matches!(kind.as_str(), "r" | "p" | "m"))
}
