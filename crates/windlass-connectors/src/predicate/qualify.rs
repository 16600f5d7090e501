//! Qualifies the columns of `source.where` for `{chunk:alias}`.

use crate::Scope;
use crate::sql::Dialect;
use sqlparser::dialect::{MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};

/// The condition with the alias before each column of the source that is not qualified, and in place of the
/// name of its table. Columns in a subquery stay as they are, since the subquery's own tables come first.
pub(super) fn qualify(dialect: Dialect, scope: &Scope, condition: &str, alias: &str) -> String {
    let tokenized = match dialect {
        Dialect::Postgres => {
            Tokenizer::new(&PostgreSqlDialect {}, condition).tokenize_with_location()
        }
        Dialect::Sqlite => Tokenizer::new(&SQLiteDialect {}, condition).tokenize_with_location(),
        Dialect::Mysql => Tokenizer::new(&MySqlDialect {}, condition).tokenize_with_location(),
    };
    // The database explains what is wrong with a condition that cannot be read.
    let Ok(mut tokens) = tokenized else { return condition.to_owned() };
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut depth = 0;
    let mut subquery = None;
    let mut inserts = Vec::new();
    for (n, TokenWithSpan { token, span }) in tokens.iter().enumerate() {
        let before = n.checked_sub(1).map(|n| &tokens[n].token);
        let after = tokens.get(n + 1).map(|token| &token.token);
        match token {
            Token::LParen => {
                depth += 1;
                let selects = is_keyword(after, &[Keyword::SELECT, Keyword::WITH, Keyword::VALUES]);
                if selects && subquery.is_none() {
                    subquery = Some(depth);
                }
            }
            Token::RParen => {
                if subquery == Some(depth) {
                    subquery = None;
                }
                depth -= 1;
            }
            Token::Word(word) if subquery.is_none() && before != Some(&Token::Period) => {
                let is_table = after == Some(&Token::Period) && is_table(scope, word);
                if is_table {
                    inserts.push((span.start, Some(span.end), alias.to_owned()));
                } else if is_column(dialect, scope, word) && is_expression(before, after) {
                    inserts.push((span.start, None, format!("{alias}.")));
                }
            }
            _ => {}
        }
    }
    let mut text = condition.to_owned();
    for (start, end, insert) in inserts.into_iter().rev() {
        let start = offset(condition, start);
        let end = end.map_or(start, |end| offset(condition, end));
        text.replace_range(start..end, &insert);
    }
    text
}

fn is_table(scope: &Scope, word: &Word) -> bool {
    let table = scope.job_type.source.table.as_deref().unwrap_or_default();
    table.rsplit('.').next().is_some_and(|table| table.eq_ignore_ascii_case(&word.value))
}

fn is_column(dialect: Dialect, scope: &Scope, word: &Word) -> bool {
    let exact = dialect == Dialect::Postgres && word.quote_style.is_some();
    scope.table.columns.iter().any(|column| match exact {
        true => column.name == word.value,
        false => column.name.eq_ignore_ascii_case(&word.value),
    })
}

/// Whether a word between these tokens is a column, and not a function, a type or a unit of time, as in
/// `date '2025-01-01'`, `x::date`, `CAST(x AS date)`, `interval '1' day`, `EXTRACT(year FROM x)`.
fn is_expression(before: Option<&Token>, after: Option<&Token>) -> bool {
    let is_type = matches!(before, Some(Token::DoubleColon))
        || is_keyword(before, &[Keyword::AS, Keyword::COLLATE]);
    let is_unit = matches!(before, Some(Token::SingleQuotedString(_) | Token::Number(..)))
        || is_keyword(after, &[Keyword::FROM]);
    let is_name =
        matches!(after, Some(Token::LParen | Token::Period | Token::SingleQuotedString(_)));
    !is_type && !is_unit && !is_name
}

fn is_keyword(token: Option<&Token>, keywords: &[Keyword]) -> bool {
    matches!(token, Some(Token::Word(word))
        if word.quote_style.is_none() && keywords.contains(&word.keyword))
}

/// The byte at a location, which counts lines and characters from one.
fn offset(text: &str, location: Location) -> usize {
    let line = usize::try_from(location.line).unwrap_or(1).saturating_sub(1);
    let column = usize::try_from(location.column).unwrap_or(1).saturating_sub(1);
    let before: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = text.get(before..).unwrap_or_default();
    before + rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::{Column, ColumnType, JobType, Table};

    fn qualified(condition: &str) -> String {
        let job_type = JobType::builder("J").connection("app").table("app.visits");
        let job_type = job_type.sql("UPDATE visits v SET a = 1 WHERE {chunk:v}").build().unwrap();
        let column = |name: &str| Column {
            name: name.to_owned(),
            kind: ColumnType::Text,
            sql_type: "text".to_owned(),
            nullable: true,
        };
        let columns = ["id", "kind", "date", "Odd"].map(column).to_vec();
        let scope = Scope::of_all(job_type, Table { columns, ..Table::default() });
        qualify(Dialect::Postgres, &scope, condition, "v")
    }

    #[test]
    fn columns_get_the_alias() {
        for (condition, expected) in [
            ("kind = 'kind'", "v.kind = 'kind'"),
            ("KIND = 1 AND (\"Odd\" OR other > id)", "v.KIND = 1 AND (v.\"Odd\" OR other > v.id)"),
            ("visits.kind = v.id", "v.kind = v.id"),
            ("kind(kind) = 1 -- kind\n AND id > 2", "kind(v.kind) = 1 -- kind\n AND v.id > 2"),
            (
                "date > date '2025-01-01' AND 'é' <> kind",
                "v.date > date '2025-01-01' AND 'é' <> v.kind",
            ),
            ("date::date = CAST(kind AS date)", "v.date::date = CAST(v.kind AS date)"),
            (
                "kind IN (SELECT kind FROM w WHERE (id) = 1) AND id = 2",
                "v.kind IN (SELECT kind FROM w WHERE (id) = 1) AND v.id = 2",
            ),
            ("EXTRACT(date FROM kind) = 1", "EXTRACT(date FROM v.kind) = 1"),
            ("kind IS DISTINCT FROM id", "v.kind IS DISTINCT FROM v.id"),
        ] {
            assert_eq!(qualified(condition), expected);
        }
    }
}
