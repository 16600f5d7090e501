//! Qualifies the columns of `source.where` for `{chunk:alias}`.

use crate::Scope;
use crate::sql::Dialect;
use sqlparser::dialect::{MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};

/// The condition with the alias before each column of the source that is not qualified, and in place of the
/// name of its table. A subquery has tables of its own, whose columns are not known here: its bare columns
/// stay as they are, and only the name of the source's table is replaced, unless the subquery reads that
/// table itself under its own name.
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
    let tokens = Tokens(&tokens);
    // The end of the subquery at this place, and whether it reads the source's table itself.
    let mut subquery: Option<(usize, bool)> = None;
    let mut inserts = Vec::new();
    for (n, TokenWithSpan { token, span }) in tokens.0.iter().enumerate() {
        subquery = subquery.filter(|(end, _)| n < *end);
        let names_inner_table = subquery.is_some_and(|(_, reads_source)| reads_source);
        let is_outside = subquery.is_none();
        match token {
            Token::LParen if subquery.is_none() && tokens.is_keyword(n + 1, &SUBQUERY) => {
                let end = tokens.closing(n);
                let reads_source = (n..end).any(|n| tokens.is_relation(n, scope));
                subquery = Some((end, reads_source));
            }
            Token::Word(word)
                if !names_inner_table && tokens.is_qualifier(n) && is_table(scope, word) =>
            {
                let start = tokens.first_part(n).map_or(span.start, |first| first.span.start);
                inserts.push((start, Some(span.end), alias.to_owned()));
            }
            Token::Word(word)
                if is_outside && is_column(dialect, scope, word) && tokens.is_expression(n) =>
            {
                inserts.push((span.start, None, format!("{alias}.")));
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

/// How a subquery begins.
const SUBQUERY: [Keyword; 3] = [Keyword::SELECT, Keyword::WITH, Keyword::VALUES];

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

/// The tokens of a condition, without whitespace and comments.
struct Tokens<'a>(&'a [TokenWithSpan]);

impl Tokens<'_> {
    fn at(&self, n: usize) -> Option<&Token> {
        self.0.get(n).map(|token| &token.token)
    }

    fn before(&self, n: usize, by: usize) -> Option<&Token> {
        self.at(n.checked_sub(by)?)
    }

    fn is_keyword(&self, n: usize, keywords: &[Keyword]) -> bool {
        is_keyword(self.at(n), keywords)
    }

    /// The parenthesis that closes the one at `n`.
    fn closing(&self, n: usize) -> usize {
        let mut depth = 0;
        for (at, token) in self.0.iter().enumerate().skip(n) {
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at;
            }
        }
        self.0.len()
    }

    /// Whether the word at `n` qualifies a column: `visits.kind` or `app.visits.kind`.
    fn is_qualifier(&self, n: usize) -> bool {
        self.at(n + 1) == Some(&Token::Period)
            && (self.before(n, 1) != Some(&Token::Period) || self.first_part(n).is_some())
    }

    /// The schema in front of the table at `n`.
    fn first_part(&self, n: usize) -> Option<&TokenWithSpan> {
        let is_schema = self.before(n, 1) == Some(&Token::Period)
            && matches!(self.before(n, 2), Some(Token::Word(_)))
            && self.before(n, 3) != Some(&Token::Period);
        is_schema.then(|| &self.0[n - 2])
    }

    /// Whether the word at `n` is the source's table in a FROM clause, and keeps its name there. An alias
    /// hides the name, so that it stands for the table outside of the subquery.
    fn is_relation(&self, n: usize, scope: &Scope) -> bool {
        let is_aliased = match self.at(n + 1) {
            Some(Token::Word(next)) => {
                next.keyword == Keyword::NoKeyword || next.keyword == Keyword::AS
            }
            _ => false,
        };
        matches!(self.at(n), Some(Token::Word(word)) if is_table(scope, word))
            && self.at(n + 1) != Some(&Token::Period)
            && !is_aliased
    }

    /// Whether the word at `n` is a column, and not part of a longer name, a function, a type or a unit of
    /// time, as in `date '2025-01-01'`, `x::date`, `CAST(x AS date)`, `interval '1' day`,
    /// `EXTRACT(year FROM x)`, `TIMESTAMPDIFF(day, x, y)`.
    fn is_expression(&self, n: usize) -> bool {
        let (before, after) = (self.before(n, 1), self.at(n + 1));
        let is_type = matches!(before, Some(Token::DoubleColon))
            || is_keyword(before, &[Keyword::AS, Keyword::COLLATE]);
        let is_first_argument = before == Some(&Token::LParen)
            && matches!(self.before(n, 2), Some(Token::Word(name))
                if ["EXTRACT", "TIMESTAMPDIFF", "TIMESTAMPADD"]
                    .iter().any(|function| name.value.eq_ignore_ascii_case(function)));
        let is_unit = is_first_argument
            || matches!(before, Some(Token::SingleQuotedString(_) | Token::Number(..)));
        let is_name = before == Some(&Token::Period)
            || matches!(after, Some(Token::LParen | Token::Period | Token::SingleQuotedString(_)));
        !is_type && !is_unit && !is_name
    }
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
            ("substring(kind FROM 2) = 'x'", "substring(v.kind FROM 2) = 'x'"),
            ("app.visits.kind = App.Visits.id", "v.kind = v.id"),
            (
                "EXISTS (SELECT 1 FROM w WHERE w.id = visits.id AND kind = 1)",
                "EXISTS (SELECT 1 FROM w WHERE w.id = v.id AND kind = 1)",
            ),
            (
                "id > (SELECT min(x.id) FROM visits AS x WHERE x.kind = visits.kind)",
                "v.id > (SELECT min(x.id) FROM visits AS x WHERE x.kind = v.kind)",
            ),
            (
                "id > (SELECT min(visits.id) FROM visits WHERE visits.kind = '1')",
                "v.id > (SELECT min(visits.id) FROM visits WHERE visits.kind = '1')",
            ),
            ("kind IS DISTINCT FROM id", "v.kind IS DISTINCT FROM v.id"),
        ] {
            assert_eq!(qualified(condition), expected);
        }
    }
}
