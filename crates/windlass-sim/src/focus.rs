//! What the faults of a history concentrate on. Some histories need several rare events in one order, which an even mix
//! of faults hardly ever produces.

use crate::plan::{DatabaseFault, Plan, Rates};
use rand::Rng;
use rand::rngs::StdRng;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Focus {
    /// An even mix.
    None,
    /// Chunks fail, and operators retry jobs while they are pruned.
    Retention,
    /// Processes are frozen beyond their leases, and what they sent arrives late, while jobs end and are pruned.
    Stalls,
    /// As with stalls, and operators cancel jobs.
    Cancels,
    /// Items are deferred, and what was sent for them arrives late.
    Deferred,
    /// The disk is full while dead letters are redriven, and what was sent for them arrives late.
    Redrives,
    /// The database with the data crashes often and loses its last commits. Items are deferred, and tried again by the
    /// same lease.
    LostCommits,
    /// Processes are frozen beyond their leases before their first commit, which then arrives late, while jobs end and
    /// are pruned.
    Recoveries,
    /// The store is restored when all processes have stopped and nothing is on its way.
    Restores,
    /// Items are so slow that chunks are split.
    Splits,
}

/// Each of these is drawn equally often.
const DRAWN: [Focus; 9] = [
    Focus::Retention,
    Focus::Stalls,
    Focus::Cancels,
    Focus::Deferred,
    Focus::Redrives,
    Focus::LostCommits,
    Focus::Recoveries,
    Focus::Restores,
    Focus::Splits,
];

/// How many histories have a focus.
const FOCUSED: f64 = 0.25;

impl Focus {
    pub(crate) fn draw(rng: &mut StdRng) -> Focus {
        match rng.random_bool(FOCUSED) {
            true => DRAWN[rng.random_range(0..DRAWN.len())],
            false => Focus::None,
        }
    }

    /// The plan with the sizes and rates of the focus.
    pub(crate) fn apply(self, plan: Plan, rng: &mut StdRng) -> Plan {
        let mut seconds = |from: f64, to: f64| Duration::from_secs_f64(rng.random_range(from..to));
        let plan = Plan { focus: self, ..plan };
        let calm = Plan {
            database_fault: DatabaseFault::None,
            schedule: false,
            item_time: Duration::ZERO,
            lease: seconds(1.0, 2.0),
            fault_time: seconds(90.0, 120.0),
            rates: Rates { lost_notification: plan.rates.lost_notification, ..Rates::default() },
            operators: None,
            process_faults: None,
            pruner: None,
            ..plan.clone()
        };
        match self {
            Focus::None => plan,
            Focus::Retention => Plan {
                bad_items: false,
                requests: 5,
                commit_items: 1,
                // A job is pruned half a minute after it has failed.
                operators: Some(seconds(8.0, 20.0)),
                pruner: Some(seconds(4.0, 8.0)),
                rates: Rates { refused: 0.25, ..calm.rates },
                ..calm
            },
            Focus::Stalls | Focus::Cancels => Plan {
                bad_items: false,
                processes: 3,
                slots: 1,
                items: 4 + plan.items % 8,
                chunk_items: 4,
                commit_items: 1 + plan.commit_items % 4,
                requests: 5,
                operators: (self == Focus::Cancels).then(|| seconds(1.0, 3.0)),
                process_faults: Some(seconds(4.0, 12.0)),
                pruner: (self == Focus::Stalls).then(|| seconds(0.5, 1.5)),
                rates: Rates {
                    slow: 0.04,
                    late_request: 0.1,
                    refused: if self == Focus::Cancels { 0.05 } else { 0.0 },
                    ..calm.rates
                },
                ..calm
            },
            Focus::Deferred => Plan {
                bad_items: false,
                writer: None,
                commit_items: 1 + plan.commit_items % 2,
                rates: Rates { item_error: 0.4, late_request: 0.25, ..calm.rates },
                ..calm
            },
            Focus::Redrives => Plan {
                items: 20 + plan.items,
                commit_items: 1,
                chunk_items: 10,
                requests: 6,
                // Every redrive is a job that the audit reads at the end.
                operators: Some(seconds(2.0, 4.0)),
                rates: Rates { late_commit: 0.3, full_disk: 0.5, ..calm.rates },
                ..calm
            },
            Focus::LostCommits => Plan {
                bad_items: false,
                writer: None,
                items: 30 + plan.items,
                requests: 15,
                chunk_items: 2,
                commit_items: 1,
                // Longer than the backoff of an item, so that no lease ends to wait for one.
                item_time: seconds(0.2, 0.3),
                database_fault: DatabaseFault::DataLost,
                rates: Rates { item_error: 0.4, late_commit: 0.5, ..calm.rates },
                ..calm
            },
            Focus::Recoveries => Plan {
                bad_items: false,
                writer: None,
                processes: 3,
                slots: 1,
                items: 4 + plan.items % 8,
                chunk_items: 4,
                // A row that is created again matches the first commit of a lease only.
                commit_items: 4,
                requests: 40,
                item_time: seconds(0.2, 0.4),
                process_faults: Some(seconds(3.0, 6.0)),
                pruner: Some(seconds(0.3, 0.8)),
                rates: Rates { late_commit: 0.5, ..calm.rates },
                ..calm
            },
            Focus::Restores => Plan {
                bad_items: false,
                requests: 2,
                items: 30 + plan.items,
                commit_items: 1,
                item_time: calm.lease.mul_f64(0.15),
                fault_time: 2 * calm.fault_time,
                database_fault: DatabaseFault::StoreRestored,
                process_faults: Some(seconds(4.0, 8.0)),
                rates: Rates { slow: 0.05, ..calm.rates },
                ..calm
            },
            Focus::Splits => Plan {
                item_time: calm.lease.mul_f64(0.3),
                chunk_items: 20,
                commit_items: 1,
                slots: 3,
                rates: Rates { item_error: 0.1, late_request: 0.1, ..calm.rates },
                process_faults: plan.process_faults,
                database_fault: plan.database_fault,
                ..calm
            },
        }
    }
}
