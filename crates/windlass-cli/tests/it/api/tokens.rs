//! Valid tokens are accepted; the response to an invalid one does not say what is wrong with it.

use crate::api::server_fixture::{ROLES, SECRET, TestServer, auth, claims, now, signed, token};
use crate::api::wallets_fixture::take;
use crate::common::{CliSandbox, Data, refused};
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

/// A valid signature with a header that has critical extensions.
fn critical() -> String {
    let unsigned = unsigned("HS256", "");
    let (_, claims) = unsigned.trim_end_matches('.').split_once('.').unwrap();
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","crit":["exp"]}"#);
    let text = format!("{header}.{claims}");
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    let signature = jsonwebtoken::crypto::sign(text.as_bytes(), &key, Algorithm::HS256).unwrap();
    format!("{text}.{signature}")
}

/// A token without a valid signature.
fn unsigned(algorithm: &str, signature: &str) -> String {
    let encode = |json: Json| URL_SAFE_NO_PAD.encode(json.to_string());
    let header = encode(json!({"alg": algorithm, "typ": "JWT"}));
    format!("{header}.{}.{signature}", encode(claims("ada", "clerk")))
}

#[track_caller]
fn is_unknown(server: &TestServer, why: &str) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let response = server.get("/api/v1/jobs").await;
        let expected = json!({"type": "about:blank", "title": "Unauthorized", "status": 401});
        assert_eq!(response.json(), expected, "{why}, {caller}");
        assert_eq!(response.header("www-authenticate"), Some("Bearer"), "{why}");
    }
}

/// A token with this header, over the claims of a good one, signed with the right secret.
fn headed(header: &str) -> String {
    signed_text(&URL_SAFE_NO_PAD.encode(header), &URL_SAFE_NO_PAD.encode(payload()))
}

fn signed_text(header: &str, claims: &str) -> String {
    let text = format!("{header}.{claims}");
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    let signature = jsonwebtoken::crypto::sign(text.as_bytes(), &key, Algorithm::HS256).unwrap();
    format!("{text}.{signature}")
}

fn payload() -> String {
    claims("ada", "clerk").to_string()
}

/// Forged and malformed tokens.
fn forged() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |why: String, token: String| all.push((why, token));
    let past = [json!(now() - 100), json!(0), json!(-1), json!(1.5), json!(now() - 3600)];
    let wrong = [json!(null), json!("tomorrow"), json!(""), json!([]), json!({}), json!(true)];
    for value in past.iter().chain(&wrong) {
        add(format!("exp {value}"), with("exp", value.clone()));
    }
    for value in [json!(now() + 100), json!(now() + 100_000), json!(1e18)].iter().chain(&wrong) {
        add(format!("nbf {value}"), with("nbf", value.clone()));
    }
    let others = [json!("others"), json!(""), json!(null), json!(1), json!({}), json!(true)];
    for value in others.iter().chain(&[json!("TESTS"), json!("tests "), json!(["others"])]) {
        add(format!("iss {value}"), with("iss", value.clone()));
    }
    for value in others.iter().chain(&[json!("WINDLASS"), json!("windlass2"), json!([])]) {
        add(format!("aud {value}"), with("aud", value.clone()));
    }
    for name in ["exp", "iss", "aud", "sub"] {
        add(format!("without {name}"), without(name));
    }
    let secret = EncodingKey::from_secret(SECRET.as_bytes());
    for text in ["another secret of thirty-two bytes", "", "secret", &SECRET[1..], "null"] {
        add(
            format!("by {text:?}"),
            by(Algorithm::HS256, &EncodingKey::from_secret(text.as_bytes())),
        );
    }
    for algorithm in [Algorithm::HS384, Algorithm::HS512] {
        add(format!("{algorithm:?}"), by(algorithm, &secret));
    }
    for algorithm in ["none", "None", "NONE", "nOnE", "", "HS256 ", "RS256", "ES256", "EdDSA"] {
        add(format!("alg {algorithm:?} without signature"), unsigned(algorithm, ""));
        add(format!("alg {algorithm:?} signed"), headed(&json!({"alg": algorithm}).to_string()));
    }
    for header in [
        "{}",
        "[]",
        "1",
        "null",
        "",
        "{\"alg\":null}",
        "{\"alg\":1}",
        "{\"alg\":[\"HS256\"]}",
        "{\"alg\":\"HS256\",\"crit\":[\"exp\"]}",
        "{\"alg\":\"HS256\",\"crit\":[]}",
        "not json",
    ] {
        add(format!("header {header}"), headed(header));
    }
    add("a header that must be understood".to_owned(), critical());
    // Keys inside a token are ignored.
    let another = EncodingKey::from_secret(b"another secret of thirty-two bytes");
    let key = URL_SAFE_NO_PAD.encode("another secret of thirty-two bytes");
    let extras = [
        json!({"jwk": {"kty": "oct", "k": key}}),
        json!({"jku": "http://127.0.0.1:1/keys"}),
        json!({"x5u": "http://127.0.0.1:1/keys"}),
        json!({"kid": "../../../../dev/null"}),
        json!({"kid": "' OR 1=1 --"}),
    ];
    for mut header in extras {
        header["alg"] = json!("HS256");
        let head = URL_SAFE_NO_PAD.encode(header.to_string());
        let text = format!("{head}.{}", URL_SAFE_NO_PAD.encode(payload()));
        let signature = jsonwebtoken::crypto::sign(text.as_bytes(), &another, Algorithm::HS256);
        add(format!("header {header}"), format!("{text}.{}", signature.unwrap()));
    }
    let good = token("ada", "clerk");
    let parts: Vec<&str> = good.split('.').collect();
    let (head, body, signature) = (parts[0], parts[1], parts[2]);
    let chief = URL_SAFE_NO_PAD.encode(claims("ada", "chief").to_string());
    for (why, bad) in [
        ("no token", String::new()),
        ("nonsense", "nonsense".to_owned()),
        ("dots", "..".to_owned()),
        ("two parts", format!("{head}.{body}")),
        ("four parts", format!("{good}.{signature}")),
        ("no signature", format!("{head}.{body}.")),
        ("half a signature", format!("{head}.{body}.{}", &signature[..20])),
        ("a longer signature", format!("{good}AAAA")),
        ("another signature", format!("{head}.{body}.{}", "A".repeat(signature.len()))),
        ("other claims", format!("{head}.{chief}.{signature}")),
        ("no claims", format!("{head}..{signature}")),
        ("padding", format!("{head}=.{body}=.{signature}=")),
        ("claims that are a list", signed_text(head, &URL_SAFE_NO_PAD.encode("[]"))),
        ("claims that are a number", signed_text(head, &URL_SAFE_NO_PAD.encode("1"))),
        ("claims that are no JSON", signed_text(head, &URL_SAFE_NO_PAD.encode("{\"sub\""))),
        ("claims that are no base64", signed_text(head, "{}")),
        ("a token as JSON", json!({"token": good}).to_string()),
        ("percent signs", good.replace('.', "%2e")),
        ("a very long one", format!("{head}.{}.{signature}", "A".repeat(6000))),
    ] {
        add(why.to_owned(), bad);
    }
    all
}

async fn invalid_tokens_are_rejected_without_a_reason(data: Data) {
    let mut server = TestServer::start(CliSandbox::on(&data, &(take("") + &auth()))).await;
    is_unknown(&server, "no token").await;
    let forged = forged();
    assert_eq!(forged.len(), 103);
    for (why, bad) in &forged {
        server.token(bad);
        is_unknown(&server, why).await;
        assert!(bad.len() < 20 || !server.process.stderr().contains(bad), "{why}");
    }
    // A valid token in any other sandbox is ignored.
    let good = token("ada", "clerk");
    for (name, value) in [
        ("authorization", good.clone()),
        ("authorization", format!("Basic {good}")),
        ("authorization", format!("Bearer\t{good}")),
        ("authorization", format!("Bearer {good}, Bearer {good}")),
        ("x-authorization", format!("Bearer {good}")),
        ("cookie", format!("session={good}")),
    ] {
        let request = reqwest::Client::new().get(format!("{}/api/v1/jobs", server.url));
        let response = request.header(name, value).send().await.unwrap();
        assert_eq!(response.status(), 401, "{name}");
    }
    let query = format!("{}/api/v1/jobs?access_token={good}", server.url);
    assert_eq!(reqwest::get(query).await.unwrap().status(), 401);
    // Valid tokens with an unusable name: the response says why.
    let long = "x".repeat(256);
    let names = ["", "ada\u{0}", "ada\nbob", "\u{7f}", &long];
    let taken =
        ["schedule", "outbox", "rule", "local", "Schedule", "LOCAL", " local ", "rule\u{a0}"];
    for name in names.iter().chain(&taken) {
        let response = server.token(&with("sub", json!(name))).get("/api/v1/jobs").await;
        let detail = response.is(401)["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.contains("`sub`") && detail.len() < 200, "{name:?}: {response:?}");
    }
    // Beyond the range of a NumericDate.
    let endless = server.token(&with("exp", json!(1e300))).get("/api/v1/jobs").await;
    assert_eq!(endless.status, 401);
    for name in [json!(null), json!(1), json!([]), json!({}), json!(true), json!(["ada"])] {
        let response = server.token(&with("sub", name.clone())).get("/api/v1/jobs").await;
        assert_eq!(response.status, 401, "{name}");
    }
    for (why, good) in [
        ("plain", token("ada", "clerk")),
        ("just expired, within the leeway", with("exp", json!(now() - 5))),
        ("valid in a moment, within the leeway", with("nbf", json!(now() + 5))),
        ("several audiences", with("aud", json!(["others", "windlass"]))),
        ("an expiry beyond every clock", with("exp", json!(u64::MAX))),
        ("a name that looks like none of ours", with("sub", json!("schedule-bot"))),
        ("the longest name", with("sub", json!("x".repeat(255)))),
        ("a list of roles", with("roles", json!(["unknown", "clerk"]))),
    ] {
        let response = server.token(&good).get("/api/v1/jobs").await;
        assert_eq!(response.status, 200, "{why}");
        server.submit(json!({"jobType": "TAKE"})).await;
    }
    assert!(!server.process.stderr().contains("panicked"));
    // A valid token whose role does not exist.
    assert_eq!(server.token(&token("ada", "stranger")).get("/api/v1/jobs").await.status, 403);
}

async fn a_public_key_is_not_accepted_as_a_secret(data: Data) {
    let auth = format!("\n[auth]\nkey_file = \"rsa.pub.pem\"\n{ROLES}");
    let sandbox = CliSandbox::on(&data, &(take("") + &auth));
    sandbox.write("rsa.pub.pem", RSA_PUBLIC);
    let mut server = TestServer::start(sandbox).await;
    let good = by(Algorithm::RS256, &EncodingKey::from_rsa_pem(RSA.as_bytes()).unwrap());
    assert_eq!(server.token(&good).get("/api/v1/jobs").await.status, 200);
    for text in [RSA_PUBLIC, RSA_PUBLIC.trim()] {
        let confused = by(Algorithm::HS256, &EncodingKey::from_secret(text.as_bytes()));
        server.token(&confused);
        is_unknown(&server, "the public key taken for a secret").await;
    }
    let rs512 = by(Algorithm::RS512, &EncodingKey::from_rsa_pem(RSA.as_bytes()).unwrap());
    server.token(&rs512);
    is_unknown(&server, "another algorithm of the same key").await;
}

async fn the_command_line_creates_development_tokens(data: Data) {
    let jobs = take("source.claims = { county = \"county\" }\n");
    data.run("CREATE INDEX wallets_county ON wallets (county, id)").await;
    let mut server = TestServer::start(CliSandbox::on(&data, &(jobs + &auth()))).await;
    let made = server
        .sandbox
        .run("token --subject ada --role clerk --claim county=Kent,Essex --expires 1h")
        .await
        .ok();
    server.token(made.stdout.trim());
    server.submit(json!({"jobType": "TAKE"})).await;
    let expired = server.sandbox.run("token --subject ada --role clerk --expires 0s").await.ok();
    assert_eq!(expired.stdout.trim().split('.').count(), 3);
    refused(&server.sandbox.run("token --subject ada --role king").await, &["king", "`clerk`"]);
    refused(&server.sandbox.run("token --subject ada").await, &["--role"]);
    let open = CliSandbox::on(&data, &take(""));
    refused(&open.run("token --subject ada --role clerk").await, &["[auth]"]);
    let public = format!("\n[auth]\njwks = \"keys.json\"\n{ROLES}");
    let sandbox = CliSandbox::on(&data, &(take("") + &public));
    refused(&sandbox.run("token --subject ada --role clerk").await, &["auth.jwks", "issuer"]);
}

async fn unusable_keys_are_rejected_at_startup(data: Data) {
    for (key, expected) in [
        ("key = \"short\"", "at least 32 bytes"),
        ("key_file = \"nowhere.pem\"", "nowhere.pem"),
        ("key_file = \"rsa.pem\"", "private key"),
        ("key_file = \"broken.pem\"", "not a valid RSA"),
        ("jwks = \"http://issuer.example/keys\"", "https://"),
    ] {
        let sandbox = CliSandbox::on(&data, &format!("{}\n[auth]\n{key}\n{ROLES}", take("")));
        sandbox.write("rsa.pem", RSA);
        sandbox.write("broken.pem", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n");
        refused(&sandbox.run("serve --listen 127.0.0.1:0").await, &["auth.", expected]);
    }
}

on_both!(
    invalid_tokens_are_rejected_without_a_reason,
    a_public_key_is_not_accepted_as_a_secret,
    the_command_line_creates_development_tokens,
    unusable_keys_are_rejected_at_startup,
);
