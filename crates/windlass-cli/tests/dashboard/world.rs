//! Purses that a job takes from, at a pace that lets one look on.

use crate::common::{CliSandbox, Data};
use crate::served::Served;
use serde_json::{Value as Json, json};

/// The name of the seventh purse, which has too little: a script that tells of itself if it is run.
pub(crate) const SCRIPT: &str =
    "<script>window.pwned = true</script><img src=x onerror=\"window.pwned=true\">";

/// How many purses there are.
pub(crate) const PURSES: i64 = 400;

/// The purses, those with ids 7 and 8 too light for what the job takes.
pub(crate) async fn purses() -> Data {
    let data = Data::sqlite();
    let numbers = data.numbers(PURSES);
    data.run(&format!(
        "CREATE TABLE purses (id bigint PRIMARY KEY NOT NULL, county text NOT NULL, name text NOT NULL,
             amount bigint NOT NULL CHECK (amount >= 0));
         CREATE INDEX purses_county ON purses (county);
         INSERT INTO purses
         SELECT n, CASE WHEN n % 2 = 1 THEN 'Kent' ELSE 'Essex' END,
             CASE WHEN n = 7 THEN '{SCRIPT}' ELSE 'purse ' || n END,
             CASE WHEN n IN (7, 8) THEN 5 ELSE 5000 END FROM ({numbers}) AS numbers;"
    ))
    .await;
    data
}

/// The job type on those purses, with these lines besides.
pub(crate) fn take(more: &str) -> String {
    format!(
        "[jobs.TAKE]\ndescription = \"Take a little from every purse\"\n\
         source.connection = \"app\"\nsource.table = \"purses\"\n\
         source.filters = {{ counties = \"county\" }}\n\
         step.sql = \"UPDATE purses SET amount = amount - 10 WHERE {{chunk}}\"\n\
         chunk.items = 10\n{more}"
    )
}

/// A server with workers, on which a job takes its time until somebody lifts the limit.
pub(crate) async fn slow() -> (Data, Served) {
    let data = purses().await;
    let jobs = take("throughput = { items_per_second = 20 }\n");
    let served = Served::with(CliSandbox::on(&data, &jobs), 2).await;
    (data, served)
}

/// A server on which a job has completed with two letters.
pub(crate) async fn with_letters() -> (Data, Served, String) {
    let data = purses().await;
    let served = Served::with(CliSandbox::on(&data, &take("")), 2).await;
    let id = served.submit(json!({"jobType": "TAKE"})).await;
    let job: Json = served.until(&id, "COMPLETED").await;
    assert_eq!(job["items"]["dead"], 2);
    (data, served, id)
}
