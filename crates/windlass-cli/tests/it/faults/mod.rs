//! Processes killed, frozen and cut off at work: every row is changed exactly once all the same.

mod diamond;
mod durable;
mod kill;
mod loader;
mod locked;
mod open_transaction;
mod outage;
mod pooler;
mod restart;
mod restore;
mod shutdown;
mod stall;
mod writer;
