//! A table of wallets, a job that takes money from each, and servers for the tests.

use crate::api::server_fixture::TestServer;
use crate::common::{CliSandbox, Data};
use serde_json::{Value as Json, json};
use windlass_testkit::Browser;

/// The name of wallet 7, which has too little: a script that sets a variable if it is executed.
pub(crate) const SCRIPT: &str =
    "<script>window.pwned = true</script><img src=x onerror=\"window.pwned=true\">";

/// The number of wallets.
pub(crate) const WALLETS: i64 = 400;

/// Creates the wallets. A constraint forbids negative amounts, and wallets 7 and 8 have less than the job
/// takes.
pub(crate) async fn wallets() -> Data {
    let data = Data::sqlite();
    let numbers = data.numbers(WALLETS);
    data.run(&format!(
        "CREATE TABLE wallets (id bigint PRIMARY KEY NOT NULL, county text NOT NULL, name text NOT NULL,
             amount bigint NOT NULL CHECK (amount >= 0));
         CREATE INDEX wallets_county ON wallets (county);
         INSERT INTO wallets
         SELECT n, CASE WHEN n % 2 = 1 THEN 'Kent' ELSE 'Essex' END,
             CASE WHEN n = 7 THEN '{SCRIPT}' ELSE 'wallet ' || n END,
             CASE WHEN n IN (7, 8) THEN 5 ELSE 5000 END FROM ({numbers}) AS numbers;"
    ))
    .await;
    data
}

/// Signs in on a page that asks for it.
pub(crate) async fn sign_in(browser: &Browser, token: &str) {
    browser.open("/").await;
    browser.is_at("/sign-in").await;
    browser.fill("token", token).await;
    browser.go("Sign in").await;
}

/// The job type that takes ten from each wallet, with additional lines of configuration.
pub(crate) fn take(more: &str) -> String {
    format!(
        "[jobs.TAKE]\ndescription = \"Take a little from every wallet\"\n\
         source.connection = \"app\"\nsource.table = \"wallets\"\n\
         source.filters = {{ counties = \"county\" }}\n\
         step.sql = \"UPDATE wallets SET amount = amount - 10 WHERE {{chunk}}\"\n\
         chunk.items = 10\n{more}"
    )
}

/// A server with workers, on which the throughput of the job is limited.
pub(crate) async fn throttled_server() -> (Data, TestServer) {
    let data = wallets().await;
    let jobs = take("throughput = { items_per_second = 2 }\n");
    let server = TestServer::with(CliSandbox::on(&data, &jobs), 2).await;
    (data, server)
}

/// A server on which a job has completed with two dead letters.
pub(crate) async fn server_with_dead_letters() -> (Data, TestServer, String) {
    let data = wallets().await;
    let server =
        TestServer::with(CliSandbox::on(&data, &take("params.a = { required = false }\n")), 2)
            .await;
    let id = server.submit(json!({"jobType": "TAKE"})).await;
    let job: Json = server.until(&id, "COMPLETED").await;
    assert_eq!(job["items"]["dead"], 2);
    (data, server, id)
}
