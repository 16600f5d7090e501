//! The behaviour that every store must have, tested on both backends. Each file covers one topic. A test
//! is an async function with a [`fixture::StoreFixture`], listed in `both!`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a helper that panics fails its test")]

/// Runs tests of the surrounding module on both backends.
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

mod aggregates;
mod alerts;
mod budget;
mod cancellation;
mod changes;
mod commands;
mod completion;
mod connection_shares;
mod controls;
mod dead_letters;
mod dependencies;
mod durability;
mod fixture;
mod jobs;
mod leases;
mod leasing;
mod parts;
mod planning;
mod races;
mod restore;
mod retention;
mod schema;
mod stats;
mod submitters;
