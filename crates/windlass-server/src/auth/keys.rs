//! The keys that tokens are verified with: one that is given, or a set that its issuer rotates.

use super::AuthError;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value as Json;
use std::sync::{Arc, RwLock, RwLockReadGuard};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use windlass_core::config::{Auth, is_plaintext};

/// A key and the one algorithm it is for.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) key: DecodingKey,
    pub(super) algorithm: Algorithm,
}

/// All keys.
pub(super) enum Keys {
    Given(Key),
    Set(JwkSet),
}

/// A set of keys at its issuer's, as it was last read.
pub(super) struct JwkSet {
    place: String,
    client: reqwest::Client,
    known: RwLock<Known>,
    /// When it was last read again; nothing that strangers send makes that more often.
    asked: Mutex<Option<Instant>>,
}

struct Known {
    keys: Arc<[(Option<String>, Key)]>,
    read: Instant,
}

/// The set is read again at most so often.
const BETWEEN: Duration = Duration::from_secs(60);
/// A key that its issuer withdrew is believed no longer than this, if the issuer can be reached.
const FRESH: Duration = Duration::from_secs(600);
/// A set may not be longer than this.
const MOST_BYTES: usize = 1 << 20;
/// How long the issuer may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The shortest secret that HS256 allows.
const SHORTEST_SECRET: usize = 32;

/// Tries whether the keys of `[auth]` are there: the file can be read, the issuer answers with keys
/// that we can use.
pub async fn try_keys(auth: &Auth) -> Result<(), AuthError> {
    let Some(place) = auth.jwks.clone().filter(|_| auth.key.is_none() && auth.key_file.is_none())
    else {
        return Keys::load(auth).await.map(drop);
    };
    let set = JwkSet::new(place, auth.insecure)?;
    set.read().await.map_err(|detail| AuthError::new("jwks", detail))?;
    match set.known().keys.is_empty() {
        true => Err(AuthError::new("jwks", "has no public key of RSA, P-256 or Ed25519")),
        false => Ok(()),
    }
}

impl Keys {
    pub(super) async fn load(auth: &Auth) -> Result<Keys, AuthError> {
        if let Some(key) = &auth.key {
            return Ok(Keys::Given(given(key.expose(), "key")?));
        }
        if let Some(file) = &auth.key_file {
            let text = std::fs::read_to_string(file);
            let text =
                text.map_err(|error| AuthError::new("key_file", format!("{file}: {error}")))?;
            return Ok(Keys::Given(given(text.trim(), "key_file")?));
        }
        let place = auth.jwks.clone().unwrap_or_default();
        let set = JwkSet::new(place, auth.insecure)?;
        // An issuer that is away for the moment is asked again when a token comes.
        if let Err(error) = set.read().await {
            tracing::warn!(%error, "auth.jwks cannot be read yet");
        }
        Ok(Keys::Set(set))
    }

    /// The key a token names.
    pub(super) async fn find(&self, kid: Option<&str>) -> Option<Key> {
        match self {
            Keys::Given(key) => Some(key.clone()),
            Keys::Set(set) => set.find(kid).await,
        }
    }
}

/// A public key as PEM, whose kind decides the algorithm, or else a secret.
fn given(text: &str, field: &'static str) -> Result<Key, AuthError> {
    let bytes = text.as_bytes();
    if text.contains("PRIVATE KEY") {
        return Err(AuthError::new(field, "is a private key; its public half would be right"));
    }
    if text.starts_with("-----BEGIN") {
        let rsa = DecodingKey::from_rsa_pem(bytes).map(|key| (key, Algorithm::RS256));
        let ec = || DecodingKey::from_ec_pem(bytes).map(|key| (key, Algorithm::ES256));
        let ed = || DecodingKey::from_ed_pem(bytes).map(|key| (key, Algorithm::EdDSA));
        let (key, algorithm) = rsa.or_else(|_| ec()).or_else(|_| ed()).map_err(|_| {
            AuthError::new(field, "is no public key of RSA, P-256 or Ed25519 that can be read")
        })?;
        return Ok(Key { key, algorithm });
    }
    if bytes.len() < SHORTEST_SECRET {
        let detail = format!(
            "is a secret of {} bytes; {SHORTEST_SECRET} or more would be right, as `openssl rand \
             -hex 32` makes them",
            bytes.len()
        );
        return Err(AuthError::new(field, detail));
    }
    Ok(Key { key: DecodingKey::from_secret(bytes), algorithm: Algorithm::HS256 })
}

impl JwkSet {
    fn new(place: String, insecure: bool) -> Result<JwkSet, AuthError> {
        if is_plaintext(&place) && !insecure {
            let detail = "is read over http://, where anybody between could put a key of their own; \
                          https:// would be right";
            return Err(AuthError::new("jwks", detail));
        }
        let client = windlass_engine::client()
            .and_then(|client| client.timeout(PATIENCE).build().map_err(|error| error.to_string()));
        let client = client.map_err(|detail| AuthError::new("jwks", detail))?;
        let known = Known { keys: Arc::new([]), read: Instant::now() };
        Ok(JwkSet { place, client, known: RwLock::new(known), asked: Mutex::default() })
    }

    async fn find(&self, kid: Option<&str>) -> Option<Key> {
        let stale = self.known().read.elapsed() > FRESH;
        if let Some(key) = self.look_up(kid)
            && !stale
        {
            return Some(key);
        }
        if self.may_ask()
            && let Err(error) = self.read().await
        {
            tracing::warn!(%error, "auth.jwks cannot be read; its keys stay as they were");
        }
        self.look_up(kid)
    }

    /// A token without a key's name fits a set of one.
    fn look_up(&self, kid: Option<&str>) -> Option<Key> {
        let keys = self.known().keys.clone();
        match (kid, &*keys) {
            (None, [(_, only)]) => Some(only.clone()),
            (None, _) => None,
            (Some(kid), keys) => {
                let named = keys.iter().find(|(name, _)| name.as_deref() == Some(kid));
                named.map(|(_, key)| key.clone())
            }
        }
    }

    fn may_ask(&self) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let due = asked.is_none_or(|at| at.elapsed() >= BETWEEN);
        if due {
            *asked = Some(Instant::now());
        }
        due
    }

    async fn read(&self) -> Result<(), String> {
        let text = if self.place.starts_with("https://") || self.place.starts_with("http://") {
            self.fetch().await.map_err(|error| error.without_url().to_string())?
        } else {
            tokio::fs::read(&self.place).await.map_err(|error| error.to_string())?
        };
        let keys = parse(&text)?;
        let known = Known { keys: keys.into(), read: Instant::now() };
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }

    async fn fetch(&self) -> reqwest::Result<Vec<u8>> {
        let mut response = self.client.get(&self.place).send().await?.error_for_status()?;
        let mut text = Vec::new();
        while let Some(part) = response.chunk().await?
            && text.len() < MOST_BYTES
        {
            text.extend_from_slice(&part);
        }
        Ok(text)
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The public signature keys of a set. Others in it, secrets first of all, are passed over.
fn parse(text: &[u8]) -> Result<Vec<(Option<String>, Key)>, String> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Json>,
    }
    let set: Set = serde_json::from_slice(text).map_err(|_| "is no JSON Web Key Set")?;
    let keys = set.keys.into_iter().filter_map(|key| {
        let jwk: Jwk = serde_json::from_value(key).ok()?;
        let algorithm = algorithm(&jwk)?;
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        Some((jwk.common.key_id, Key { key, algorithm }))
    });
    Ok(keys.collect())
}

fn algorithm(jwk: &Jwk) -> Option<Algorithm> {
    if jwk.common.public_key_use.as_ref().is_some_and(|used| *used != PublicKeyUse::Signature) {
        return None;
    }
    let operations = jwk.common.key_operations.as_ref();
    if operations.is_some_and(|operations| !operations.contains(&KeyOperations::Verify)) {
        return None;
    }
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            Algorithm::ES256
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            Algorithm::EdDSA
        }
        _ => return None,
    };
    let named = jwk.common.key_algorithm.map(|named| named.to_string());
    named.is_none_or(|named| named == format!("{algorithm:?}")).then_some(algorithm)
}
