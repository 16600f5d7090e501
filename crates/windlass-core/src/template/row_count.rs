//! Finds the column of a `map` statement that counts the rows of its chunk, or adds one.

use super::{Fragment, Template, words};

/// The name of a column that is added to count the rows of a chunk.
pub const ROW_COUNT: &str = "windlass_rows";

impl Template {
    /// The position of a result column that counts the rows of the chunk, in a statement of the form
    /// `SELECT …, count(*) … FROM {source} WHERE {chunk} [GROUP BY …] [ORDER BY …]`: the sum of this column
    /// is the number of rows read. `None` for every other statement.
    pub fn row_count_column(&self) -> Option<usize> {
        let words = self.plain_words()?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let is_count = |column: &&[&str]| column.starts_with(&["COUNT", "(", "*", ")"]);
        PlainSelect::parse(&words)?.columns.iter().position(is_count)
    }

    /// The statement with one more result column, [`ROW_COUNT`], that counts the rows of the chunk. `None` if it has
    /// such a column, or if adding one would change what the statement returns.
    pub fn with_row_count(&self) -> Option<Template> {
        let words = self.plain_words()?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let select = PlainSelect::parse(&words)?;
        let has_groups = select.is_grouped || select.columns.iter().any(|one| is_aggregate(one));
        if !has_groups || self.row_count_column().is_some() {
            return None;
        }
        let mut template = self.clone();
        let Some(Fragment::Text(before)) = template.fragments.first_mut() else { return None };
        let from = before.trim_end().len().checked_sub("FROM".len())?;
        let is_from = before.get(from..)?.trim_end().eq_ignore_ascii_case("FROM");
        is_from.then(|| before.insert_str(from, &format!(", count(*) AS {ROW_COUNT} ")))?;
        Some(template)
    }

    /// The words, in upper case, if the statement has one `{source}`, then one `{chunk}`, and no params.
    fn plain_words(&self) -> Option<Vec<String>> {
        use Fragment::{Chunk, Source, Text};
        let [Text(_), Source { .. }, Text(_), Chunk(_), end @ ..] = self.fragments.as_slice()
        else {
            return None;
        };
        let upper = |word: String| word.to_ascii_uppercase();
        matches!(end, [] | [Text(_)]).then(|| words(&self.text()).into_iter().map(upper).collect())
    }
}

/// A statement of the form `SELECT … FROM {source} WHERE {chunk} [GROUP BY …] [ORDER BY …]`, whose result columns are
/// columns of the source and aggregates.
struct PlainSelect<'a> {
    columns: Vec<&'a [&'a str]>,
    is_grouped: bool,
}

impl<'a> PlainSelect<'a> {
    fn parse(words: &'a [&'a str]) -> Option<PlainSelect<'a>> {
        let (columns, relation) = words.split_at(words.iter().position(|word| *word == "FROM")?);
        let (["SELECT", columns @ ..], ["FROM", "?", relation @ ..]) = (columns, relation) else {
            return None;
        };
        let condition = relation.iter().position(|word| *word == "WHERE")?;
        let (alias, ["WHERE", "?", end @ ..]) = relation.split_at(condition) else { return None };
        let is_ending = |word: &&str| *word == "," || *word == "." || is_operand(word);
        let is_plain = match end {
            [] | [";"] => true,
            ["GROUP" | "ORDER", "BY", end @ .., ";"] | ["GROUP" | "ORDER", "BY", end @ ..] => {
                end.iter().all(is_ending)
            }
            _ => false,
        };
        let columns: Vec<&[&str]> = columns.split(|word| *word == ",").collect();
        let is_known = columns.iter().all(|column| is_column(column) || is_aggregate(column));
        let is_grouped = end.first() == Some(&"GROUP");
        (is_plain && is_known && is_alias(alias)).then_some(PlainSelect { columns, is_grouped })
    }
}

/// Whether a result column is a column of the source.
fn is_column(words: &[&str]) -> bool {
    match words {
        [table, ".", column, alias @ ..] => {
            is_operand(table) && is_operand(column) && is_alias(alias)
        }
        [column, alias @ ..] => is_operand(column) && is_alias(alias),
        [] => false,
    }
}

/// Whether a result column is an aggregate of the rows of a group. Other functions may return several rows.
fn is_aggregate(words: &[&str]) -> bool {
    let Some(end) = words.iter().position(|word| *word == ")") else { return false };
    let (call, alias) = words.split_at(end + 1);
    let is_argument = |word: &&str| matches!(*word, "*" | ".") || is_operand(word);
    match call {
        ["COUNT" | "SUM" | "MIN" | "MAX" | "AVG", "(", arguments @ .., ")"] => {
            arguments.iter().all(is_argument) && is_alias(alias)
        }
        _ => false,
    }
}

fn is_alias(words: &[&str]) -> bool {
    matches!(words, [] | ["AS", _]) || matches!(words, [name] if is_operand(name))
}

/// Whether a word is a name or a number, and no keyword that changes what a SELECT counts.
fn is_operand(word: &str) -> bool {
    const KEYWORDS: [&str; 18] = [
        "DISTINCT",
        "ALL",
        "HAVING",
        "LIMIT",
        "OFFSET",
        "FETCH",
        "UNION",
        "INTERSECT",
        "EXCEPT",
        "WINDOW",
        "OVER",
        "FILTER",
        "ROLLUP",
        "CUBE",
        "GROUPING",
        "SETS",
        "FOR",
        "WITH",
    ];
    word.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '"' | '`'))
        && !KEYWORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_which_column_counts_the_rows_of_the_chunk() {
        for (sql, column) in [
            ("SELECT count(*) FROM {source} WHERE {chunk}", Some(0)),
            ("SELECT a, count(*) n, sum(b) total FROM {source} WHERE {chunk} GROUP BY a", Some(1)),
            ("SELECT count(b), count(*) AS n FROM {source} WHERE {chunk} GROUP BY a;", Some(1)),
            (
                "select v.a, count(*) n from {source} as v where {chunk:v} group by v.a order by 1 desc",
                Some(1),
            ),
            ("SELECT a, sum(b) AS t FROM {source} WHERE {chunk} GROUP BY a", None),
            ("SELECT count(*) FROM {source} WHERE {chunk} AND a > 1", None),
            ("SELECT count(*) FROM {source} WHERE {chunk} OR {chunk}", None),
            ("SELECT count(*) FROM {source} WHERE NOT {chunk}", None),
            ("SELECT count(*) FROM {source} JOIN w ON w.id = a WHERE {chunk}", None),
            ("SELECT count(*) FROM {source}, w WHERE {chunk}", None),
            ("SELECT count(*), unnest(a) FROM {source} WHERE {chunk} GROUP BY 2", None),
            ("SELECT count(*) FROM {source} WHERE {chunk} GROUP BY a HAVING count(*) > 1", None),
            ("SELECT count(*) FROM {source} WHERE {chunk} GROUP BY a LIMIT 5", None),
            ("SELECT count(*) FROM {source} WHERE {chunk} GROUP BY a WITH ROLLUP", None),
            ("SELECT count(*) FROM {source} WHERE {chunk} GROUP BY ROLLUP (a)", None),
            ("SELECT count(*) OVER () FROM {source} WHERE {chunk}", None),
            ("SELECT count(*) FILTER (WHERE a) FROM {source} WHERE {chunk}", None),
            ("SELECT DISTINCT count(*) FROM {source} WHERE {chunk} GROUP BY a", None),
            ("SELECT DISTINCT a, count(*) FROM {source} WHERE {chunk} GROUP BY a", None),
            ("SELECT count(*) + 1 FROM {source} WHERE {chunk}", None),
            ("SELECT count(*) FROM {source} WHERE {chunk} UNION SELECT 1", None),
            ("SELECT count(*) FROM (SELECT 1 FROM {source} WHERE {chunk}) AS x", None),
            ("SELECT count(*) FROM {source} WHERE {chunk} GROUP BY :a", None),
        ] {
            assert_eq!(Template::parse(sql).unwrap().row_count_column(), column, "{sql}");
        }
    }

    #[test]
    fn adds_a_column_that_counts_the_rows_of_the_chunk() {
        let count = |sql: &str| {
            let template = Template::parse(sql).unwrap().with_row_count();
            template.map(|template| template.text().replace(" ? ", "?"))
        };
        for (sql, counting) in [
            (
                "SELECT a, sum(b) AS t FROM {source} WHERE {chunk} GROUP BY a",
                "SELECT a, sum(b) AS t , count(*) AS windlass_rows FROM ? WHERE ? GROUP BY a",
            ),
            (
                "select max(b) -- the greatest\nfrom\n{source} v where {chunk:v};",
                "select max(b) -- the greatest\n, count(*) AS windlass_rows from\n? v where ?;",
            ),
            (
                "SELECT a FROM {source} WHERE {chunk} GROUP BY a",
                "SELECT a , count(*) AS windlass_rows FROM ? WHERE ? GROUP BY a",
            ),
        ] {
            assert_eq!(count(sql).as_deref(), Some(counting));
        }
        for sql in [
            "SELECT a, count(*) FROM {source} WHERE {chunk} GROUP BY a",
            "SELECT a FROM {source} WHERE {chunk}",
            "SELECT a FROM {source} WHERE {chunk} ORDER BY a",
            "SELECT sum(a) FROM {source} WHERE {chunk} AND a > 1",
            "SELECT DISTINCT sum(a) FROM {source} WHERE {chunk} GROUP BY b",
            "SELECT sum(a) FROM {source} WHERE {chunk} GROUP BY b HAVING sum(a) > 1",
            "SELECT sum(a) FROM /* all */ {source} WHERE {chunk}",
        ] {
            assert_eq!(count(sql), None, "{sql}");
        }
    }
}
