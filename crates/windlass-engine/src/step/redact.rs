//! Replaces secrets in texts that the other side wrote, before they are cut, stored or logged.

use serde_json::Value as Json;
use windlass_core::{ItemError, Secret};

/// The words that must not be repeated. Without any, texts stay as they are.
#[derive(Default)]
pub(super) struct Redactor {
    words: Vec<Vec<u8>>,
}

/// What stands in place of a secret.
const MARK: &str = "…";
/// Shorter words would be found where they mean nothing.
const SHORTEST: usize = 7;

impl Redactor {
    pub(super) fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Redactor {
        let mut words = Vec::new();
        for secret in secrets {
            // A header is often a word and the secret: neither may be told alone.
            for word in std::iter::once(secret.expose()).chain(secret.expose().split(' ')) {
                let in_json = Json::from(word).to_string();
                let in_json = &in_json[1..in_json.len() - 1];
                words.extend([word, in_json].map(|word| word.as_bytes().to_vec()));
            }
        }
        words.retain(|word| word.len() >= SHORTEST);
        words.sort();
        words.dedup();
        Redactor { words }
    }

    /// The text without the secrets.
    pub(super) fn redact(&self, text: &str) -> String {
        // Whole words are taken out of valid text, so that what is left is valid.
        String::from_utf8_lossy(&self.beginning(text.as_bytes(), usize::MAX)).into_owned()
    }

    /// The beginning of the redacted text, of at most this many bytes. Secrets are looked for in the
    /// whole text: one that lies across the cut is replaced as a whole, and one that follows where
    /// others were replaced is not cut at all.
    pub(super) fn beginning(&self, text: &[u8], most: usize) -> Vec<u8> {
        let mut out = Vec::new();
        // Up to where the text is secret. Secrets may overlap.
        let mut secret = 0;
        for (at, byte) in text.iter().enumerate() {
            if out.len() >= most {
                break;
            }
            let rest = &text[at..];
            let found = self.words.iter().filter(|word| rest.starts_with(word)).map(Vec::len).max();
            if let Some(length) = found {
                if at >= secret {
                    out.extend_from_slice(MARK.as_bytes());
                }
                secret = secret.max(at + length);
            }
            if at >= secret {
                out.push(*byte);
            }
        }
        // A mark is shown whole or not at all.
        while out.len() > most {
            out.truncate(out.len() - MARK.len());
        }
        out
    }

    /// The error of an item without the secrets, in its context too.
    pub(super) fn redact_error(&self, error: &mut ItemError) {
        if !self.words.is_empty() {
            error.message = self.redact(&error.message);
            error.context = self.redact_json(std::mem::take(&mut error.context));
        }
    }

    fn redact_json(&self, value: Json) -> Json {
        match value {
            Json::String(text) => Json::String(self.redact(&text)),
            Json::Array(list) => list.into_iter().map(|value| self.redact_json(value)).collect(),
            Json::Object(fields) => {
                let fields = fields.into_iter();
                fields.map(|(name, value)| (self.redact(&name), self.redact_json(value))).collect()
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::excerpt;
    use super::*;

    const TOKEN: &str = "eyJhbGciOi.JIUzI1NiJ9-0123456789";

    fn redactor() -> Redactor {
        let secrets = [format!("Bearer {TOKEN}"), "kö\"nig\\lich".to_owned()];
        Redactor::new(&secrets.map(Secret::from))
    }

    /// No three characters of the token in a row.
    #[track_caller]
    fn has_no_piece(text: &str) {
        for piece in TOKEN.as_bytes().windows(3) {
            let piece = std::str::from_utf8(piece).unwrap();
            assert!(!text.contains(piece), "`{piece}` is in `{text}`");
        }
    }

    #[test]
    fn a_secret_at_any_place_around_the_cut_leaves_no_piece() {
        let redactor = redactor();
        // Every place of one secret, with up to forty others before it, whose marks are shorter than
        // they are and so move the cut.
        for others in [0, 1, 2, 40] {
            for before in 0..260 {
                for secret in [TOKEN.to_owned(), format!("Bearer {TOKEN}")] {
                    let filler = "ä".repeat(before / 2) + &"x".repeat(before % 2);
                    let text = format!(
                        "{}{filler}{secret}{}",
                        format!("{TOKEN} ").repeat(others),
                        "z".repeat(300)
                    );
                    for most in [0, 1, 2, 3, 7, 199, 200, 201] {
                        let cut = redactor.beginning(text.as_bytes(), most);
                        assert!(cut.len() <= most, "{} of {most}", cut.len());
                        has_no_piece(&String::from_utf8_lossy(&cut));
                    }
                    has_no_piece(&excerpt(text.as_bytes(), &redactor));
                    has_no_piece(&redactor.redact(&text));
                }
            }
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        let text = "the token: Bearer, eyJhbGciOi alone, ÄÖÜ…";
        assert_eq!(redactor().redact(text), text);
        assert_eq!(Redactor::default().redact(TOKEN), TOKEN);
        assert_eq!(redactor().redact(&format!("a {TOKEN}, {TOKEN}{TOKEN} b")), "a …, …… b");
        assert_eq!(redactor().beginning("äöü".as_bytes(), 4), "äö".as_bytes());
    }

    #[test]
    fn secrets_that_overlap_and_secrets_in_json_are_replaced() {
        let overlapping = ["abcdefgh", "efghijkl"].map(|word| Secret::from(word.to_owned()));
        assert_eq!(Redactor::new(&overlapping).redact("<abcdefghijkl>"), "<…>");
        let answer = serde_json::json!({ "echo": "kö\"nig\\lich" }).to_string();
        assert_eq!(redactor().redact(&answer), "{\"echo\":\"…\"}");
    }

    #[test]
    fn errors_of_items_are_redacted_with_their_context() {
        let context = serde_json::json!({ "headers": [TOKEN, 7], (TOKEN): { "deep": TOKEN } });
        let mut error = ItemError { context, ..ItemError::permanent(format!("bad {TOKEN}")) };
        redactor().redact_error(&mut error);
        assert_eq!(error.message, "bad …");
        let expected = serde_json::json!({ "headers": ["…", 7], "…": { "deep": "…" } });
        assert_eq!(error.context, expected);
    }
}
