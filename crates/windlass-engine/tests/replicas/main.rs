//! Read replicas: what they serve, what they never serve, and what becomes of reads when one is
//! stopped or lags. The replicas are real: streaming standbys of a server of our own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the helpers of a test fail as the test does"
)]

mod away;
mod lagging;
mod mariadb;
mod served;
mod world;
mod written_back;
