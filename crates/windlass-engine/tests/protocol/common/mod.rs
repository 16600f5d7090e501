//! What the topics share: databases, job types, workers, and looks at what came of them.

mod gate;
mod jobs;
mod world;

pub(crate) use gate::Gate;
pub(crate) use jobs::*;
pub(crate) use world::{World, builder, toml};

/// Makes a test on PostgreSQL and one on SQLite of each function.
macro_rules! on_both {
    ($($promise:ident),+ $(,)?) => {
        mod postgres {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise($crate::common::World::postgres().await).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test]
            async fn $promise() {
                super::$promise($crate::common::World::sqlite().await).await;
            })+
        }
    };
}
