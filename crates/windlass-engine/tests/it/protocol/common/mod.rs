//! What the topics share: databases, job types, workers, and looks at what came of them.

mod fixture;
mod jobs;

pub(crate) use fixture::{EngineFixture, TestDatabase, builder, toml};
pub(crate) use jobs::*;

/// Makes a test of each function on every database that holds records. MariaDB holds no store, so
/// that is in SQLite there.
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

/// Makes a test of each function on every database that is reached through a network.
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

/// Makes a test on PostgreSQL and one on SQLite of each function, for what is about the store.
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
