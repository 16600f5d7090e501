//! The keys that verify tokens: one static key, or a JSON Web Key Set that the issuer rotates.

use super::AuthError;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use parking_lot::{Mutex, RwLock};
use serde::Deserialize;
use serde_json::Value as Json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_core::config::{Auth, is_plaintext};

/// A key and the only algorithm it may be used with.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) key: DecodingKey,
    pub(super) algorithm: Algorithm,
}

/// All keys that verify tokens.
pub(super) enum VerificationKeys {
    Static(Key),
    Jwks(JwkSet),
}

/// A JSON Web Key Set, cached as it was last read.
pub(super) struct JwkSet {
    /// A URL or a file.
    location: String,
    client: reqwest::Client,
    cached: RwLock<CachedKeys>,
    /// When a refresh was last started. Bounds the refreshes that tokens with unknown keys can cause.
    last_refresh: Mutex<Option<Instant>>,
}

struct CachedKeys {
    keys: Arc<[(Option<String>, Key)]>,
    read_at: Instant,
}

/// The minimum time between two refreshes of the set.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_secs(60);
/// Cached keys older than this are refreshed before use, so that a withdrawn key stops being accepted.
const KEY_TTL: Duration = Duration::from_secs(600);
/// The maximum size of a set.
const MAX_JWKS_BYTES: usize = 1 << 20;
/// How long the issuer may take to respond.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// The minimum length of a secret for HS256.
const MIN_SECRET_BYTES: usize = 32;

/// Checks that the keys of `[auth]` are usable: the file can be read, or the issuer responds with a
/// set that has a supported key.
///
/// # Errors
/// The field of `[auth]` and what is wrong with it.
pub async fn check_keys(auth: &Auth) -> Result<(), AuthError> {
    let Some(location) =
        auth.jwks.clone().filter(|_| auth.key.is_none() && auth.key_file.is_none())
    else {
        return VerificationKeys::load(auth).await.map(drop);
    };
    let set = JwkSet::new(location, auth.insecure)?;
    set.refresh().await.map_err(|detail| AuthError::new("jwks", detail))?;
    match set.cached.read().keys.is_empty() {
        true => Err(AuthError::new("jwks", "has no RSA, P-256 or Ed25519 public key")),
        false => Ok(()),
    }
}

impl VerificationKeys {
    pub(super) async fn load(auth: &Auth) -> Result<VerificationKeys, AuthError> {
        if let Some(key) = &auth.key {
            return Ok(VerificationKeys::Static(parse_key(key.expose(), "key")?));
        }
        if let Some(file) = &auth.key_file {
            let text = std::fs::read_to_string(file);
            let text =
                text.map_err(|error| AuthError::new("key_file", format!("{file}: {error}")))?;
            return Ok(VerificationKeys::Static(parse_key(text.trim(), "key_file")?));
        }
        let location = auth.jwks.clone().unwrap_or_default();
        let set = JwkSet::new(location, auth.insecure)?;
        // The server starts without its issuer: the next token triggers another attempt.
        if let Err(error) = set.refresh().await {
            tracing::warn!(%error, "failed to read auth.jwks; retrying when a token arrives");
        }
        Ok(VerificationKeys::Jwks(set))
    }

    /// The key that a token names by `kid`.
    pub(super) async fn find(&self, kid: Option<&str>) -> Option<Key> {
        match self {
            VerificationKeys::Static(key) => Some(key.clone()),
            VerificationKeys::Jwks(set) => set.find(kid).await,
        }
    }
}

/// Parses a public key in PEM, whose kind determines the algorithm, or else a secret for HS256.
fn parse_key(text: &str, field: &'static str) -> Result<Key, AuthError> {
    let bytes = text.as_bytes();
    if text.contains("PRIVATE KEY") {
        return Err(AuthError::new(field, "is a private key; use the public key of the pair"));
    }
    if text.starts_with("-----BEGIN") {
        let rsa = DecodingKey::from_rsa_pem(bytes).map(|key| (key, Algorithm::RS256));
        let ec = || DecodingKey::from_ec_pem(bytes).map(|key| (key, Algorithm::ES256));
        let ed = || DecodingKey::from_ed_pem(bytes).map(|key| (key, Algorithm::EdDSA));
        let (key, algorithm) = rsa.or_else(|_| ec()).or_else(|_| ed()).map_err(|_| {
            AuthError::new(field, "is not a valid RSA, P-256 or Ed25519 public key")
        })?;
        return Ok(Key { key, algorithm });
    }
    if bytes.len() < MIN_SECRET_BYTES {
        let detail = format!(
            "the secret must have at least {MIN_SECRET_BYTES} bytes, got {}; `openssl rand -hex 32` \
             generates one",
            bytes.len()
        );
        return Err(AuthError::new(field, detail));
    }
    Ok(Key { key: DecodingKey::from_secret(bytes), algorithm: Algorithm::HS256 })
}

impl JwkSet {
    fn new(location: String, insecure: bool) -> Result<JwkSet, AuthError> {
        if is_plaintext(&location) && !insecure {
            let detail = "uses http://, so that an attacker on the network could insert a key; use \
                          https://";
            return Err(AuthError::new("jwks", detail));
        }
        let client = windlass_engine::client().and_then(|client| {
            client.timeout(FETCH_TIMEOUT).build().map_err(|error| error.to_string())
        });
        let client = client.map_err(|detail| AuthError::new("jwks", detail))?;
        let cached = RwLock::new(CachedKeys { keys: Arc::new([]), read_at: Instant::now() });
        Ok(JwkSet { location, client, cached, last_refresh: Mutex::default() })
    }

    async fn find(&self, kid: Option<&str>) -> Option<Key> {
        let stale = self.cached.read().read_at.elapsed() > KEY_TTL;
        if let Some(key) = self.lookup(kid)
            && !stale
        {
            return Some(key);
        }
        if self.may_refresh()
            && let Err(error) = self.refresh().await
        {
            tracing::warn!(%error, "failed to refresh auth.jwks; using the cached keys");
        }
        self.lookup(kid)
    }

    /// The cached key with this id. A token without `kid` matches only a set of one key.
    fn lookup(&self, kid: Option<&str>) -> Option<Key> {
        let keys = self.cached.read().keys.clone();
        match (kid, &*keys) {
            (None, [(_, only)]) => Some(only.clone()),
            (None, _) => None,
            (Some(kid), keys) => {
                let named = keys.iter().find(|(name, _)| name.as_deref() == Some(kid));
                named.map(|(_, key)| key.clone())
            }
        }
    }

    fn may_refresh(&self) -> bool {
        let mut last = self.last_refresh.lock();
        let due = last.is_none_or(|at| at.elapsed() >= MIN_REFRESH_INTERVAL);
        if due {
            *last = Some(Instant::now());
        }
        due
    }

    async fn refresh(&self) -> Result<(), String> {
        let text = if self.location.starts_with("https://") || self.location.starts_with("http://")
        {
            self.fetch().await.map_err(|error| error.without_url().to_string())?
        } else {
            tokio::fs::read(&self.location).await.map_err(|error| error.to_string())?
        };
        let keys = parse(&text)?;
        *self.cached.write() = CachedKeys { keys: keys.into(), read_at: Instant::now() };
        Ok(())
    }

    async fn fetch(&self) -> reqwest::Result<Vec<u8>> {
        let mut response = self.client.get(&self.location).send().await?.error_for_status()?;
        let mut text = Vec::new();
        while let Some(part) = response.chunk().await?
            && text.len() < MAX_JWKS_BYTES
        {
            text.extend_from_slice(&part);
        }
        Ok(text)
    }
}

/// The public signature keys of a set. Secrets and keys of other kinds are ignored.
fn parse(text: &[u8]) -> Result<Vec<(Option<String>, Key)>, String> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Json>,
    }
    let set: Set = serde_json::from_slice(text).map_err(|_| "is not a JSON Web Key Set")?;
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
