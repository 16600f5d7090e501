//! Redacts secrets in texts returned by an endpoint, before the texts are truncated, stored or logged.

use serde_json::Value as Json;
use windlass_core::{ItemError, Secret};

/// The secrets to redact. Without any, texts stay as they are.
#[derive(Default)]
pub(super) struct Redactor {
    words: Vec<Vec<u8>>,
}

/// Replaces each secret.
const REPLACEMENT: &str = "…";
/// Shorter words are not redacted: they would match ordinary text.
const MIN_SECRET_BYTES: usize = 7;

impl Redactor {
    pub(super) fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Redactor {
        let mut words = Vec::new();
        for secret in secrets {
            // A header value is often a scheme and the secret, such as `Bearer …`: redact each word too.
            for word in std::iter::once(secret.expose()).chain(secret.expose().split(' ')) {
                let in_json = Json::from(word).to_string();
                let in_json = &in_json[1..in_json.len() - 1];
                words.extend([word, in_json].map(|word| word.as_bytes().to_vec()));
            }
        }
        words.retain(|word| word.len() >= MIN_SECRET_BYTES);
        words.sort();
        words.dedup();
        Redactor { words }
    }

    /// The redacted text.
    pub(super) fn redact(&self, text: &str) -> String {
        // Not lossy: removing whole words from valid UTF-8 leaves valid UTF-8.
        String::from_utf8_lossy(&self.redact_prefix(text.as_bytes(), usize::MAX)).into_owned()
    }

    /// The first bytes of the redacted text, at most `limit`. The text is redacted before it is
    /// truncated, so that no piece of a secret remains at the cut.
    pub(super) fn redact_prefix(&self, text: &[u8], limit: usize) -> Vec<u8> {
        let mut out = Vec::new();
        // End of the secret found so far. Secrets may overlap.
        let mut secret_end = 0;
        for (at, byte) in text.iter().enumerate() {
            if out.len() >= limit {
                break;
            }
            let rest = &text[at..];
            let found = self.words.iter().filter(|word| rest.starts_with(word)).map(Vec::len).max();
            if let Some(length) = found {
                if at >= secret_end {
                    out.extend_from_slice(REPLACEMENT.as_bytes());
                }
                secret_end = secret_end.max(at + length);
            }
            if at >= secret_end {
                out.push(*byte);
            }
        }
        // The replacement is kept whole or not at all.
        while out.len() > limit {
            out.truncate(out.len() - REPLACEMENT.len());
        }
        out
    }

    /// Redacts the error of an item, including its context.
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

    /// Asserts that no three consecutive characters of the token remain.
    #[track_caller]
    fn assert_redacted(text: &str) {
        for piece in TOKEN.as_bytes().windows(3) {
            let piece = std::str::from_utf8(piece).unwrap();
            assert!(!text.contains(piece), "`{piece}` is in `{text}`");
        }
    }

    #[test]
    fn truncating_leaves_no_piece_of_a_secret_wherever_it_is() {
        let redactor = redactor();
        // Every position of one secret, with up to forty secrets before it. Their replacements are
        // shorter and so move the cut.
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
                        let cut = redactor.redact_prefix(text.as_bytes(), most);
                        assert!(cut.len() <= most, "{} of {most}", cut.len());
                        assert_redacted(&String::from_utf8_lossy(&cut));
                    }
                    assert_redacted(&excerpt(text.as_bytes(), &redactor));
                    assert_redacted(&redactor.redact(&text));
                }
            }
        }
    }

    #[test]
    fn text_without_secrets_is_unchanged() {
        let text = "the token: Bearer, eyJhbGciOi alone, ÄÖÜ…";
        assert_eq!(redactor().redact(text), text);
        assert_eq!(Redactor::default().redact(TOKEN), TOKEN);
        assert_eq!(redactor().redact(&format!("a {TOKEN}, {TOKEN}{TOKEN} b")), "a …, …… b");
        assert_eq!(redactor().redact_prefix("äöü".as_bytes(), 4), "äö".as_bytes());
    }

    #[test]
    fn overlapping_secrets_and_secrets_in_json_are_redacted() {
        let overlapping = ["abcdefgh", "efghijkl"].map(|word| Secret::from(word.to_owned()));
        assert_eq!(Redactor::new(&overlapping).redact("<abcdefghijkl>"), "<…>");
        let answer = serde_json::json!({ "echo": "kö\"nig\\lich" }).to_string();
        assert_eq!(redactor().redact(&answer), "{\"echo\":\"…\"}");
    }

    #[test]
    fn item_errors_are_redacted_with_their_context() {
        let context = serde_json::json!({ "headers": [TOKEN, 7], (TOKEN): { "deep": TOKEN } });
        let mut error = ItemError { context, ..ItemError::permanent(format!("bad {TOKEN}")) };
        redactor().redact_error(&mut error);
        assert_eq!(error.message, "bad …");
        let expected = serde_json::json!({ "headers": ["…", 7], "…": { "deep": "…" } });
        assert_eq!(error.context, expected);
    }
}
