//! Checks that `{chunk}` binds a statement: every row that it changes must belong to the chunk, or be joined to a
//! row of it. The statement is parsed, so a `{chunk}` in a string, in a comment, under OR or NOT or in a
//! subquery does not count.

mod expressions;
mod members;

use crate::sql::Dialect;
use expressions::{conjuncts, folded, last_part, linked, parts, plain};
use sqlparser::ast::{
    AssignmentTarget, Delete, Expr, FromTable, Insert, JoinConstraint, JoinOperator, Merge,
    MergeClauseKind, OnConflictAction, OnInsert, Query, Select, SetExpr, SetOperator,
    SqliteOnConflict, Statement, TableFactor, TableObject, TableWithJoins, Update,
    UpdateTableFromKind, With,
};
use sqlparser::dialect::{MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};
use std::collections::BTreeMap;
use windlass_core::{Fragment, JobType, Problem, StepKind};

/// Refuses a `sql` or `map` step that could reach beyond its chunk.
pub(crate) fn check(dialect: Dialect, job_type: &JobType) -> Result<(), Problem> {
    let kind = &job_type.step.kind;
    let is_map = matches!(kind, StepKind::Map(_));
    let Some(template) = job_type.statement()? else { return Ok(()) };
    let refuse = |detail: String| Err(job_type.problem(kind.field(), detail));
    let mut text = String::new();
    let (mut aliases, mut params, mut sources) = (Vec::new(), 0, 0);
    for fragment in template.fragments() {
        match fragment {
            Fragment::Text(written) if written.to_lowercase().contains(RESERVED) => {
                return refuse(format!(
                    "names that begin with `{RESERVED}` are reserved for Windlass"
                ));
            }
            // MySQL and MariaDB execute the content of such a comment, but the parser ignores it.
            Fragment::Text(written) if written.contains("/*M!") || written.contains("/*!") => {
                return refuse("has a comment that MySQL executes as SQL; remove it".into());
            }
            Fragment::Text(written) => text.push_str(written),
            Fragment::Chunk(alias) => {
                text.push_str(&format!(" {CHUNK}{} ", aliases.len()));
                aliases.push(alias.as_deref().map(str::to_lowercase));
            }
            Fragment::Param(_) => {
                params += 1;
                text.push_str(&match dialect {
                    Dialect::Postgres => format!("${params}"),
                    Dialect::Sqlite => format!("?{params}"),
                    Dialect::Mysql => "?".to_owned(),
                });
            }
            Fragment::Source { .. } => {
                sources += 1;
                text.push_str(SOURCE);
            }
        }
    }
    if placeholders(dialect, &text) != Some(aliases.len() + params + sources) {
        return refuse(AMBIGUOUS.to_owned());
    }
    let statements = match Parser::parse_sql(parser_dialect(dialect), &text) {
        Ok(statements) => statements,
        Err(error) => {
            return refuse(format!(
                "cannot be parsed, so it cannot be checked that {{chunk}} restricts it: {error}; write \
                 it in a simpler form"
            ));
        }
    };
    let [statement] = statements.as_slice() else {
        let found = statements.len();
        return refuse(format!("has {found} statements; must be one"));
    };
    let table = job_type.source.table.as_deref().map(|table| last_part(table).to_lowercase());
    let mut check = StatementCheck {
        aliases,
        table,
        fixed: job_type.fixed_columns().into_iter().map(str::to_lowercase).collect(),
        bound_sources: 0,
    };
    let checked = match statement {
        Statement::Query(query) => check
            .query(query, &Ctes::new())
            .and_then(|bound| if bound { Ok(()) } else { Err(UNBOUND.to_owned()) }),
        _ if is_map => Err("must be a SELECT; use step.sql for statements that change rows".into()),
        statement => check.change(statement, &Ctes::new()),
    };
    let checked = checked.and_then(|()| match is_map && check.bound_sources < sources {
        true => Err("reads {source} without {chunk}".to_owned()),
        false => Ok(()),
    });
    checked.or_else(refuse)
}

fn parser_dialect(dialect: Dialect) -> &'static dyn sqlparser::dialect::Dialect {
    match dialect {
        Dialect::Postgres => &PostgreSqlDialect {},
        Dialect::Sqlite => &SQLiteDialect {},
        Dialect::Mysql => &MySqlDialect {},
    }
}

/// The number of placeholders that the database sees in a statement, outside of its strings and comments; `None` if
/// a string or a comment does not end, or a `{chunk}` is left. [`Template`](windlass_core::Template) does not know the database, and databases
/// differ in what ends a string or a comment.
fn placeholders(dialect: Dialect, text: &str) -> Option<usize> {
    let tokens = Tokenizer::new(parser_dialect(dialect), text).tokenize().ok()?;
    let is_placeholder = |token: &&Token| match token {
        Token::Placeholder(name) => !name.starts_with(':'),
        Token::Question => dialect != Dialect::Postgres,
        Token::Word(word) => word.value.starts_with(CHUNK) || word.value == SOURCE,
        _ => false,
    };
    let has_brace = tokens.contains(&Token::LBrace);
    (!has_brace).then(|| tokens.iter().filter(is_placeholder).count())
}

const AMBIGUOUS: &str = "has a string or a comment that ends elsewhere than Windlass expects, so that a placeholder \
                         would be a part of it, or the reverse. Write '' for a quote in a string instead of \\', no \
                         comment in a comment, `-- ` instead of `#`, and no $ in a name";

/// Replacements of the placeholders for parsing.
const RESERVED: &str = "windlass_";
const CHUNK: &str = "windlass_chunk_";
const SOURCE: &str = "windlass_source";

const UNBOUND: &str = "is not restricted by {chunk}: it must be a condition of WHERE that is joined to the \
                       others by AND, not under OR or NOT and not in a subquery alone; \
                       write `WHERE {chunk} AND (…)`";

/// The CTEs in scope, and whether the rows of each are bound.
type Ctes = BTreeMap<String, bool>;
type Checked<T> = Result<T, String>;

struct StatementCheck {
    /// The aliases of the chunks, in order.
    aliases: Vec<Option<String>>,
    /// The source's own table.
    table: Option<String>,
    fixed: Vec<String>,
    /// The number of bound `{source}`.
    bound_sources: usize,
}

/// A table, CTE or subquery in a statement.
struct Relation {
    alias: String,
    name: Option<String>,
    bound: bool,
    /// Whether it is on the optional side of an outer join, where it does not restrict other rows.
    optional: bool,
}

#[derive(Default)]
struct Tables<'a> {
    relations: Vec<Relation>,
    conditions: Vec<&'a Expr>,
    /// Conditions of outer joins, with the relation that they bind.
    follows: Vec<(&'a Expr, usize)>,
    /// Relations joined by columns of the same name.
    same_columns: Vec<usize>,
}

impl StatementCheck {
    /// Checks the changes that a query makes, and returns whether its rows are bound.
    fn query(&mut self, query: &Query, ctes: &Ctes) -> Checked<bool> {
        let ctes = self.with(query.with.as_ref(), ctes)?;
        self.set(&query.body, &ctes)
    }

    fn with(&mut self, with: Option<&With>, ctes: &Ctes) -> Checked<Ctes> {
        let mut ctes = ctes.clone();
        for cte in with.iter().flat_map(|with| &with.cte_tables) {
            let bound = self.query(&cte.query, &ctes)?;
            ctes.insert(folded(&cte.alias.name), bound);
        }
        Ok(ctes)
    }

    fn set(&mut self, set: &SetExpr, ctes: &Ctes) -> Checked<bool> {
        Ok(match set {
            SetExpr::Select(select) => self.select(select, ctes)?,
            SetExpr::Query(query) => self.query(query, ctes)?,
            SetExpr::SetOperation { left, op, right, .. } => {
                let (left, right) = (self.set(left, ctes)?, self.set(right, ctes)?);
                left && (right || *op != SetOperator::Union)
            }
            SetExpr::Insert(change)
            | SetExpr::Update(change)
            | SetExpr::Delete(change)
            | SetExpr::Merge(change) => {
                self.change(change, ctes)?;
                true
            }
            _ => false,
        })
    }

    fn select(&mut self, select: &Select, ctes: &Ctes) -> Checked<bool> {
        let mut tables = Tables::default();
        self.add_all(&mut tables, &select.from, ctes)?;
        tables.conditions.extend(select.selection.iter().flat_map(conjuncts));
        self.bind(&mut tables);
        let is_source = |relation: &&Relation| self.is_source(relation);
        let bound = tables.relations.iter().any(|relation| relation.bound && !relation.optional);
        let sources = tables.relations.iter().filter(is_source).all(|relation| relation.bound);
        let counted = tables
            .relations
            .iter()
            .filter(|relation| relation.bound && relation.name.as_deref() == Some(SOURCE));
        self.bound_sources += counted.count();
        Ok(bound && sources)
    }

    fn change(&mut self, statement: &Statement, ctes: &Ctes) -> Checked<()> {
        match statement {
            Statement::Update(update) => self.update(update, ctes),
            Statement::Delete(delete) => self.delete(delete, ctes),
            Statement::Insert(insert) => self.insert(insert, ctes),
            Statement::Merge(merge) => self.merge(merge, ctes),
            Statement::Query(query) => self.query(query, ctes).map(|_| ()),
            _ => Err("must be an UPDATE, DELETE, INSERT … SELECT, MERGE or SELECT".to_owned()),
        }
    }

    fn update(&mut self, update: &Update, ctes: &Ctes) -> Checked<()> {
        let mut tables = Tables::default();
        // The target is a table, even if a CTE has the same name.
        self.add(&mut tables, &update.table, &Ctes::new())?;
        let changeable = tables.relations.len();
        if let Some(UpdateTableFromKind::AfterSet(from) | UpdateTableFromKind::BeforeSet(from)) =
            &update.from
        {
            self.add_all(&mut tables, from, ctes)?;
        }
        tables.conditions.extend(update.selection.iter().flat_map(conjuncts));
        self.bind_members(&mut tables, ctes)?;
        self.bind(&mut tables);
        if update.or == Some(SqliteOnConflict::Replace) {
            return Err("UPDATE OR REPLACE deletes rows of other chunks; remove OR REPLACE".into());
        }
        for assignment in &update.assignments {
            let columns = match &assignment.target {
                AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
                AssignmentTarget::Tuple(names) => names.as_slice(),
            };
            for column in columns {
                let parts = parts(column);
                let table = parts.len().checked_sub(2).map(|n| parts[n].clone());
                let may_be = |relation: &&Relation| {
                    table.as_ref().is_none_or(|table| {
                        relation.alias == *table || relation.name.as_ref() == Some(table)
                    })
                };
                let mut changed = tables.relations[..changeable].iter().filter(may_be).peekable();
                if changed.peek().is_none() || !changed.all(|relation| relation.bound) {
                    return Err(UNBOUND.to_owned());
                }
                let own = tables.relations[..changeable].iter().filter(may_be);
                let name = parts.last().map(|name| name.to_lowercase()).unwrap_or_default();
                if own.into_iter().any(|relation| self.is_source(relation))
                    && self.fixed.contains(&name)
                {
                    return Err(format!("sets `{name}`, which is a key, filter or claim column"));
                }
            }
        }
        Ok(())
    }

    fn delete(&mut self, delete: &Delete, ctes: &Ctes) -> Checked<()> {
        let mut tables = Tables::default();
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        self.add_all(&mut tables, from, &Ctes::new())?;
        let named: Vec<String> =
            delete.tables.iter().filter_map(|name| parts(name).pop()).collect();
        let targets: Vec<usize> = (0..tables.relations.len())
            .filter(|n| named.is_empty() || named.contains(&tables.relations[*n].alias))
            .collect();
        self.add_all(&mut tables, delete.using.as_deref().unwrap_or_default(), ctes)?;
        tables.conditions.extend(delete.selection.iter().flat_map(conjuncts));
        self.bind_members(&mut tables, ctes)?;
        self.bind(&mut tables);
        match !targets.is_empty() && targets.iter().all(|n| tables.relations[*n].bound) {
            true => Ok(()),
            false => Err(UNBOUND.to_owned()),
        }
    }

    fn insert(&mut self, insert: &Insert, ctes: &Ctes) -> Checked<()> {
        let Some(rows) = &insert.source else { return Err(UNBOUND.to_owned()) };
        if !self.query(rows, ctes)? {
            return Err(UNBOUND.to_owned());
        }
        let target = match &insert.table {
            TableObject::TableName(name) => parts(name).pop(),
            _ => None,
        };
        let overwrites = insert.replace_into
            || insert.overwrite
            || insert.or == Some(SqliteOnConflict::Replace)
            || match &insert.on {
                Some(OnInsert::OnConflict(on)) => {
                    matches!(on.action, OnConflictAction::DoUpdate(_))
                }
                Some(_) => true,
                None => false,
            };
        if overwrites && target.map(|name| name.to_lowercase()) == self.table {
            return Err("overwrites rows of its own source that may belong to other chunks; use \
                        UPDATE … WHERE {chunk}"
                .to_owned());
        }
        Ok(())
    }

    fn merge(&mut self, merge: &Merge, ctes: &Ctes) -> Checked<()> {
        let mut tables = Tables::default();
        self.factor(&mut tables, &merge.table, &Ctes::new(), false)?;
        self.factor(&mut tables, &merge.source, ctes, false)?;
        let source_bound = tables.relations.get(1).is_some_and(|relation| relation.bound);
        tables.conditions.extend(conjuncts(&merge.on));
        self.bind(&mut tables);
        for clause in &merge.clauses {
            match clause.clause_kind {
                MergeClauseKind::NotMatchedBySource => {
                    return Err("WHEN NOT MATCHED BY SOURCE affects rows of all chunks".into());
                }
                MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget
                    if !source_bound =>
                {
                    return Err("WHEN NOT MATCHED inserts rows of USING that {chunk} does not \
                                restrict; put {chunk} into a subquery of USING"
                        .to_owned());
                }
                _ => {}
            }
        }
        match tables.relations.first().is_some_and(|relation| relation.bound) {
            true => Ok(()),
            false => Err(UNBOUND.to_owned()),
        }
    }

    fn add_all<'a>(
        &mut self,
        tables: &mut Tables<'a>,
        from: &'a [TableWithJoins],
        ctes: &Ctes,
    ) -> Checked<()> {
        from.iter().try_for_each(|from| self.add(tables, from, ctes))
    }

    fn add<'a>(
        &mut self,
        tables: &mut Tables<'a>,
        from: &'a TableWithJoins,
        ctes: &Ctes,
    ) -> Checked<()> {
        use JoinOperator as Op;
        self.factor(tables, &from.relation, ctes, false)?;
        for join in &from.joins {
            let (constraint, inner) = match &join.join_operator {
                Op::Join(on) | Op::Inner(on) | Op::CrossJoin(on) | Op::StraightJoin(on) => {
                    (on, true)
                }
                Op::Left(on) | Op::LeftOuter(on) => (on, false),
                // Unmatched rows of both sides appear, so only WHERE binds them.
                _ => {
                    self.factor(tables, &join.relation, ctes, true)?;
                    continue;
                }
            };
            self.factor(tables, &join.relation, ctes, !inner)?;
            let joined = tables.relations.len() - 1;
            match constraint {
                JoinConstraint::On(on) if inner => tables.conditions.extend(conjuncts(on)),
                JoinConstraint::On(on) => {
                    tables.follows.extend(conjuncts(on).into_iter().map(|on| (on, joined)));
                }
                JoinConstraint::Using(_) | JoinConstraint::Natural => {
                    tables.same_columns.push(joined)
                }
                JoinConstraint::None => {}
            }
        }
        Ok(())
    }

    fn factor<'a>(
        &mut self,
        tables: &mut Tables<'a>,
        factor: &'a TableFactor,
        ctes: &Ctes,
        optional: bool,
    ) -> Checked<()> {
        match factor {
            TableFactor::Table { name, alias, .. } => {
                let name = parts(name).pop().unwrap_or_default();
                let bound = ctes.get(&name).copied().unwrap_or(false);
                let own = (!ctes.contains_key(&name)).then(|| name.clone());
                let alias = alias.as_ref().map_or(name, |alias| folded(&alias.name));
                tables.relations.push(Relation { alias, name: own, bound, optional });
            }
            TableFactor::Derived { subquery, alias, .. } => {
                let bound = self.query(subquery, ctes)?;
                let alias = alias.as_ref().map(|alias| folded(&alias.name)).unwrap_or_default();
                tables.relations.push(Relation { alias, name: None, bound, optional });
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } if !optional => {
                self.add(tables, table_with_joins, ctes)?;
            }
            _ => tables.relations.push(Relation {
                alias: String::new(),
                name: None,
                bound: false,
                optional,
            }),
        }
        Ok(())
    }

    fn is_source(&self, relation: &Relation) -> bool {
        let name = relation.name.as_ref().map(|name| name.to_lowercase());
        name.is_some() && (name.as_deref() == Some(SOURCE) || name == self.table)
    }

    /// Marks the relations that a `{chunk}` restricts, and those joined to them by equal columns.
    fn bind(&self, tables: &mut Tables<'_>) {
        for condition in &tables.conditions {
            let Expr::Identifier(name) = plain(condition) else { continue };
            let number = name.value.strip_prefix(CHUNK).and_then(|n| n.parse::<usize>().ok());
            let Some(alias) = number.and_then(|n| self.aliases.get(n)) else { continue };
            let relations = &tables.relations;
            let found = match alias {
                Some(alias) => {
                    relations.iter().position(|relation| relation.alias.to_lowercase() == *alias)
                }
                // Without an alias, the columns belong to the source, or the statement is ambiguous.
                None => relations.iter().position(|r| self.is_source(r)).or(Some(0)),
            };
            if let Some(relation) = found.and_then(|n| tables.relations.get_mut(n)) {
                // A condition in WHERE turns an outer join into an inner one.
                (relation.bound, relation.optional) = (true, false);
            }
        }
        loop {
            let before = tables.relations.iter().filter(|relation| relation.bound).count();
            let inner = tables.conditions.iter().map(|condition| (*condition, None));
            let outer = tables.follows.iter().map(|(on, joined)| (*on, Some(*joined)));
            let links: Vec<_> =
                inner.chain(outer).filter_map(|(on, to)| linked(on).zip(Some(to))).collect();
            for ((left, right), to) in links {
                let relation_of = |column: &Option<String>| match column {
                    Some(alias) => tables.relations.iter().position(|r| r.alias == *alias),
                    None => Some(0),
                };
                let (Some(left), Some(right)) = (relation_of(&left), relation_of(&right)) else {
                    continue;
                };
                for (from, onto) in [(left, right), (right, left)] {
                    let follows = to.is_none_or(|to| to == onto);
                    let restricts = to.is_some() || !tables.relations[from].optional;
                    if tables.relations[from].bound && follows && restricts {
                        tables.relations[onto].bound = true;
                    }
                }
            }
            for joined in &tables.same_columns {
                let earlier = &tables.relations[..*joined];
                if earlier.iter().any(|relation| relation.bound) {
                    tables.relations[*joined].bound = true;
                } else if tables.relations[*joined].bound && !tables.relations[*joined].optional {
                    tables.relations[..*joined].iter_mut().for_each(|r| r.bound = true);
                }
            }
            if tables.relations.iter().filter(|relation| relation.bound).count() == before {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
