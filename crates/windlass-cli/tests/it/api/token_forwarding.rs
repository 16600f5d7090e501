//! `step.forward_token`: the submitter's token is stored sealed and sent to the step.

use crate::api::server_fixture::{TestServer, auth, token};
use crate::api::stub_service::StubService;
use crate::common::{CliSandbox, Data};
use serde_json::json;

const KEY: &str = "2026:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

#[tokio::test]
async fn the_submitters_token_is_forwarded_and_never_stored_in_plain_text() {
    let stub = StubService::responding("").await;
    let data = Data::sqlite().with_accounts(3).await;
    let jobs = format!(
        "[jobs.SEND]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
         step.version = \"version\"\nstep.http = \"{}\"\nstep.forward_token = true\n",
        stub.url
    );
    let sandbox = CliSandbox::on(&data, &(jobs + &auth())).env("WINDLASS_TOKEN_KEYS", KEY);
    let mut server = TestServer::with(sandbox, 1).await;
    let own = token("ada", "clerk");
    server.token(&own);
    let id = server.submit(json!({"jobType": "SEND"})).await;
    server.until(&id, "COMPLETED").await;
    let sent = stub.requests();
    assert!(!sent.is_empty());
    for request in sent {
        assert!(request.contains(&format!("authorization: bearer {}", own.to_lowercase())));
    }
    let signature = own.rsplit('.').next().unwrap();
    assert!(!server.process.stderr().contains(signature));
    let shown = server.get(&format!("/api/v1/jobs/{id}")).await;
    assert!(!shown.text.contains(signature) && !shown.text.contains("ealed"), "{shown:?}");
    let store =
        ["windlass.db", "windlass.db-wal"].map(|name| std::fs::read(server.sandbox.path(name)));
    for file in store.into_iter().flatten() {
        assert!(!file.windows(signature.len()).any(|window| window == signature.as_bytes()));
    }
}
