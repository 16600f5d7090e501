//! The bounds of a check: how many chunks, items and processes there are, and how much may go wrong.

/// How often something may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Processes that are killed.
    pub crashes: u8,
    /// Leases that expire although their holder runs.
    pub slow: u8,
    /// Calls whose answer is lost: connections that break, statements that are executed later or never.
    pub unanswered: u8,
    /// Crashes of the store's server that lose what is not on its disk.
    pub store_crashes: u8,
    /// Crashes of the user's database that lose what is not on its disk, and what is in flight.
    pub data_crashes: u8,
    /// Chunks that are split.
    pub splits: u8,
    /// Items that are deferred.
    pub deferred: u8,
    /// Deferred items that become dead letters.
    pub dead: u8,
    /// Chunks that fail for good.
    pub failures: u8,
    /// `windlass retry`.
    pub retries: u8,
    /// `windlass cancel`.
    pub cancels: u8,
    /// Runs of the retention that delete the job.
    pub prunes: u8,
    /// Restores of the store from a backup.
    pub restores: u8,
}

/// One small world that is checked exhaustively.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// A name for reports.
    pub name: &'static str,
    /// Chunks of the one job.
    pub chunks: u8,
    /// Items per chunk; a batch is one item.
    pub items: u8,
    /// Processes, each with one slot.
    pub processes: u8,
    /// The job is a redrive: when a chunk fails, its ledger must be final.
    pub redrive: bool,
    /// How much may happen.
    pub budget: Budget,
    /// Drops the assumption that no ledger row is pruned between a backup and its restore.
    pub prune_before_restore: bool,
    /// Drops the assumption that a restored store gets commands only after `--after-restore`.
    pub early_commands: bool,
    /// All processes are stopped before the store is restored, as operators are told to.
    pub stopped_before_restore: bool,
}

impl Scope {
    /// One item, one process, one fault.
    pub fn smallest() -> Scope {
        Scope {
            name: "smallest",
            chunks: 1,
            items: 1,
            processes: 1,
            redrive: false,
            budget: Budget { unanswered: 1, ..Budget::default() },
            prune_before_restore: false,
            early_commands: false,
            stopped_before_restore: false,
        }
    }

    /// Workers that die, stall and lose connections in a chunk with several batches and deferred items.
    pub fn faults() -> Scope {
        let budget =
            Budget { slow: 1, unanswered: 2, deferred: 1, dead: 1, prunes: 1, ..Budget::default() };
        Scope { name: "faults", items: 2, processes: 2, budget, ..Scope::smallest() }
    }

    /// Operators who cancel and retry, and the retention, while workers fail and stall.
    pub fn operators() -> Scope {
        let budget = Budget {
            slow: 2,
            unanswered: 1,
            failures: 1,
            retries: 1,
            cancels: 1,
            prunes: 1,
            ..Budget::default()
        };
        Scope { name: "operators", items: 2, processes: 2, budget, ..Scope::smallest() }
    }

    /// Several chunks of one job: its count of open chunks, its end, and a store that loses its last writes.
    pub fn chunks() -> Scope {
        let budget = Budget {
            crashes: 1,
            store_crashes: 1,
            failures: 1,
            retries: 1,
            cancels: 1,
            prunes: 1,
            ..Budget::default()
        };
        Scope { name: "chunks", chunks: 2, processes: 2, budget, ..Scope::smallest() }
    }

    /// A database that loses commits which did not wait for its disk, during a redrive that fails.
    pub fn database() -> Scope {
        let budget = Budget {
            slow: 1,
            unanswered: 1,
            data_crashes: 1,
            deferred: 1,
            failures: 1,
            ..Budget::default()
        };
        Scope { name: "database", budget, ..Scope::redrive() }
    }

    /// A redrive that fails or is cancelled.
    pub fn redrive() -> Scope {
        let budget = Budget {
            slow: 1,
            unanswered: 1,
            failures: 2,
            retries: 1,
            cancels: 1,
            ..Budget::default()
        };
        Scope {
            name: "redrive",
            items: 2,
            processes: 2,
            redrive: true,
            budget,
            ..Scope::smallest()
        }
    }

    /// A store that is restored while processes of the time before still run.
    pub fn restore() -> Scope {
        let budget = Budget {
            slow: 1,
            unanswered: 1,
            failures: 1,
            cancels: 1,
            restores: 1,
            ..Budget::default()
        };
        Scope { name: "restore", items: 2, processes: 2, budget, ..Scope::smallest() }
    }

    /// A chunk that is split while leases are lost, answers are lost, items are deferred and the job is cancelled.
    pub fn splits() -> Scope {
        let budget = Budget {
            splits: 1,
            slow: 1,
            unanswered: 1,
            store_crashes: 1,
            deferred: 1,
            cancels: 1,
            ..Budget::default()
        };
        Scope { name: "splits", items: 2, processes: 2, budget, ..Scope::smallest() }
    }

    /// A chunk that is split by a process whose lease has expired.
    pub fn splits_of_lost_leases() -> Scope {
        let budget = Budget { splits: 1, slow: 1, ..Budget::default() };
        Scope { name: "splits of lost leases", budget, ..Scope::splits() }
    }

    /// A chunk that is split, in a database that loses commits which did not wait for its disk.
    pub fn lost_splits() -> Scope {
        let budget =
            Budget { splits: 1, slow: 1, unanswered: 1, data_crashes: 1, ..Budget::default() };
        Scope { name: "lost splits", items: 3, processes: 2, budget, ..Scope::smallest() }
    }

    /// A store that is restored to a time before or after a split.
    pub fn restored_splits() -> Scope {
        let budget = Budget { splits: 1, slow: 1, unanswered: 1, restores: 1, ..Budget::default() };
        Scope {
            name: "restored splits",
            items: 2,
            processes: 2,
            budget,
            stopped_before_restore: true,
            ..Scope::smallest()
        }
    }

    /// All scopes in which the whole protocol must hold.
    pub fn all() -> Vec<Scope> {
        vec![
            Scope::smallest(),
            Scope::faults(),
            Scope::operators(),
            Scope::chunks(),
            Scope::database(),
            Scope::redrive(),
            Scope::restore(),
            Scope::splits(),
            Scope::lost_splits(),
            Scope::restored_splits(),
        ]
    }
}
