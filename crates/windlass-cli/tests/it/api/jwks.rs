//! Keys that their issuer rotates.

use crate::api::accounts_fixture::{savings_accounts, take};
use crate::api::served::{ROLES, Served, claims};
use crate::api::stub::Stub;
use crate::common::{CliSandbox, Data};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value as Json, json};

/// A key of the issuer's.
struct Issued {
    name: &'static str,
    algorithm: Algorithm,
    private: EncodingKey,
    public: Json,
}

impl Issued {
    fn ec(name: &'static str) -> Issued {
        let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let text = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(kind, text.as_ref(), &random).unwrap();
        let point = &pair.public_key().as_ref()[1..];
        let (x, y) = point.split_at(32);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        let public =
            json!({"kty": "EC", "crv": "P-256", "kid": name, "use": "sig", "x": x, "y": y});
        let private = EncodingKey::from_ec_der(text.as_ref());
        Issued { name, algorithm: Algorithm::ES256, private, public }
    }

    fn ed(name: &'static str) -> Issued {
        let text = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(text.as_ref()).unwrap();
        let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        let public = json!({"kty": "OKP", "crv": "Ed25519", "kid": name, "alg": "EdDSA", "x": x});
        let private = EncodingKey::from_ed_der(text.as_ref());
        Issued { name, algorithm: Algorithm::EdDSA, private, public }
    }

    fn token(&self) -> String {
        let header = Header { kid: Some(self.name.to_owned()), ..Header::new(self.algorithm) };
        jsonwebtoken::encode(&header, &claims("ada", "clerk"), &self.private).unwrap()
    }
}

fn set(keys: &[&Issued]) -> String {
    let mut keys: Vec<Json> = keys.iter().map(|key| key.public.clone()).collect();
    // What a set may have besides, none of which is for us.
    let secret = URL_SAFE_NO_PAD.encode("a secret that anybody can read");
    keys.push(json!({"kty": "oct", "kid": "secret", "k": secret}));
    keys.push(json!({"kty": "XYZ", "kid": "strange"}));
    json!({"keys": keys}).to_string()
}

async fn served(jwks: &str, files: &[(&str, &str)]) -> (Data, Served) {
    let data = savings_accounts(Data::sqlite()).await;
    let auth = format!("\n[auth]\njwks = \"{jwks}\"\n{ROLES}");
    let sandbox = CliSandbox::on(&data, &(take("") + &auth));
    files.iter().for_each(|(name, text)| sandbox.write(name, text));
    let served = Served::start(sandbox).await;
    (data, served)
}

async fn status(served: &mut Served, token: &str) -> u16 {
    served.token(token).get("/api/v1/jobs").await.status
}

#[tokio::test]
async fn a_new_key_is_looked_up_and_unknown_ones_ask_the_issuer_once() {
    let (old, new, third) = (Issued::ec("old"), Issued::ed("new"), Issued::ec("third"));
    let issuer = Stub::answering(&set(&[&old])).await;
    let (_data, mut served) = served(&format!("{}/keys", issuer.url), &[]).await;
    assert_eq!(status(&mut served, &old.token()).await, 200);
    issuer.answer(&set(&[&old, &new]));
    assert_eq!(status(&mut served, &new.token()).await, 200);
    assert_eq!(status(&mut served, &old.token()).await, 200);
    assert_eq!(issuer.requests().len(), 2);
    for _ in 0..20 {
        assert_eq!(status(&mut served, &third.token()).await, 401);
    }
    assert_eq!(issuer.requests().len(), 2, "at most once a minute");
}

#[tokio::test]
async fn a_set_may_be_a_file_and_its_secrets_are_not_taken() {
    let (known, unknown) = (Issued::ed("known"), Issued::ed("unknown"));
    let (_data, mut served) = served("keys.json", &[("keys.json", &set(&[&known]))]).await;
    assert_eq!(status(&mut served, &known.token()).await, 200);
    assert_eq!(status(&mut served, &unknown.token()).await, 401);
    let disguised = Issued { name: "known", ..Issued::ed("unknown") };
    assert_eq!(status(&mut served, &disguised.token()).await, 401, "another key of that name");
    let header = Header { kid: Some("secret".to_owned()), ..Header::default() };
    let secret = EncodingKey::from_secret(b"a secret that anybody can read");
    let by_secret = jsonwebtoken::encode(&header, &claims("ada", "clerk"), &secret).unwrap();
    assert_eq!(status(&mut served, &by_secret).await, 401);
}

#[tokio::test]
async fn a_key_that_is_for_something_else_verifies_nothing() {
    let mut keys = Vec::new();
    for (name, field, value, good) in [
        ("verify", "key_ops", json!(["verify"]), true),
        ("both", "key_ops", json!(["sign", "verify"]), true),
        ("sign", "key_ops", json!(["sign"]), false),
        ("encrypt", "key_ops", json!(["encrypt", "wrapKey"]), false),
        ("none", "key_ops", json!([]), false),
        ("sig", "use", json!("sig"), true),
        ("enc", "use", json!("enc"), false),
        ("other", "use", json!("other"), false),
        ("alg", "alg", json!("ES256"), false),
    ] {
        let mut key = Issued::ed(name);
        key.public[field] = value;
        keys.push((key, good));
    }
    let all: Vec<&Issued> = keys.iter().map(|(key, _)| key).collect();
    let (_data, mut served) = served("keys.json", &[("keys.json", &set(&all))]).await;
    for (key, good) in &keys {
        let expected = if *good { 200 } else { 401 };
        assert_eq!(status(&mut served, &key.token()).await, expected, "{}", key.name);
    }
}

#[tokio::test]
async fn an_issuer_that_is_away_at_the_start_is_asked_again() {
    let key = Issued::ec("key");
    let issuer = Stub::answering("not yet").await;
    let (_data, mut served) = served(&issuer.url, &[]).await;
    issuer.answer(&set(&[&key]));
    assert_eq!(status(&mut served, &key.token()).await, 200);
}
