//! Encrypts the submitter's token for storage with a job whose step forwards it.
//!
//! The keys come from the environment and are never stored, so the store alone reveals no token.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use windlass_core::problem::Code;
use windlass_core::{JobId, Problem, Secret};

/// The environment variable that holds the keys as `ID:BASE64,…`. The first key seals, all keys open.
/// To rotate, put a new key in front and remove the old one when its jobs have ended.
pub(crate) const KEYS_VARIABLE: &str = "WINDLASS_TOKEN_KEYS";

/// The keys of this process.
pub(crate) struct TokenVault {
    keys: Vec<(String, LessSafeKey)>,
}

impl TokenVault {
    /// Reads the keys from the environment.
    pub(crate) fn from_env() -> Result<TokenVault, Problem> {
        TokenVault::parse(&std::env::var(KEYS_VARIABLE).unwrap_or_default())
    }

    fn parse(text: &str) -> Result<TokenVault, Problem> {
        let invalid = |detail: &str| {
            let detail =
                format!("{detail}; set it like `{KEYS_VARIABLE}=2026:$(openssl rand -base64 32)`");
            Problem::field(Code::Configuration, KEYS_VARIABLE, detail)
        };
        let mut keys = Vec::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (id, key) =
                entry.split_once(':').ok_or_else(|| invalid("must have the form ID:BASE64"))?;
            let bytes =
                STANDARD.decode(key).map_err(|_| invalid("must have base64 after the ID"))?;
            let key = UnboundKey::new(&AES_256_GCM, &bytes)
                .map_err(|_| invalid("must have keys of 32 bytes"))?;
            keys.push((id.to_owned(), LessSafeKey::new(key)));
        }
        if keys.is_empty() {
            Err(invalid("must hold at least one key"))
        } else {
            Ok(TokenVault { keys })
        }
    }

    /// Seals a token for a job and its redrives. It cannot be opened for another job.
    pub(crate) fn seal(&self, token: &Secret, root: JobId) -> Result<String, Problem> {
        let failed = || Problem::new(Code::Configuration, "cannot seal the token");
        let (id, key) = self.keys.first().ok_or_else(failed)?;
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| failed())?;
        let mut text = token.expose().as_bytes().to_vec();
        let bound = Aad::from(root.as_bytes());
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), bound, &mut text)
            .map_err(|_| failed())?;
        Ok(format!("{id}:{}", STANDARD.encode([&nonce[..], &text].concat())))
    }

    /// Opens what [`TokenVault::seal`] made.
    pub(crate) fn open(&self, sealed: &str, root: JobId) -> Result<Secret, Problem> {
        let failed = |why: &str| {
            let detail = format!("cannot open the submitter's token in this process: {why}");
            Problem::field(Code::Configuration, KEYS_VARIABLE, detail)
        };
        let (id, text) = sealed.split_once(':').ok_or_else(|| failed("it is damaged"))?;
        let known = self.keys.iter().find(|(known, _)| known == id);
        let (_, key) = known.ok_or_else(|| failed(&format!("the key `{id}` is missing")))?;
        let mut bytes = STANDARD.decode(text).map_err(|_| failed("it is damaged"))?;
        let (nonce, text) =
            bytes.split_at_mut_checked(NONCE_LEN).ok_or_else(|| failed("it is damaged"))?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| failed("it is damaged"))?;
        let opened = key.open_in_place(nonce, Aad::from(root.as_bytes()), text);
        let opened = opened.map_err(|_| failed("it was sealed for another job or modified"))?;
        let token = String::from_utf8(opened.to_vec()).map_err(|_| failed("it is damaged"))?;
        Ok(token.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "old:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    const NEW: &str = "new:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

    #[test]
    fn a_token_opens_after_key_rotation_but_only_for_its_own_job() {
        let (job, token) = (JobId::now_v7(), Secret::from("hush".to_owned()));
        let sealed = TokenVault::parse(OLD).unwrap().seal(&token, job).unwrap();
        assert!(!sealed.contains("hush"));
        let rotated = TokenVault::parse(&format!("{NEW}, {OLD}")).unwrap();
        assert_eq!(rotated.open(&sealed, job).unwrap(), token);
        assert!(rotated.open(&sealed, JobId::now_v7()).is_err());
        let error = TokenVault::parse(NEW).unwrap().open(&sealed, job).unwrap_err();
        assert!(error.to_string().contains("`old`"), "{error}");
    }

    #[test]
    fn invalid_keys_are_rejected_with_an_example() {
        for text in ["", "no-colon", "id:!!", "id:AAAA"] {
            let error = TokenVault::parse(text).err().unwrap().to_string();
            assert!(error.contains(KEYS_VARIABLE) && error.contains("openssl"), "{error}");
        }
    }
}
