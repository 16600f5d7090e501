//! Parses a user's statement with `{chunk}` and `:params`.
//!
//! Strings, quoted names, comments, dollar quotes and `::` casts are skipped, so that a colon or a brace
//! inside them is not a placeholder.

mod row_count;
mod source_only;

pub use row_count::ROW_COUNT;

use std::collections::BTreeSet;

/// A parsed statement, ready for a database to fill in its own placeholders.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    fragments: Vec<Fragment>,
}

/// One piece of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Fragment {
    /// SQL as the user wrote it.
    Text(String),
    /// `{chunk}` or `{chunk:alias}`.
    Chunk(Option<String>),
    /// `:name`, a bound request param.
    Param(String),
    /// `{source}`, the table or query of the source.
    Source {
        /// Whether an alias follows.
        named: bool,
    },
}

impl Template {
    /// Parses a statement.
    ///
    /// # Errors
    /// It has an unknown `{…}`.
    pub fn parse(sql: &str) -> Result<Template, String> {
        let mut fragments = Vec::new();
        let mut text = String::new();
        let mut rest = sql;
        while let Some(first) = rest.chars().next() {
            if let Some(length) = opaque(rest) {
                text.push_str(&rest[..length]);
                rest = &rest[length..];
                continue;
            }
            let (fragment, length) = match first {
                '{' => {
                    let end = rest.find('}').ok_or("a `{` has no `}`")?;
                    (Some(placeholder(&rest[1..end], &rest[end + 1..])?), end + 1)
                }
                ':' => match param(rest) {
                    Some(name) => (Some(Fragment::Param(name.to_owned())), 1 + name.len()),
                    None => (None, 1),
                },
                _ => (None, first.len_utf8()),
            };
            match fragment {
                Some(fragment) => {
                    fragments.push(Fragment::Text(std::mem::take(&mut text)));
                    fragments.push(fragment);
                }
                None => text.push_str(&rest[..length]),
            }
            rest = &rest[length..];
        }
        fragments.push(Fragment::Text(text));
        fragments.retain(|fragment| !matches!(fragment, Fragment::Text(text) if text.is_empty()));
        Ok(Template { fragments })
    }

    /// The pieces in order.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// The names of the params the statement binds.
    pub fn params(&self) -> BTreeSet<&str> {
        fn name(fragment: &Fragment) -> Option<&str> {
            match fragment {
                Fragment::Param(name) => Some(name),
                _ => None,
            }
        }
        self.fragments.iter().filter_map(name).collect()
    }

    /// Whether the statement contains `{chunk}`.
    pub fn is_confined(&self) -> bool {
        self.fragments.iter().any(|fragment| matches!(fragment, Fragment::Chunk(_)))
    }

    /// Whether the statement is `UPDATE table SET … WHERE {chunk}` and nothing else, so that on a
    /// plain table the rows it touches are exactly the chunk's.
    pub fn updates_exactly(&self, table: &str) -> bool {
        let [before @ .., Fragment::Chunk(None)] = self.fragments.as_slice() else { return false };
        if before.iter().any(|fragment| matches!(fragment, Fragment::Chunk(_))) {
            return false;
        }
        let words = words(&self.text());
        let is = |word: Option<&String>, wanted: &str| {
            word.is_some_and(|word| word.eq_ignore_ascii_case(wanted))
        };
        let mut outermost = 0;
        let mut depth = 0;
        for word in &words {
            match word.as_str() {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ if depth == 0 && ["FROM", "WHERE"].iter().any(|w| is(Some(word), w)) => {
                    outermost += 1;
                }
                _ => {}
            }
        }
        is(words.first(), "UPDATE")
            && words.get(1).is_some_and(|word| names(word, table))
            && is(words.get(2), "SET")
            && is(words.get(words.len().wrapping_sub(2)), "WHERE")
            && outermost == 1
    }

    /// Whether the statement is an UPDATE or a DELETE of this table alone, so that the rows it affects
    /// are rows of the table. False where that cannot be seen without the database's own parser.
    pub fn changes(&self, table: &str) -> bool {
        match self.changed() {
            // `{source}`
            Some((_, name)) if name == "?" => true,
            // `archive.visits` and `visits` may be two tables: only the database knows where it looks
            // for a name without a schema.
            Some((_, name)) => name.eq_ignore_ascii_case(table),
            None => false,
        }
    }

    /// Whether the statement is a DELETE.
    pub fn deletes(&self) -> bool {
        self.changed().is_some_and(|(verb, _)| verb == "DELETE")
    }

    /// `UPDATE` or `DELETE`, and the one table that it names.
    fn changed(&self) -> Option<(String, String)> {
        const VERBS: [&str; 5] = ["UPDATE", "DELETE", "INSERT", "MERGE", "REPLACE"];
        const MODIFIERS: [&str; 5] = ["ONLY", "LOW_PRIORITY", "QUICK", "IGNORE", "FROM"];
        let words: Vec<String> = words(&self.text());
        let mut depth = 0;
        let mut outermost = words.iter().filter(|word| {
            match word.as_str() {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => return depth == 0,
            }
            false
        });
        let mut upper = outermost.by_ref().map(|word| word.to_ascii_uppercase());
        let verb = upper.find(|word| VERBS.contains(&word.as_str()))?;
        let mut rest = outermost.map(String::as_str).peekable();
        if verb == "UPDATE" && rest.next_if(|word| word.eq_ignore_ascii_case("OR")).is_some() {
            rest.next();
        }
        let is_modifier = |word: &&str| MODIFIERS.iter().any(|m| word.eq_ignore_ascii_case(m));
        let mut modifiers = Vec::new();
        while let Some(modifier) = rest.next_if(is_modifier) {
            modifiers.push(modifier.to_ascii_uppercase());
        }
        // `DELETE v FROM visits AS v` names its table elsewhere.
        let deletes = verb == "DELETE" && modifiers.iter().any(|word| word == "FROM");
        if verb != "UPDATE" && !deletes {
            return None;
        }
        let bare = |word: &str| word.trim_matches(['"', '`']).to_owned();
        let mut name = bare(rest.next()?);
        while rest.next_if_eq(&".").is_some() {
            name = format!("{name}.{}", bare(rest.next()?));
        }
        // MySQL changes several tables in one statement.
        let ends = ["SET", "WHERE", "USING"];
        let mut between =
            rest.take_while(|word| !ends.iter().any(|end| word.eq_ignore_ascii_case(end)));
        let several =
            between.any(|word| word == "," || word.to_ascii_uppercase().ends_with("JOIN"));
        (!several).then_some((verb, name))
    }

    /// The statement with a question mark for everything that is filled in.
    fn text(&self) -> String {
        let text = |fragment: &Fragment| match fragment {
            Fragment::Text(text) => text.clone(),
            _ => " ? ".to_owned(),
        };
        self.fragments.iter().map(text).collect()
    }

    /// The columns an `UPDATE … SET` assigns, as far as they can be seen without the database's
    /// own parser: what stands before a `=` at the outermost level between SET and FROM or WHERE.
    pub fn assigned_columns(&self) -> Vec<String> {
        let mut columns = Vec::new();
        // A target is expected after SET and after every outermost comma that follows it; it is a
        // column, or a list of columns in parentheses.
        let (mut depth, mut in_set, mut expected) = (0, false, false);
        for word in words(&self.text()) {
            match word.to_ascii_uppercase().as_str() {
                "(" => depth += 1,
                ")" => depth -= 1,
                "SET" if depth == 0 => (in_set, expected) = (true, true),
                "FROM" | "WHERE" | "RETURNING" | ";" if depth == 0 => in_set = false,
                "=" => expected = false,
                "," => expected |= in_set && depth == 0,
                _ if expected => columns.push(word.trim_matches(['"', '`']).to_owned()),
                _ => {}
            }
        }
        columns
    }
}

/// Whether a word of a statement names the table. A name without quotes is folded by databases.
fn names(word: &str, table: &str) -> bool {
    let bare = word.trim_matches(['"', '`']);
    bare == table && (bare.len() < word.len() || table == table.to_lowercase())
}

fn placeholder(name: &str, after: &str) -> Result<Fragment, String> {
    match name.split_once(':') {
        None if name == "chunk" => Ok(Fragment::Chunk(None)),
        None if name == "source" => Ok(Fragment::Source { named: is_named(after) }),
        Some(("chunk", alias)) if is_name(alias) => Ok(Fragment::Chunk(Some(alias.to_owned()))),
        _ => Err(format!(
            "unknown `{{{name}}}`; expected `{{chunk}}`, `{{chunk:alias}}` or `{{source}}`"
        )),
    }
}

/// Whether an alias follows `{source}`.
fn is_named(after: &str) -> bool {
    const NO_NAMES: [&str; 16] = [
        "WHERE", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "ON", "USING",
        "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "WINDOW",
    ];
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let after = after.trim_start();
    let word: String = after.chars().take_while(|c| is_part(*c)).collect();
    let quoted = after.starts_with(['"', '`']);
    quoted || !word.is_empty() && !NO_NAMES.contains(&word.to_ascii_uppercase().as_str())
}

fn param(rest: &str) -> Option<&str> {
    let name = &rest[1..];
    let length = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    is_name(&name[..length]).then(|| &name[..length])
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// The length of a string, quoted name, comment, dollar quote or cast at the start of the text.
fn opaque(rest: &str) -> Option<usize> {
    let until = |start: usize, end: &str| {
        rest.get(start..)
            .and_then(|tail| tail.find(end))
            .map_or(rest.len(), |n| start + n + end.len())
    };
    let mut chars = rest.chars();
    match (chars.next()?, chars.next()) {
        (':', Some(':')) => Some(2),
        ('-', Some('-')) => Some(until(2, "\n")),
        ('/', Some('*')) => Some(until(2, "*/")),
        ('E' | 'e', Some('\'')) => Some(1 + escaped_string(&rest[1..])),
        // A doubled quote ends one string and begins the next, which comes to the same.
        (quote @ ('\'' | '"' | '`'), _) => Some(until(1, &quote.to_string())),
        ('$', _) => {
            let tag = rest[1..].find('$').map(|n| &rest[..n + 2])?;
            let inner = &tag[1..tag.len() - 1];
            (inner.is_empty() || is_name(inner)).then(|| until(tag.len(), tag))
        }
        (letter, _) if letter.is_alphanumeric() || letter == '_' => {
            Some(rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()))
        }
        _ => None,
    }
}

/// The length of a PostgreSQL `E'…'` string, in which a backslash hides the quote after it.
fn escaped_string(rest: &str) -> usize {
    let mut hidden = false;
    for (place, c) in rest.char_indices().skip(1) {
        match c {
            _ if hidden => hidden = false,
            '\\' => hidden = true,
            '\'' => return place + 1,
            _ => {}
        }
    }
    rest.len()
}

fn words(sql: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = opaque(rest).unwrap_or(first.len_utf8());
        let word = &rest[..length];
        if !word.trim().is_empty() && !word.starts_with("--") && !word.starts_with("/*") {
            words.push(word.to_owned());
        }
        rest = &rest[length..];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(sql: &str) -> Template {
        Template::parse(sql).unwrap()
    }

    #[test]
    fn finds_chunks_and_params_and_nothing_inside_strings() {
        let sql = "UPDATE v SET a = :month, b = ':no', c = x::int, d = $$ {no} :no $$ -- {no}\n\
                   /* :no */ FROM w WHERE {chunk:v} AND E'\\':no' <> \"a:b\" AND {chunk}";
        let template = parse(sql);
        assert_eq!(template.params().into_iter().collect::<Vec<_>>(), ["month"]);
        let chunks: Vec<_> =
            template.fragments().iter().filter(|f| matches!(f, Fragment::Chunk(_))).collect();
        assert_eq!(chunks, [&Fragment::Chunk(Some("v".into())), &Fragment::Chunk(None)]);
    }

    #[test]
    fn an_unknown_placeholder_is_refused() {
        assert!(
            Template::parse("UPDATE v SET a = 1 WHERE {chnk}").unwrap_err().contains("{chunk}")
        );
        assert!(Template::parse("UPDATE v SET a = 1 WHERE {chunk").is_err());
    }

    #[test]
    fn knows_an_update_of_exactly_the_chunk() {
        for exact in [
            "UPDATE v SET a = a + 1 WHERE {chunk}",
            "update \"v\" set a = (SELECT max(x) FROM w WHERE w.id = :p) where {chunk}",
        ] {
            assert!(parse(exact).updates_exactly("v"), "{exact}");
        }
        for other in [
            "UPDATE w SET a = 1 WHERE {chunk}",
            "UPDATE v SET a = 1 WHERE {chunk} AND b",
            "UPDATE v SET a = 1 WHERE b AND {chunk}",
            "UPDATE v SET a = 1 WHERE NOT {chunk}",
            "UPDATE v SET a = w.a FROM w WHERE {chunk}",
            "UPDATE v AS x SET a = 1 WHERE {chunk}",
            "DELETE FROM v WHERE {chunk}",
            "UPDATE v SET a = 1 WHERE {chunk:v}",
        ] {
            assert!(!parse(other).updates_exactly("v"), "{other}");
        }
    }

    #[test]
    fn knows_which_table_is_changed() {
        for own in [
            "UPDATE v SET a = 1 WHERE {chunk}",
            "update only \"V\" AS x SET a = w.a FROM w WHERE {chunk:x} AND w.id = x.id",
            "UPDATE OR IGNORE v SET a = 1 WHERE {chunk}",
            "DELETE FROM v WHERE {chunk} AND a",
            "DELETE FROM {source} WHERE {chunk}",
            "WITH w AS (SELECT id FROM u) UPDATE v SET a = 1 FROM w WHERE {chunk:v} AND w.id = v.id",
        ] {
            assert!(parse(own).changes("v"), "{own}");
        }
        for other in [
            "UPDATE w SET a = 1 WHERE id IN (SELECT id FROM v WHERE {chunk})",
            "INSERT INTO v SELECT * FROM v WHERE {chunk}",
            "UPDATE v JOIN w ON w.id = v.id SET v.a = 1, w.a = 1 WHERE {chunk:v}",
            "UPDATE v, w SET v.a = 1, w.a = 1 WHERE {chunk:v} AND w.id = v.id",
            "UPDATE v STRAIGHT_JOIN w ON w.id = v.id SET w.a = 1 WHERE {chunk:v}",
            "UPDATE app.v SET a = 1 WHERE {chunk}",
            "DELETE v, w FROM v JOIN w ON w.id = v.id WHERE {chunk:v}",
            "SELECT f(id) FROM v WHERE {chunk}",
        ] {
            assert!(!parse(other).changes("v"), "{other}");
        }
        assert!(!parse("UPDATE a.v SET x = 1 WHERE {chunk}").changes("b.v"));
        assert!(!parse("UPDATE v SET x = 1 WHERE {chunk}").changes("b.v"));
        assert!(parse("UPDATE b.V SET x = 1 WHERE {chunk}").changes("b.v"));
        assert!(parse("DELETE FROM v WHERE {chunk}").deletes());
        assert!(!parse("UPDATE v SET a = 1 WHERE {chunk}").deletes());
    }

    #[test]
    fn sees_what_an_update_assigns() {
        let sql = "UPDATE v SET a = f(b = 1, c), \"B\" = (SELECT d = e FROM g), x=:p FROM h WHERE {chunk} AND q = 1";
        assert_eq!(parse(sql).assigned_columns(), ["a", "B", "x"]);
        assert_eq!(
            parse("UPDATE v SET (a, b) = (1, 2) WHERE {chunk}").assigned_columns(),
            ["a", "b"]
        );
        assert!(parse("DELETE FROM v WHERE {chunk} AND a = 1").assigned_columns().is_empty());
    }

    proptest! {
        #[test]
        fn nothing_the_user_wrote_is_lost(sql in "[a-z :'\"${}\\-/*\n]{0,40}") {
            if let Ok(template) = Template::parse(&sql) {
                let again: String = template.fragments().iter().map(|fragment| match fragment {
                    Fragment::Text(text) => text.clone(),
                    Fragment::Chunk(None) => "{chunk}".to_owned(),
                    Fragment::Chunk(Some(alias)) => format!("{{chunk:{alias}}}"),
                    Fragment::Param(name) => format!(":{name}"),
                    Fragment::Source { .. } => "{source}".to_owned(),
                }).collect();
                prop_assert_eq!(again, sql);
            }
        }
    }
}
