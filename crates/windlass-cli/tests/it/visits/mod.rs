//! `examples/visits` does what its README states, with its own configuration and data.

mod cancel;
mod chunks;
mod dead_letters;
mod fixture;
mod killed_in_chunk;
mod limit;
mod listing;
mod marks;
mod rerun;
mod resume;
mod retries;
mod two_processes;
