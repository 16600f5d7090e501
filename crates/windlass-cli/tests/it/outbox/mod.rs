//! The outbox: each committed row becomes exactly one job, even if processes are killed.

mod application;
mod commands;
mod fixture;
mod kill;
mod killed_before_removal;
