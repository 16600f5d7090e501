//! `examples/relationships` does what its README states, with its own programs.

mod dead_letters;
mod failed_pois;
mod fixture;
mod one_job;
mod payload;
mod resume;
mod transactional_submit;
mod unwritable_dead_letter;
