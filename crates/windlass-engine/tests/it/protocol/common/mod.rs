//! Shared by all topics: databases, job types, workers and assertions.

mod fixture;
mod handlers;
mod jobs;

pub(crate) use fixture::{EngineFixture, TestDatabase, builder, toml};
pub(crate) use handlers::*;
pub(crate) use jobs::*;

/// Makes a test of each function with this fixture.
macro_rules! on_fixture {
    ($module:ident, $fixture:ident: $($promise:ident),+) => {
        mod $module {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise($crate::protocol::common::EngineFixture::$fixture().await).await;
            })+
        }
    };
}

/// Makes a test of each function on every database for records. MariaDB cannot hold the store, so its store is in
/// SQLite.
macro_rules! on_each {
    ($($promise:ident),+ $(,)?) => {
        on_both!($($promise),+);
        on_fixture!(mariadb, mariadb: $($promise),+);
    };
}

/// Makes a test of each function on every database server.
macro_rules! on_servers {
    ($($promise:ident),+ $(,)?) => {
        on_fixture!(postgres_server, postgres: $($promise),+);
        on_fixture!(mariadb_server, mariadb: $($promise),+);
    };
}

/// Makes a test of each function with the store on PostgreSQL and on SQLite.
macro_rules! on_both {
    ($($promise:ident),+ $(,)?) => {
        on_fixture!(postgres, postgres: $($promise),+);
        on_fixture!(sqlite, sqlite: $($promise),+);
    };
}
