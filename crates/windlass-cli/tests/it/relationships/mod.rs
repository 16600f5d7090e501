//! `examples/relationships` keeps every promise of its README, with its own programs.

mod fixture;
mod letters;
mod one_job;
mod resume;
mod together;
mod unwritten;
