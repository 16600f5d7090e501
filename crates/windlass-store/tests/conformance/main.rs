//! The behaviour that every store must have, tested on both backends, and on PostgreSQL in both dialects. Each file
//! covers one topic. A test is an async function with a [`fixture::StoreFixture`], listed in `both!`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a helper that panics fails its test")]

/// Runs tests of the surrounding module on one kind of store.
macro_rules! on_fixture {
    ($fixture:ident: $($name:ident),+ $(,)?) => {
        mod $fixture {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(crate::fixture::StoreFixture::$fixture().await).await;
            })+
        }
    };
}

/// Runs tests of the surrounding module on the stores that learn of changes of other processes.
macro_rules! notified {
    ($($name:ident),+ $(,)?) => {
        on_fixture!(sqlite: $($name),+);
        on_fixture!(postgres: $($name),+);
    };
}

/// Runs tests of the surrounding module on both backends, and on PostgreSQL in both dialects.
macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        notified!($($name),+);
        on_fixture!(strict: $($name),+);
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
mod read_snapshots;
mod restore;
mod retention;
mod schema;
mod serialization;
mod split;
mod statement_log;
mod stats;
mod submitters;
