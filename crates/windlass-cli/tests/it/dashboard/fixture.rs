//! Savings accounts that a job debits, slowly enough to watch it.

use crate::api::served::Served;
use crate::common::{CliSandbox, Data};
use serde_json::{Value as Json, json};

/// The name of account 7, which has too little: a script that sets a variable if it runs.
pub(crate) const SCRIPT: &str =
    "<script>window.pwned = true</script><img src=x onerror=\"window.pwned=true\">";

/// The number of accounts.
pub(crate) const ACCOUNTS: i64 = 400;

/// The accounts. Those with ids 7 and 8 have too little for the debit.
pub(crate) async fn savings_accounts() -> Data {
    let data = Data::sqlite();
    let numbers = data.numbers(ACCOUNTS);
    data.run(&format!(
        "CREATE TABLE savings (id bigint PRIMARY KEY NOT NULL, county text NOT NULL, name text NOT NULL,
             amount bigint NOT NULL CHECK (amount >= 0));
         CREATE INDEX savings_county ON savings (county);
         INSERT INTO savings
         SELECT n, CASE WHEN n % 2 = 1 THEN 'Kent' ELSE 'Essex' END,
             CASE WHEN n = 7 THEN '{SCRIPT}' ELSE 'account ' || n END,
             CASE WHEN n IN (7, 8) THEN 5 ELSE 5000 END FROM ({numbers}) AS numbers;"
    ))
    .await;
    data
}

/// A job type that debits the accounts, with these additional lines.
pub(crate) fn take(more: &str) -> String {
    format!(
        "[jobs.TAKE]\ndescription = \"Debit every account\"\n\
         source.connection = \"app\"\nsource.table = \"savings\"\n\
         source.filters = {{ counties = \"county\" }}\n\
         step.sql = \"UPDATE savings SET amount = amount - 10 WHERE {{chunk}}\"\n\
         chunk.items = 10\n{more}"
    )
}

/// A server with workers, on which a job takes its time until the test removes the limit.
pub(crate) async fn slow() -> (Data, Served) {
    let data = savings_accounts().await;
    let jobs = take("throughput = { items_per_second = 20 }\n");
    let served = Served::with(CliSandbox::on(&data, &jobs), 2).await;
    (data, served)
}

/// A server on which a job has completed with two letters.
pub(crate) async fn with_letters() -> (Data, Served, String) {
    let data = savings_accounts().await;
    let served = Served::with(CliSandbox::on(&data, &take("")), 2).await;
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    let job: Json = served.until(&id, "COMPLETED").await;
    assert_eq!(job["items"]["dead"], 2);
    (data, served, id)
}
