//! What happened in the rounds of a run.

use std::fmt;

#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) jobs: usize,
    pub(super) completed: usize,
    pub(super) cancelled: usize,
    pub(super) redrives: usize,
    pub(super) commits: usize,
    pub(super) writes: usize,
    pub(super) kills: usize,
    pub(super) freezes: usize,
    pub(super) crashes: usize,
    pub(super) cuts: usize,
    pub(super) pooler_restarts: usize,
    pub(super) full_disks: usize,
    pub(super) commands: usize,
    pub(super) histories: usize,
    pub(super) violations: Vec<String>,
}

impl Summary {
    pub(super) fn add(&mut self, round: Summary) {
        self.jobs += round.jobs;
        self.completed += round.completed;
        self.cancelled += round.cancelled;
        self.redrives += round.redrives;
        self.commits += round.commits;
        self.writes += round.writes;
        self.kills += round.kills;
        self.freezes += round.freezes;
        self.crashes += round.crashes;
        self.cuts += round.cuts;
        self.pooler_restarts += round.pooler_restarts;
        self.full_disks += round.full_disks;
        self.commands += round.commands;
        self.histories += round.histories;
        self.violations.extend(round.violations);
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} jobs ({} completed, {} cancelled, {} redrives), {} ledger changes, {} writes of the bystander; {} kills, {} freezes, {} server crashes, \
             {} cut connections, {} pooler restarts, {} full disks, {} commands; {} histories checked, {} violations",
            self.jobs,
            self.completed,
            self.cancelled,
            self.redrives,
            self.commits,
            self.writes,
            self.kills,
            self.freezes,
            self.crashes,
            self.cuts,
            self.pooler_restarts,
            self.full_disks,
            self.commands,
            self.histories,
            self.violations.len()
        )
    }
}
