//! Tokens: the good are let in, and the others learn nothing.

use crate::common::{Data, Place, refused};
use crate::purses::take;
use crate::served::{ROLES, SECRET, Served, auth, claims, now, signed, token};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value as Json, json};

pub(crate) const RSA: &str = include_str!("keys/rsa.pem");
const RSA_PUBLIC: &str = include_str!("keys/rsa.pub.pem");

fn with(name: &str, value: Json) -> String {
    let mut claims = claims("ada", "clerk");
    claims[name] = value;
    signed(&claims)
}

fn without(name: &str) -> String {
    let mut claims = claims("ada", "clerk");
    claims.as_object_mut().unwrap().remove(name);
    signed(&claims)
}

fn by(algorithm: Algorithm, key: &EncodingKey) -> String {
    jsonwebtoken::encode(&Header::new(algorithm), &claims("ada", "clerk"), key).unwrap()
}

/// A good signature under a header that asks for more than we know.
fn critical() -> String {
    let unsigned = unsigned("HS256", "");
    let (_, claims) = unsigned.trim_end_matches('.').split_once('.').unwrap();
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","crit":["exp"]}"#);
    let text = format!("{header}.{claims}");
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    let signature = jsonwebtoken::crypto::sign(text.as_bytes(), &key, Algorithm::HS256).unwrap();
    format!("{text}.{signature}")
}

/// A token that says it has no signature.
fn unsigned(algorithm: &str, signature: &str) -> String {
    let encode = |json: Json| URL_SAFE_NO_PAD.encode(json.to_string());
    let header = encode(json!({"alg": algorithm, "typ": "JWT"}));
    format!("{header}.{}.{signature}", encode(claims("ada", "clerk")))
}

#[track_caller]
fn is_unknown(served: &Served, why: &str) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let answer = served.get("/api/v1/jobs").await;
        let expected = json!({"type": "about:blank", "title": "Unauthorized", "status": 401});
        assert_eq!(answer.json(), expected, "{why}, {caller}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{why}");
    }
}

async fn bad_tokens_are_refused_without_a_word_why(data: Data) {
    let mut served = Served::start(Place::on(&data, &(take("") + &auth()))).await;
    is_unknown(&served, "no token").await;
    let another = EncodingKey::from_secret(b"another secret of thirty-two bytes");
    let secret = EncodingKey::from_secret(SECRET.as_bytes());
    for (why, bad) in [
        ("expired", with("exp", json!(now() - 100))),
        ("no expiry", without("exp")),
        ("an expiry of the wrong type", with("exp", json!("tomorrow"))),
        ("not yet valid", with("nbf", json!(now() + 100))),
        ("a beginning of the wrong type", with("nbf", json!("tomorrow"))),
        ("wrong issuer", with("iss", json!("others"))),
        ("no issuer", without("iss")),
        ("wrong audience", with("aud", json!("others"))),
        ("no audience", without("aud")),
        ("no subject", without("sub")),
        ("an empty subject", with("sub", json!(""))),
        ("a subject that is no name", with("sub", json!("ada\u{0}"))),
        ("a header that must be understood", critical()),
        ("another key", by(Algorithm::HS256, &another)),
        ("another algorithm", by(Algorithm::HS512, &secret)),
        ("alg none", unsigned("none", "")),
        ("alg None", unsigned("None", "")),
        ("no signature", unsigned("HS256", "")),
        ("nonsense", "nonsense".to_owned()),
    ] {
        served.token(&bad);
        is_unknown(&served, why).await;
        assert!(!served.process.stderr().contains(&bad), "{why}");
    }
    for (why, good) in [
        ("plain", token("ada", "clerk")),
        ("just expired, within the leeway", with("exp", json!(now() - 5))),
        ("valid in a moment, within the leeway", with("nbf", json!(now() + 5))),
        ("several audiences", with("aud", json!(["others", "windlass"]))),
        ("a list of roles", with("roles", json!(["unknown", "clerk"]))),
    ] {
        let answer = served.token(&good).get("/api/v1/jobs").await;
        assert_eq!(answer.status, 200, "{why}");
    }
    // Known, and with no role that we know.
    assert_eq!(served.token(&token("ada", "stranger")).get("/api/v1/jobs").await.status, 403);
}

async fn a_public_key_is_no_secret(data: Data) {
    let auth = format!("\n[auth]\nkey_file = \"rsa.pub.pem\"\n{ROLES}");
    let place = Place::on(&data, &(take("") + &auth));
    place.write("rsa.pub.pem", RSA_PUBLIC);
    let mut served = Served::start(place).await;
    let good = by(Algorithm::RS256, &EncodingKey::from_rsa_pem(RSA.as_bytes()).unwrap());
    assert_eq!(served.token(&good).get("/api/v1/jobs").await.status, 200);
    for text in [RSA_PUBLIC, RSA_PUBLIC.trim()] {
        let confused = by(Algorithm::HS256, &EncodingKey::from_secret(text.as_bytes()));
        served.token(&confused);
        is_unknown(&served, "the public key taken for a secret").await;
    }
    let rs512 = by(Algorithm::RS512, &EncodingKey::from_rsa_pem(RSA.as_bytes()).unwrap());
    served.token(&rs512);
    is_unknown(&served, "another algorithm of the same key").await;
}

async fn the_command_line_makes_tokens_for_development(data: Data) {
    let jobs = take("source.claims = { county = \"county\" }\n");
    data.run("CREATE INDEX purses_county ON purses (county, id)").await;
    let mut served = Served::start(Place::on(&data, &(jobs + &auth()))).await;
    let made = served
        .place
        .run("token --subject ada --role clerk --claim county=Kent,Essex --expires 1h")
        .await
        .ok();
    served.token(made.stdout.trim());
    served.submit(json!({"jobType": "TAKE"})).await;
    let expired = served.place.run("token --subject ada --role clerk --expires 0s").await.ok();
    assert_eq!(expired.stdout.trim().split('.').count(), 3);
    refused(&served.place.run("token --subject ada --role king").await, &["king", "`clerk`"]);
    refused(&served.place.run("token --subject ada").await, &["--role"]);
    let open = Place::on(&data, &take(""));
    refused(&open.run("token --subject ada --role clerk").await, &["[auth]"]);
    let public = format!("\n[auth]\njwks = \"keys.json\"\n{ROLES}");
    let place = Place::on(&data, &(take("") + &public));
    refused(&place.run("token --subject ada --role clerk").await, &["auth.jwks", "issuer"]);
}

async fn keys_that_cannot_be_used_are_refused_at_the_start(data: Data) {
    for (key, expected) in [
        ("key = \"short\"", "32 or more"),
        ("key_file = \"nowhere.pem\"", "nowhere.pem"),
        ("key_file = \"rsa.pem\"", "private key"),
        ("key_file = \"broken.pem\"", "no public key"),
        ("jwks = \"http://issuer.example/keys\"", "https://"),
    ] {
        let place = Place::on(&data, &format!("{}\n[auth]\n{key}\n{ROLES}", take("")));
        place.write("rsa.pem", RSA);
        place.write("broken.pem", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n");
        refused(&place.run("serve --listen 127.0.0.1:0").await, &["auth.", expected]);
    }
}

on_both!(
    bad_tokens_are_refused_without_a_word_why,
    a_public_key_is_no_secret,
    the_command_line_makes_tokens_for_development,
    keys_that_cannot_be_used_are_refused_at_the_start,
);
