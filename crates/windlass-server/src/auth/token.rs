//! Tokens for development, signed with the secret that the server verifies with.

use super::AuthError;
use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Map, Value as Json, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use windlass_core::config::Auth;

/// What a token is to say.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    /// The caller's name.
    pub subject: String,
    /// Their roles.
    pub roles: Vec<String>,
    /// Their claims, each with one value or several.
    pub claims: Vec<(String, Vec<String>)>,
    /// How long it is good for.
    pub expires: Duration,
}

/// Makes a token that the server with this configuration accepts.
pub fn make_token(auth: &Auth, request: &TokenRequest) -> Result<String, AuthError> {
    let (secret, field) = match (&auth.key, &auth.key_file) {
        (Some(key), _) => (key.expose().to_owned(), "key"),
        (None, Some(file)) => (std::fs::read_to_string(file).unwrap_or_default(), "key_file"),
        (None, None) => (String::new(), "jwks"),
    };
    let secret = secret.trim();
    if secret.is_empty() || secret.starts_with("-----BEGIN") {
        let detail = "is no secret that tokens could be signed with; their issuer makes them";
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

/// Puts the roles where the server looks for them.
fn put(claims: &mut Map<String, Json>, place: &str, value: Json) {
    match place.split_once('.') {
        Some((first, rest)) => {
            let inner = claims.entry(first).or_insert_with(|| json!({}));
            if let Json::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
        None => {
            claims.insert(place.to_owned(), value);
        }
    }
}
