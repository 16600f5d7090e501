//! PostgreSQL: a pool, transactions of one round trip each way, notifications.

mod cancel;
mod listener;
mod param;
mod pool;
mod rows;
mod settings;
mod tls;
mod transaction;

pub use self::{
    listener::Listener,
    param::Param,
    pool::{DURABLE, Postgres},
    rows::Rows,
    transaction::Transaction,
};
