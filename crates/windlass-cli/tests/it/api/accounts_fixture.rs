//! Savings accounts that a job debits. Two of them have too little.

use crate::common::Data;

/// Makes a test of each function on PostgreSQL and on SQLite, with savings accounts.
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

/// Savings accounts with an amount and a county. The job takes ten, and an amount may not be negative: accounts 7 (in
/// Kent) and 8 (in Essex) have less.
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

/// A job type that debits the accounts, with these additional lines.
pub(crate) fn take(more: &str) -> String {
    format!(
        "[jobs.TAKE]\nsource.connection = \"app\"\nsource.table = \"savings\"\n\
         step.sql = \"UPDATE savings SET amount = amount - 10 WHERE {{chunk}}\"\n\
         chunk.items = 10\n{more}"
    )
}
