//! Finds the column of a `map` statement that counts the rows of its chunk.

use super::{Fragment, Template, words};

impl Template {
    /// The position of a result column that counts the rows of the chunk, in a statement of the form
    /// `SELECT …, count(*) … FROM {source} WHERE {chunk} [GROUP BY …] [ORDER BY …]`: the sum of this column
    /// is the number of rows read. `None` for every other statement.
    pub fn row_count_column(&self) -> Option<usize> {
        use Fragment::{Chunk, Source, Text};
        let [Text(_), Source { .. }, Text(_), Chunk(_), end @ ..] = self.fragments.as_slice()
        else {
            return None;
        };
        if !matches!(end, [] | [Text(_)]) {
            return None;
        }
        let words = words(&self.text()).into_iter().map(|word| word.to_ascii_uppercase());
        let words: Vec<String> = words.collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
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
        let count = columns.iter().position(|column| column.starts_with(&["COUNT", "(", "*", ")"]));
        count.filter(|_| is_plain && is_known && is_alias(alias))
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
}
