//! `examples/nightly/windlass-redshift.toml` and `redshift.sql`, on MariaDB and the stand-in.

use crate::common::{CliSandbox, printed};
use windlass_testkit::{MariaServer, Moto, PostgresServer, RedshiftServer};

#[tokio::test]
async fn the_nightly_example_loads_redshift_to_the_cent() {
    let bank = MariaServer::shared().database().await;
    let rows = include_str!("../../../../../examples/nightly/transactions.sql");
    bank.run(&format!("SET @rows = 20000; {rows}")).await;
    let (store, warehouse) =
        (PostgresServer::shared().database().await, PostgresServer::shared().database().await);
    let redshift = RedshiftServer::start(&warehouse, Moto::shared()).await;
    redshift.run(include_str!("../../../../../examples/nightly/redshift.sql")).await;
    let config = include_str!("../../../../../examples/nightly/windlass-redshift.toml");
    let sandbox = CliSandbox::with(config)
        .env("STORE_URL", store.url())
        .env("SOURCE_URL", bank.url())
        .env("REDSHIFT_URL", &redshift.url())
        .env("REDSHIFT_ROLE", "arn:aws:iam::123456789012:role/redshift-copy")
        .env("OUTPUT", &format!("s3://{}/nightly", Moto::BUCKET));
    let environment = Moto::shared().environment();
    let sandbox =
        environment.iter().fold(sandbox, |sandbox, (name, value)| sandbox.env(name, value));
    printed(&sandbox.run("check").await, &["loads     daily_report on warehouse"]);
    for _ in 0..2 {
        sandbox.run("run DAILY_REPORT --param date=2026-01-31").await.ok();
        sandbox.run("run TRANSACTIONS_EXPORT --param date=2026-01-31").await.ok();
        let own = "SELECT CONCAT(COUNT(*), ' ', SUM(t), ' ', SUM(a), ' ', SUM(m)) FROM (SELECT COUNT(*) AS t, \
                   COALESCE(SUM(amount), 0) AS a, MAX(amount) AS m FROM transactions GROUP BY branch) AS own";
        let own: String = bank.one(own).await;
        let loaded = "SELECT concat(count(*), ' ', sum(transactions), ' ', sum(total), ' ', sum(largest)) \
                      FROM daily_report WHERE date = '2026-01-31'";
        assert_eq!(warehouse.one::<String>(loaded).await, own);
        // The loaded transactions, added up again.
        let again = "SELECT concat(count(*), ' ', sum(t), ' ', sum(a), ' ', sum(m)) FROM (SELECT count(*) AS t, \
                     coalesce(sum(amount), 0) AS a, max(amount) AS m FROM transactions \
                     WHERE date = '2026-01-31' GROUP BY branch) AS own";
        assert_eq!(warehouse.one::<String>(again).await, own);
    }
}
