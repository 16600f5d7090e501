//! Creates tokens for development, signed with the secret in `[auth]`.

use super::AuthError;
use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Map, Value as Json, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use windlass_core::config::Auth;

/// The content of a token.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    /// The caller's name: `sub`.
    pub subject: String,
    /// The roles.
    pub roles: Vec<String>,
    /// The other claims, each with one value or several.
    pub claims: Vec<(String, Vec<String>)>,
    /// The lifetime.
    pub expires: Duration,
}

/// Creates a token that a server with this configuration accepts.
///
/// # Errors
/// `[auth]` has no secret: tokens signed with a private key come from their issuer.
pub fn make_token(auth: &Auth, request: &TokenRequest) -> Result<String, AuthError> {
    let (secret, field) = match (&auth.key, &auth.key_file) {
        (Some(key), _) => (key.expose().to_owned(), "key"),
        (None, Some(file)) => (std::fs::read_to_string(file).unwrap_or_default(), "key_file"),
        (None, None) => (String::new(), "jwks"),
    };
    let secret = secret.trim();
    if secret.is_empty() || secret.starts_with("-----BEGIN") {
        let detail = "is not a secret, so tokens cannot be signed here; get one from the issuer";
        return Err(AuthError::new(field, detail));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut claims = Map::new();
    for (name, values) in &request.claims {
        let value = match values.as_slice() {
            [single] => json!(single),
            several => json!(several),
        };
        claims.insert(name.clone(), value);
    }
    put(&mut claims, &auth.roles_claim, json!(request.roles));
    claims.insert("sub".to_owned(), json!(request.subject));
    claims.insert("iat".to_owned(), json!(now.as_secs()));
    claims.insert("exp".to_owned(), json!((now + request.expires).as_secs()));
    for (name, value) in [("iss", &auth.issuer), ("aud", &auth.audience)] {
        if let Some(value) = value {
            claims.insert(name.to_owned(), json!(value));
        }
    }
    let key = EncodingKey::from_secret(secret.as_bytes());
    let token = jsonwebtoken::encode(&Header::default(), &claims, &key);
    token.map_err(|error| AuthError::new(field, error.to_string()))
}

/// Inserts the roles at the path that the server reads them from.
fn put(claims: &mut Map<String, Json>, path: &str, value: Json) {
    match path.split_once('.') {
        Some((first, rest)) => {
            let inner = claims.entry(first).or_insert_with(|| json!({}));
            if let Json::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
        None => {
            claims.insert(path.to_owned(), value);
        }
    }
}
