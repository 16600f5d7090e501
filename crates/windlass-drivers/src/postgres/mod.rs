//! PostgreSQL: a pool, transactions with few round trips, notifications.

mod cancel;
mod channel_listener;
mod listener;
mod param;
mod pool;
mod prepared;
mod redshift;
mod rows;
mod settings;
mod tls;
mod transaction;

pub use self::{
    channel_listener::ChannelListener,
    listener::Listener,
    param::Param,
    pool::{DURABLE, IN_TRANSACTION, Postgres},
    redshift::{Redshift, RedshiftTransaction, TextRow},
    rows::Rows,
    transaction::Transaction,
};
