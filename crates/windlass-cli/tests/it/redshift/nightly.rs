//! `examples/nightly/windlass-redshift.toml` and `redshift.sql`, on MariaDB and the stand-in.

use crate::common::{CliSandbox, printed};
use windlass_testkit::{
    Database, MariaDatabase, MariaServer, Moto, PostgresServer, RedshiftServer,
};

/// The example, with its bank, its store, the stand-in, and the database behind the stand-in.
pub(crate) struct RedshiftNight {
    pub(crate) bank: MariaDatabase,
    pub(crate) store: Database,
    pub(crate) warehouse: Database,
    pub(crate) sandbox: CliSandbox,
    pub(crate) environment: Vec<(String, String)>,
    _redshift: RedshiftServer,
}

impl RedshiftNight {
    /// A night with this many transactions, whose output is below this prefix.
    pub(crate) async fn new(rows: i64, prefix: &str) -> RedshiftNight {
        let bank = MariaServer::shared().database().await;
        let transactions = include_str!("../../../../../examples/nightly/transactions.sql");
        bank.run(&format!("SET @rows = {rows}; {transactions}")).await;
        let (store, warehouse) =
            (PostgresServer::shared().database().await, PostgresServer::shared().database().await);
        let redshift = RedshiftServer::start(&warehouse, Moto::shared()).await;
        redshift.run(include_str!("../../../../../examples/nightly/redshift.sql")).await;
        let mut environment = Moto::shared().environment().to_vec();
        environment.extend(
            [
                ("STORE_URL", store.url()),
                ("SOURCE_URL", bank.url()),
                ("REDSHIFT_URL", &redshift.url()),
                ("REDSHIFT_ROLE", "arn:aws:iam::123456789012:role/redshift-copy"),
                ("OUTPUT", &format!("s3://{}/{prefix}", Moto::BUCKET)),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let config = include_str!("../../../../../examples/nightly/windlass-redshift.toml");
        let sandbox = CliSandbox::with(config);
        let sandbox =
            environment.iter().fold(sandbox, |sandbox, (name, value)| sandbox.env(name, value));
        RedshiftNight { bank, store, warehouse, sandbox, environment, _redshift: redshift }
    }

    /// Asserts that report and transactions in the warehouse equal the bank's own GROUP BY.
    pub(crate) async fn totals_are_the_banks_own(&self) {
        let own = "SELECT CONCAT(COUNT(*), ' ', SUM(t), ' ', SUM(a), ' ', SUM(m)) FROM (SELECT COUNT(*) AS t, \
                   COALESCE(SUM(amount), 0) AS a, MAX(amount) AS m FROM transactions GROUP BY branch) AS own";
        let own: String = self.bank.one(own).await;
        let loaded = "SELECT concat(count(*), ' ', sum(transactions), ' ', sum(total), ' ', sum(largest)) \
                      FROM daily_report WHERE date = '2026-01-31'";
        assert_eq!(self.warehouse.one::<String>(loaded).await, own);
        // The loaded transactions, added up again.
        let again = "SELECT concat(count(*), ' ', sum(t), ' ', sum(a), ' ', sum(m)) FROM (SELECT count(*) AS t, \
                     coalesce(sum(amount), 0) AS a, max(amount) AS m FROM transactions \
                     WHERE date = '2026-01-31' GROUP BY branch) AS own";
        assert_eq!(self.warehouse.one::<String>(again).await, own);
    }
}

#[tokio::test]
async fn the_nightly_example_loads_redshift_to_the_cent() {
    let night = RedshiftNight::new(20_000, "nightly").await;
    printed(&night.sandbox.run("check").await, &["loads     daily_report on warehouse"]);
    for _ in 0..2 {
        night.sandbox.run("run DAILY_REPORT --param date=2026-01-31").await.ok();
        night.sandbox.run("run TRANSACTIONS_EXPORT --param date=2026-01-31").await.ok();
        night.totals_are_the_banks_own().await;
    }
}
