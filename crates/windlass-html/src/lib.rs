//! What people look at, wherever it is shown: the dashboard and the reports of jobs are made of this.
//!
//! [`words`] say numbers, times and statuses, [`chart`] draws, [`elements`] are the pieces of a page,
//! and [`STYLE`] is how all of it looks. Nothing here asks a store or knows a server: who makes a
//! page brings what is on it.

pub mod chart;
pub mod components;
pub mod durations;
pub mod format;
pub mod report;
pub mod throughput;

/// The stylesheet of every page, in a light and a dark set of colours.
pub const STYLE: &str = include_str!("page.css");
