//! Conditions, columns and names of a parsed statement.

use super::CHUNK;
use sqlparser::ast::{BinaryOperator, Expr, Ident, ObjectName};

/// The conditions joined by AND.
pub(super) fn conjuncts(expression: &Expr) -> Vec<&Expr> {
    match expression {
        Expr::Nested(inner) => conjuncts(inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            [conjuncts(left), conjuncts(right)].concat()
        }
        other => vec![other],
    }
}

pub(super) fn plain(expression: &Expr) -> &Expr {
    match expression {
        Expr::Nested(inner) => plain(inner),
        Expr::Cast { expr, .. } => plain(expr),
        other => other,
    }
}

/// The aliases of two columns that must be equal. `None` for a column without an alias.
pub(super) fn linked(condition: &Expr) -> Option<(Option<String>, Option<String>)> {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = plain(condition) else {
        return None;
    };
    Some((column(left)?, column(right)?))
}

pub(super) fn column(expression: &Expr) -> Option<Option<String>> {
    match plain(expression) {
        Expr::Identifier(name) if !name.value.starts_with(CHUNK) => Some(None),
        Expr::CompoundIdentifier(names) => {
            Some(names.len().checked_sub(2).map(|n| folded(&names[n])))
        }
        _ => None,
    }
}

pub(super) fn parts(name: &ObjectName) -> Vec<String> {
    name.0.iter().filter_map(|part| part.as_ident()).map(folded).collect()
}

/// A name in lower case, since databases fold or ignore the case of names.
pub(super) fn folded(name: &Ident) -> String {
    name.value.to_lowercase()
}

pub(super) fn last_part(table: &str) -> &str {
    table.rsplit('.').next().unwrap_or(table)
}
