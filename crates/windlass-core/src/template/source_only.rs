//! Whether `{chunk}` of a `map` statement restricts the source and no other relation.

use super::{Fragment, Template, words};

impl Template {
    /// Whether the statement has one `{source}` and one `{chunk}`, and the source alone is in the FROM clause that
    /// `{chunk}` restricts: `… FROM {source} [alias] WHERE … {chunk} …`. Then every column in `{chunk}` is one of
    /// the source, also a system column, which every table has.
    pub fn restricts_only_source(&self) -> bool {
        let is_source = |fragment: &Fragment| matches!(fragment, Fragment::Source { .. });
        let is_chunk = |fragment: &Fragment| matches!(fragment, Fragment::Chunk(_));
        let counts = (
            self.fragments.iter().filter(|fragment| is_source(fragment)).count(),
            self.fragments.iter().filter(|fragment| is_chunk(fragment)).count(),
        );
        let place = |is: &dyn Fn(&Fragment) -> bool| self.fragments.iter().position(is);
        let (Some(source), Some(chunk)) = (place(&is_source), place(&is_chunk)) else {
            return false;
        };
        let Some(Fragment::Text(before)) = source.checked_sub(1).map(|n| &self.fragments[n]) else {
            return false;
        };
        if counts != (1, 1) || chunk < source {
            return false;
        }
        let is_from = |word: &String| word.eq_ignore_ascii_case("FROM");
        let text = |fragment: &Fragment| match fragment {
            Fragment::Text(text) => text.clone(),
            _ => " ? ".to_owned(),
        };
        let between: String = self.fragments[source + 1..chunk].iter().map(text).collect();
        let between: Vec<String> =
            words(&between).iter().map(|word| word.to_ascii_uppercase()).collect();
        let Some(condition) = between.iter().position(|word| word == "WHERE") else { return false };
        let (alias, condition) = between.split_at(condition);
        let is_alias = match alias {
            [] => true,
            [name] => name != ",",
            [first, _] => first == "AS",
            _ => false,
        };
        let has_query = condition.iter().any(|word| word == "SELECT" || word == "FROM");
        words(before).last().is_some_and(is_from) && is_alias && !has_query
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_statements_that_read_the_source_alone() {
        let restricts = |sql: &str| Template::parse(sql).unwrap().restricts_only_source();
        for sql in [
            "SELECT a, count(*) n FROM {source} WHERE {chunk} GROUP BY a",
            "SELECT a FROM {source} AS v WHERE v.a > :least AND {chunk:v}",
            "SELECT b.name, x.n FROM (SELECT a, count(*) n FROM {source} v WHERE {chunk:v} GROUP BY a) x \
             JOIN b ON b.id = x.a",
        ] {
            assert!(restricts(sql), "{sql}");
        }
        for sql in [
            "SELECT a FROM visits WHERE {chunk}",
            "SELECT a FROM {source} v JOIN b ON b.id = v.b WHERE {chunk:v}",
            "SELECT a FROM {source} v, b WHERE {chunk:v}",
            "SELECT a FROM b, {source} v WHERE {chunk:v}",
            "SELECT a FROM {source} WHERE {chunk} AND id IN (SELECT id FROM {source} WHERE {chunk})",
            "SELECT a FROM {source} WHERE id IN (SELECT id FROM b WHERE {chunk})",
        ] {
            assert!(!restricts(sql), "{sql}");
        }
    }
}
