//! Processes are killed, frozen and disconnected while they work. Every row is changed exactly once.

mod connection_budget;
mod diamond;
mod durable;
mod frozen_worker;
mod group_durability;
mod kill;
mod killed_planner;
mod leased_ahead;
mod locked_store;
mod open_transaction;
mod outage;
mod pooler;
mod read_snapshot;
mod restart;
mod restore;
mod shutdown;
mod writer;
