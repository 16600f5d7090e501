//! A merge whose process dies, freezes or is cancelled at the worst moment, or whose destination refuses. The load
//! happens once, the report and the manifest are complete, and nothing is half visible.

mod cancelled;
mod cancelled_report;
mod fixture;
mod frozen;
mod killed;
mod page;
mod refused;
