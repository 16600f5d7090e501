//! The caller's own token goes with the job where its type asks for it, sealed until then.

use crate::api::served::{Served, auth, token};
use crate::api::stub::Stub;
use crate::common::{CliSandbox, Data};
use serde_json::json;

const KEY: &str = "2026:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

#[tokio::test]
async fn the_token_that_submitted_a_job_is_sent_and_kept_nowhere_in_the_clear() {
    let stub = Stub::answering("").await;
    let data = Data::sqlite().with_accounts(3).await;
    let jobs = format!(
        "[jobs.SEND]\nsource.connection = \"app\"\nsource.table = \"accounts\"\n\
         step.version = \"version\"\nstep.http = \"{}\"\nstep.forward_token = true\n",
        stub.url
    );
    let sandbox = CliSandbox::on(&data, &(jobs + &auth())).env("WINDLASS_TOKEN_KEYS", KEY);
    let mut served = Served::with(sandbox, 1).await;
    let own = token("ada", "clerk");
    served.token(&own);
    let id = served.submit(json!({"jobType": "SEND"})).await;
    served.until(&id, "COMPLETED").await;
    let sent = stub.requests();
    assert!(!sent.is_empty());
    for request in sent {
        assert!(request.contains(&format!("authorization: bearer {}", own.to_lowercase())));
    }
    let signature = own.rsplit('.').next().unwrap();
    assert!(!served.process.stderr().contains(signature));
    let shown = served.get(&format!("/api/v1/jobs/{id}")).await;
    assert!(!shown.text.contains(signature) && !shown.text.contains("ealed"), "{shown:?}");
    let store =
        ["windlass.db", "windlass.db-wal"].map(|name| std::fs::read(served.sandbox.path(name)));
    for file in store.into_iter().flatten() {
        assert!(!file.windows(signature.len()).any(|window| window == signature.as_bytes()));
    }
}
