//! Purses: records that a job takes from, two of which have too little.

use crate::common::Data;

/// Makes a test on PostgreSQL and one on SQLite of each function, which gets the savings there.
macro_rules! on_both {
    ($($promise:ident),+ $(,)?) => {
        mod postgres {
            $(#[tokio::test]
            async fn $promise() {
                let data = $crate::common::Data::postgres().await;
                super::$promise($crate::api::accounts_fixture::savings_accounts(data).await).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test]
            async fn $promise() {
                let data = $crate::common::Data::sqlite();
                super::$promise($crate::api::accounts_fixture::savings_accounts(data).await).await;
            })+
        }
    };
}

/// Purses with an amount and a county. Taking ten leaves no purse below zero: those with ids 7 and 8
/// have less, the first in Kent, the second in Essex.
pub(crate) async fn savings_accounts(data: Data) -> Data {
    let numbers = data.numbers(40);
    data.run(&format!(
        "CREATE TABLE savings (id bigint PRIMARY KEY NOT NULL, county text NOT NULL,
             amount bigint NOT NULL CONSTRAINT never_negative CHECK (amount >= 0));
         INSERT INTO savings
         SELECT n, CASE WHEN n % 2 = 1 THEN 'Kent' ELSE 'Essex' END,
             CASE WHEN n IN (7, 8) THEN 5 ELSE 50 END FROM ({numbers}) AS numbers;"
    ))
    .await;
    data
}

/// A job type on those savings, with these lines besides.
pub(crate) fn take(more: &str) -> String {
    format!(
        "[jobs.TAKE]\nsource.connection = \"app\"\nsource.table = \"savings\"\n\
         step.sql = \"UPDATE savings SET amount = amount - 10 WHERE {{chunk}}\"\n\
         chunk.items = 10\n{more}"
    )
}
