//! Groups errors: the text of an error without the values in it.

/// The fingerprint of an error: every word with a digit and every quoted text is replaced by `…`, so that
/// `row 17 is bad` and `row 18 is bad` have the same. The quoted name of a constraint or column stays.
pub fn error_fingerprint(error: &str) -> String {
    let mut rest = error;
    let mut made = Pattern::default();
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '\'' | '"' | '`' if !made.ends_in_word() => quoted(rest, first),
            _ => None,
        };
        let length = if let Some(text) = taken {
            if made.calls_a_name() {
                made.push(text)
            } else {
                made.hole()
            }
            text.len()
        } else if is_word(first) {
            let length = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
            let word = &rest[..length];
            if word.contains(|letter: char| letter.is_ascii_digit()) {
                made.hole();
            } else {
                made.push(word);
            }
            length
        } else {
            made.push(&rest[..first.len_utf8()]);
            first.len_utf8()
        };
        rest = &rest[length..];
        if made.text.len() > MOST {
            break;
        }
    }
    made.cut()
}

/// The fingerprint is an index key, so its length is limited.
const MOST: usize = 300;

/// Words after which databases quote the name of an object.
const CALLED: [&str; 10] = [
    "constraint",
    "column",
    "field",
    "function",
    "index",
    "key",
    "relation",
    "schema",
    "table",
    "type",
];

#[derive(Default)]
struct Pattern {
    text: String,
}

impl Pattern {
    fn push(&mut self, text: &str) {
        if text.chars().all(char::is_whitespace) {
            if !self.text.ends_with(' ') {
                self.text.push(' ');
            }
        } else {
            self.text.push_str(text);
        }
    }

    /// Replaces a value. Values with only punctuation between them are one: a time, a list.
    fn hole(&mut self) {
        let before = self.text.trim_end_matches([' ', '.', ',', ':', ';', '/', '+', '-']);
        if before.ends_with('…') {
            self.text.truncate(before.len());
        } else {
            self.text.push('…');
        }
    }

    fn ends_in_word(&self) -> bool {
        self.text.ends_with(|letter| is_word(letter) || letter == '…')
    }

    /// Whether the name of an object follows.
    fn calls_a_name(&self) -> bool {
        let last = self.text.trim_end().rsplit(|letter| !is_word(letter)).next();
        last.is_some_and(|word| CALLED.iter().any(|called| word.eq_ignore_ascii_case(called)))
    }

    fn cut(self) -> String {
        let text = self.text.trim();
        let most = (0..=MOST.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        text[..most.unwrap_or_default()].trim_end().to_owned()
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The text from a quote to its end, which is followed by something other than a letter.
fn quoted(text: &str, quote: char) -> Option<&str> {
    let inside = &text[1..];
    let mut closes = inside.match_indices(quote).map(|(at, _)| at + 1);
    let close = closes.find(|at| !inside[*at..].starts_with(is_word))?;
    Some(&text[..=close])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_left_out_and_names_stay() {
        for (error, expected) in [
            ("row 17 is bad", "row … is bad"),
            ("rows 1, 2, 3 are bad", "rows … are bad"),
            ("at 2025-01-02 10:11:12.5: -3.5 is too little", "at … is too little"),
            ("no user 0194fdc2-fa2f-4cc0-81d3-ff1204f1d7a2", "no user …"),
            (
                "duplicate key value violates unique constraint \"a_pkey2\"",
                "duplicate key value violates unique constraint \"a_pkey2\"",
            ),
            ("Key (id)=(5) already exists.", "Key (id)=(…) already exists."),
            ("Duplicate entry 'x' for key 'PRIMARY'", "Duplicate entry … for key 'PRIMARY'"),
            ("invalid input for type integer: \"abc\"", "invalid input for type integer: …"),
            ("it can't be; it isn't", "it can't be; it isn't"),
            ("'it's' is no number", "… is no number"),
            ("  two\n  lines ", "two lines"),
            ("an open ' quote", "an open ' quote"),
            ("naïve 'ß' x", "naïve … x"),
            ("", ""),
        ] {
            assert_eq!(error_fingerprint(error), expected, "{error}");
        }
    }

    #[test]
    fn a_pattern_is_short_enough_for_an_index_and_its_own_pattern() {
        let long = "ä ".repeat(1000);
        assert!(error_fingerprint(&long).len() <= MOST);
        for error in ["row 17 is bad", "at 10:11", long.as_str(), "a 'b' c"] {
            assert_eq!(error_fingerprint(&error_fingerprint(error)), error_fingerprint(error));
        }
    }
}
