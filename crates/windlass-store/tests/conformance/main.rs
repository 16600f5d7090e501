//! What every store must do, run on both backends. A topic is a file; a test is an async function
//! of a [`fixture::StoreFixture`] that `both!` names.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the helpers of a test fail as the test does"
)]

/// Runs tests of the surrounding module on either backend.
macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(crate::fixture::StoreFixture::sqlite().await).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(crate::fixture::StoreFixture::postgres().await).await;
            })+
        }
    };
}

mod alerts;
mod budget;
mod cancel;
mod changes;
mod claim;
mod completion;
mod control;
mod dependencies;
mod digest;
mod durability;
mod fixture;
mod lease;
mod letters;
mod load;
mod migrate;
mod parts;
mod prune;
mod races;
mod restore;
mod stats;
mod steering;
mod submit;
mod submitters;
