//! What a seed decides in advance: sizes, rates of faults, and the job types.

use crate::focus::Focus;
use rand::Rng;
use rand::rngs::StdRng;
use std::time::Duration;

/// The plan of one history. Rates differ from seed to seed, and many are zero: a fault that happens all the time
/// would hide what a rare one does.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) processes: usize,
    pub(crate) slots: usize,
    pub(crate) items: i64,
    pub(crate) chunk_items: i64,
    pub(crate) commit_items: i64,
    pub(crate) lease: Duration,
    /// The time that a handler takes for each item. Chunks that take long are split.
    pub(crate) item_time: Duration,
    pub(crate) requests: usize,
    /// How long faults and operators act.
    pub(crate) fault_time: Duration,
    pub(crate) rates: Rates,
    /// The mean time between two actions of operators.
    pub(crate) operators: Option<Duration>,
    /// The mean time between two writes of another program.
    pub(crate) writer: Option<Duration>,
    /// The mean time between two kills, freezes or changes of the clock.
    pub(crate) process_faults: Option<Duration>,
    /// The mean time between two prunings.
    pub(crate) pruner: Option<Duration>,
    pub(crate) schedule: bool,
    pub(crate) database_fault: DatabaseFault,
    /// Whether one item in thirteen is refused until an operator corrects it.
    pub(crate) bad_items: bool,
    pub(crate) focus: Focus,
}

/// What happens to a database as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseFault {
    None,
    /// The store is restored from a backup, as docs/operations.md says: all processes are stopped, and one is
    /// started with `--after-restore`.
    StoreRestored,
    /// The database with the data crashes and loses its last commits.
    DataLost,
}

/// Probabilities per call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rates {
    pub(crate) lost_request: f64,
    pub(crate) lost_answer: f64,
    pub(crate) late_request: f64,
    /// Of a commit to the data, whose sender is told at once that its connection is lost.
    pub(crate) late_commit: f64,
    pub(crate) refused: f64,
    /// Of a commit, by a full disk, while a redrive is open.
    pub(crate) full_disk: f64,
    pub(crate) slow: f64,
    pub(crate) crash: f64,
    pub(crate) lost_notification: f64,
    /// Of an item, in a handler.
    pub(crate) item_error: f64,
    pub(crate) slow_item: f64,
}

impl Plan {
    /// Draws a plan, with this focus or a drawn one.
    pub(crate) fn draw(rng: &mut StdRng, focus: Option<Focus>) -> Plan {
        let mut rate = |most: f64| match rng.random_bool(0.4) {
            true => 0.0,
            false => rng.random_range(0.0..most),
        };
        let rates = Rates {
            lost_request: rate(0.03),
            lost_answer: rate(0.03),
            late_request: rate(0.03),
            late_commit: 0.0,
            refused: rate(0.08),
            full_disk: 0.0,
            slow: rate(0.02),
            crash: rate(0.002),
            lost_notification: rate(0.8),
            item_error: rate(0.1),
            slow_item: rate(0.05),
        };
        let chunk_items = rng.random_range(2..=20);
        let mut every = |longest: f64| {
            rng.random_bool(0.7).then(|| Duration::from_secs_f64(rng.random_range(0.3..longest)))
        };
        let (operators, writer, process_faults) = (every(6.0), every(5.0), every(20.0));
        let pruner = every(5.0).filter(|_| rng.random_bool(0.4));
        let plan = Plan {
            processes: rng.random_range(1..=3),
            slots: rng.random_range(1..=3),
            items: rng.random_range(5..=60),
            chunk_items,
            commit_items: rng.random_range(1..=chunk_items),
            lease: Duration::from_millis(rng.random_range(1000..8000)),
            item_time: Duration::ZERO,
            requests: rng.random_range(1..=5),
            fault_time: Duration::from_secs(rng.random_range(10..=120)),
            rates,
            operators,
            writer,
            process_faults,
            pruner,
            schedule: rng.random_bool(0.3),
            database_fault: match rng.random_range(0..10) {
                0 | 1 => DatabaseFault::StoreRestored,
                2 => DatabaseFault::DataLost,
                _ => DatabaseFault::None,
            },
            bad_items: true,
            focus: Focus::None,
        };
        // From a copy of the generator, so that the other histories stay as they are.
        let mut rng = rng.clone();
        let plan = plan.with_slow_items(&mut rng);
        let focus = focus.unwrap_or_else(|| Focus::draw(&mut rng));
        focus.apply(plan, &mut rng).without_what_a_restore_repeats()
    }

    /// In some histories every item takes a while, with one item per commit, so that chunks are split.
    fn with_slow_items(self, rng: &mut StdRng) -> Plan {
        if !rng.random_bool(0.25) {
            return self;
        }
        let item_time = self.lease.mul_f64(rng.random_range(0.05..0.4));
        Plan { item_time, chunk_items: rng.random_range(10..=40), commit_items: 1, ..self }
    }

    /// Whether every request is for the handler, whose items can be deferred and take a while.
    pub(crate) fn only_handlers(&self) -> bool {
        matches!(self.focus, Focus::Deferred | Focus::Restores | Focus::Splits)
    }

    /// Whether every request is for the handler that only inserts. No guard refuses a second insert.
    pub(crate) fn only_inserts(&self) -> bool {
        matches!(self.focus, Focus::LostCommits | Focus::Recoveries)
    }

    /// What was submitted after the backup, by a schedule or a dependency, is submitted again after a restore.
    fn without_what_a_restore_repeats(self) -> Plan {
        match self.database_fault {
            DatabaseFault::StoreRestored => Plan { schedule: false, pruner: None, ..self },
            _ => self,
        }
    }

    /// The configuration of a process that reaches the store and the data under these paths.
    pub(crate) fn toml(&self, store: &str, app: &str) -> String {
        let (chunk, commit, lease) = (self.chunk_items, self.commit_items, self.lease.as_millis());
        let job = |name: &str, step: &str| {
            format!(
                "[jobs.{name}]\nsource.connection = \"app\"\nsource.table = \"items\"\n{step}\n\
                 chunk.items = {chunk}\nchunk.lease = \"{lease}ms\"\n\
                 chunk.timeout = \"60s\"\nfailures = {{ budget = 1000 }}\n\
                 retry = {{ attempts = 3, backoff = \"100ms\", max = \"2s\" }}\n"
            )
        };
        let tagged = "params = { tag = { type = \"text\", required = true } }";
        let commit = format!("{tagged}\nchunk.commit = {commit}");
        let sql = format!("{SQL}\n{commit}");
        let mut toml = format!(
            "[store]\nurl = \"sqlite:{store}\"\n[connections.app]\nurl = \"sqlite:{app}\"\n"
        );
        toml += &job("SQL", &sql);
        toml += &job("HANDLER", &format!("{HANDLER}\n{commit}"));
        toml += &job("MAP", &format!("{MAP}\n{tagged}"));
        toml += &job("CHILD", &sql.replace("|| :tag", "|| 'c' || :tag"));
        if self.only_inserts() {
            toml += &job("INSERT", &format!("{INSERT}\n{commit}"));
        }
        if self.schedule {
            toml += &job("SCHEDULED", &format!("{sql}\n{SCHEDULE}"));
        }
        if self.database_fault == DatabaseFault::StoreRestored {
            return toml;
        }
        toml + "[[dependencies]]\njob = \"CHILD\"\nafter = [\"SQL\", \"MAP\"]\nmatch = [\"tag\"]\n"
    }
}

const SQL: &str =
    "step.sql = \"UPDATE items SET marks = marks || :tag, version = version + 1 WHERE {chunk}\"";
const HANDLER: &str = "step.handler = \"work\"\nstep.version = \"version\"";
const INSERT: &str = "step.handler = \"insert\"";
const MAP: &str =
    "step.map = \"SELECT :tag AS tag, grp, count(*) AS n FROM {source} WHERE {chunk} GROUP BY grp\"
reduce = \"SELECT tag, grp, sum(n) AS n FROM parts GROUP BY tag, grp ORDER BY grp\"
load = { connection = \"app\", table = \"totals\", replace = [\"tag\"] }";
const SCHEDULE: &str = "schedule = { cron = \"* * * * *\", missed = \"run-all\", params = { tag = \"{date}T{time};\" } }";
