//! MySQL and MariaDB: a pool, explicit transactions, statements with bound values.

mod pool;
mod settings;
mod transaction;

pub use self::{
    pool::{Access, Mysql},
    transaction::{Flow, Transaction},
};
pub use mysql_async::{
    Column, Row, Value,
    consts::{ColumnFlags, ColumnType},
};

#[cfg(test)]
mod tests;
