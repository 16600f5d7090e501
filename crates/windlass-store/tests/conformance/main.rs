//! What every store must do, run on both backends. A topic is a file; a test is an async function
//! of a [`bench::Bench`] that `both!` names.

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
                super::$name(crate::bench::Bench::sqlite().await).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(crate::bench::Bench::postgres().await).await;
            })+
        }
    };
}

mod alerts;
mod bench;
mod budget;
mod cancel;
mod changes;
mod claim;
mod completion;
mod control;
mod dependencies;
mod digest;
mod durability;
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
