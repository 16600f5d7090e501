//! The outbox: what was committed there becomes exactly one job, whoever is killed meanwhile.

mod application;
mod between;
mod commands;
mod fixture;
mod kill;
