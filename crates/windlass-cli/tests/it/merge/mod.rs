//! A merge whose process dies, sleeps or is cancelled at the worst moment, or whose place refuses: the
//! load is there once, the report and the manifest whole, and nothing of it half.

mod asleep;
mod cancelled;
mod fixture;
mod killed;
mod page;
mod refused;
