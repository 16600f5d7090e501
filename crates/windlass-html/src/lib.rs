//! HTML building blocks shared by the dashboard and the job reports.
//!
//! [`mod@format`] formats numbers, times and statuses, [`chart`] draws charts as SVG, [`components`] has the
//! elements of a page, and [`STYLE`] is the stylesheet. This crate reads no store and knows no server:
//! the caller passes the data.

pub mod chart;
pub mod components;
pub mod durations;
pub mod format;
pub mod report;
pub mod throughput;

/// The stylesheet of all pages, with a light and a dark colour scheme.
pub const STYLE: &str = include_str!("page.css");
