//! `column IN (SELECT … WHERE {chunk})` binds a table other than the source: each of its rows belongs to a
//! record of the chunk.

use super::expressions::{column, conjuncts, plain};
use super::{Checked, Ctes, StatementCheck, Tables};
use sqlparser::ast::{Expr, Query, SelectItem, SetExpr};

impl StatementCheck {
    /// Marks the relations with a column whose value must occur in bound rows. Only `{chunk}` itself binds
    /// the source, since equal columns would include records of other chunks.
    pub(super) fn bind_members(&mut self, tables: &mut Tables<'_>, ctes: &Ctes) -> Checked<()> {
        for condition in tables.conditions.clone() {
            let Expr::InSubquery { expr, subquery, negated: false } = plain(condition) else {
                continue;
            };
            let Some(alias) = column(expr) else { continue };
            let found = match alias {
                Some(alias) => tables.relations.iter().position(|r| r.alias == alias),
                None => Some(0),
            };
            let Some(relation) = found.and_then(|index| tables.relations.get_mut(index)) else {
                continue;
            };
            if !self.is_source(relation) && self.selects_bound(subquery, ctes)? {
                relation.bound = true;
            }
        }
        Ok(())
    }

    /// Whether a query selects one column of a bound relation. A name without an alias must be a known
    /// column of the source, since any other could be a column of the outer statement.
    fn selects_bound(&mut self, query: &Query, ctes: &Ctes) -> Checked<bool> {
        let (None, SetExpr::Select(select)) = (&query.with, query.body.as_ref()) else {
            return Ok(false);
        };
        let [SelectItem::UnnamedExpr(selected)] = select.projection.as_slice() else {
            return Ok(false);
        };
        let mut tables = Tables::default();
        self.add_all(&mut tables, &select.from, ctes)?;
        tables.conditions.extend(select.selection.iter().flat_map(conjuncts));
        self.bind(&mut tables);
        Ok(match selected {
            Expr::Identifier(name) => {
                let known = self.fixed.contains(&name.value.to_lowercase());
                known && matches!(tables.relations.as_slice(), [only] if only.bound)
            }
            Expr::CompoundIdentifier(_) => {
                let alias = column(selected).flatten();
                let of = |alias| tables.relations.iter().find(|r| r.alias == alias);
                alias.and_then(of).is_some_and(|relation| relation.bound && !relation.optional)
            }
            _ => false,
        })
    }
}
