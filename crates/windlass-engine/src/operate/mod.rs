//! Operating a cluster: cancellation, controls, health, alerts, audit, retention and maintenance.

pub(crate) mod after_restore;
pub(crate) mod alerts;
pub(crate) mod audit;
pub(crate) mod availability;
pub(crate) mod cancellation;
pub(crate) mod connection_budget;
pub(crate) mod controls;
pub(crate) mod files;
pub(crate) mod health_probe;
pub(crate) mod inspect;
pub(crate) mod job_log;
mod lost_snapshots;
pub(crate) mod maintenance;
pub(crate) mod process_identity;
pub(crate) mod retention;
