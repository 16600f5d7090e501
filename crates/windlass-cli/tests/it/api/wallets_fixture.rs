//! A table of wallets, and a job that takes money from each. Two of them have too little.

use crate::common::Data;

/// Defines one test on PostgreSQL and one on SQLite for each function, which gets a database with wallets.
macro_rules! on_both {
    ($($promise:ident),+ $(,)?) => {
        mod postgres {
            $(#[tokio::test]
            async fn $promise() {
                let data = $crate::common::Data::postgres().await;
                super::$promise($crate::api::wallets_fixture::wallets(data).await).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test]
            async fn $promise() {
                let data = $crate::common::Data::sqlite();
                super::$promise($crate::api::wallets_fixture::wallets(data).await).await;
            })+
        }
    };
}

/// Creates 40 wallets with an amount and a county. A constraint forbids negative amounts, and the wallets 7
/// (Kent) and 8 (Essex) have less than the job takes.
pub(crate) async fn wallets(data: Data) -> Data {
    let numbers = data.numbers(40);
    data.run(&format!(
        "CREATE TABLE wallets (id bigint PRIMARY KEY NOT NULL, county text NOT NULL,
             amount bigint NOT NULL CONSTRAINT never_negative CHECK (amount >= 0));
         INSERT INTO wallets
         SELECT n, CASE WHEN n % 2 = 1 THEN 'Kent' ELSE 'Essex' END,
             CASE WHEN n IN (7, 8) THEN 5 ELSE 50 END FROM ({numbers}) AS numbers;"
    ))
    .await;
    data
}

/// The job type that takes ten from each wallet, with additional lines of configuration.
pub(crate) fn take(more: &str) -> String {
    format!(
        "[jobs.TAKE]\nsource.connection = \"app\"\nsource.table = \"wallets\"\n\
         step.sql = \"UPDATE wallets SET amount = amount - 10 WHERE {{chunk}}\"\n\
         chunk.items = 10\n{more}"
    )
}
