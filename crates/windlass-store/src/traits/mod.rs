//! The parts of [`Store`](crate::Store): one trait per table or role. `postgres/` and `sqlite/`
//! implement each of them in a file of the same name.

mod alerts;
mod cancellation;
mod changes;
mod chunks;
mod connection_shares;
mod controls;
mod dead_letters;
mod dependencies;
mod history;
mod jobs;
mod leases;
mod lifecycle;
mod parts;
mod read_snapshots;
mod retention;
mod schedules;
mod schema;
mod segments;
mod stats;
mod workers;

pub use alerts::AlertStore;
pub use cancellation::CancellationStore;
pub use changes::ChangeStore;
pub use chunks::ChunkStore;
pub use connection_shares::{ConnectionShare, ConnectionShareStore, TakenConnections};
pub use controls::ControlStore;
pub use dead_letters::DeadLetterStore;
pub use dependencies::DependencyStore;
pub use history::HistoryStore;
pub use jobs::JobStore;
pub use leases::LeaseStore;
pub use lifecycle::LifecycleStore;
pub use parts::PartStore;
pub use read_snapshots::ReadSnapshotStore;
pub use retention::RetentionStore;
pub use schedules::ScheduleStore;
pub use schema::SchemaStore;
pub use segments::SegmentStore;
pub use stats::StatsStore;
pub use workers::WorkerStore;
