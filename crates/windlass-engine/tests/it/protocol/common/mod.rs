//! Shared by all topics: databases, job types, workers and assertions.

mod fixture;
mod jobs;

pub(crate) use fixture::{EngineFixture, TestDatabase, builder, toml};
pub(crate) use jobs::*;

/// Makes a test of each function on every database for records. MariaDB cannot hold the store, so its store is in
/// SQLite.
macro_rules! on_each {
    ($($promise:ident),+ $(,)?) => {
        on_both!($($promise),+);
        mod mariadb {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise($crate::protocol::common::EngineFixture::mariadb().await).await;
            })+
        }
    };
}

/// Makes a test of each function on every database server.
macro_rules! on_servers {
    ($($promise:ident),+ $(,)?) => {
        mod postgres_server {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise($crate::protocol::common::EngineFixture::postgres().await).await;
            })+
        }
        mod mariadb_server {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise($crate::protocol::common::EngineFixture::mariadb().await).await;
            })+
        }
    };
}

/// Makes a test of each function with the store on PostgreSQL and on SQLite.
macro_rules! on_both {
    ($($promise:ident),+ $(,)?) => {
        mod postgres {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise($crate::protocol::common::EngineFixture::postgres().await).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise($crate::protocol::common::EngineFixture::sqlite().await).await;
            })+
        }
    };
}
