//! What the processes of a simulation share: the databases, the random numbers, the history and the violations.

use crate::focus::Focus;
use crate::history::History;
use crate::oracle;
use crate::plan::{Plan, Rates};
use crate::wire::Side;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rusqlite::MAIN_DB;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use windlass_drivers::MemoryDatabase;

/// The surroundings of all processes.
pub(crate) struct Environment {
    pub(crate) plan: Plan,
    pub(crate) store: Arc<MemoryDatabase>,
    pub(crate) app: Arc<MemoryDatabase>,
    rng: Mutex<StdRng>,
    pub(crate) history: Mutex<History>,
    /// Whether faults still happen.
    faults_on: AtomicBool,
    /// The number of signals of the store.
    pub(crate) signals: watch::Sender<i64>,
    /// Processes that have crashed, by number.
    pub(crate) crashed: mpsc::UnboundedSender<usize>,
    /// How often each database was restarted: requests that were on their way are lost.
    restarts: [AtomicU64; 2],
    /// Whether some commits of the database with the data are lost.
    pub(crate) data_lost: AtomicBool,
    /// Whether the store was restored while nothing was on its way to the data.
    pub(crate) restored_quietly: AtomicBool,
    /// What was submitted.
    pub(crate) submitted: AtomicUsize,
    /// What was requested, whether or not an answer came back: job type and tag.
    pub(crate) requested: Mutex<BTreeSet<(&'static str, String)>>,
    violation: Mutex<Option<String>>,
    pub(crate) violated: Notify,
}

impl Environment {
    pub(crate) fn new(
        seed: u64,
        focus: Option<Focus>,
        print: bool,
    ) -> anyhow::Result<(Arc<Environment>, mpsc::UnboundedReceiver<usize>)> {
        let mut rng = StdRng::seed_from_u64(seed);
        let plan = Plan::draw(&mut rng, focus);
        let (crashed, restarts) = mpsc::unbounded_channel();
        let env = Environment {
            store: MemoryDatabase::new()?,
            app: MemoryDatabase::new()?,
            rng: Mutex::new(rng),
            history: Mutex::new(History::new(print)),
            faults_on: AtomicBool::new(false),
            signals: watch::Sender::new(0),
            crashed,
            restarts: Default::default(),
            data_lost: AtomicBool::new(false),
            restored_quietly: AtomicBool::new(false),
            submitted: AtomicUsize::new(0),
            requested: Mutex::default(),
            violation: Mutex::default(),
            violated: Notify::new(),
            plan,
        };
        oracle::create_tables(&env)?;
        Ok((Arc::new(env), restarts))
    }

    pub(crate) fn add(&self, who: &str, what: &str) {
        self.history.lock().add(who, what);
    }

    /// Records what must never happen. The first violation ends the history.
    pub(crate) fn violate(&self, what: String) {
        self.add("CHECK", &what);
        self.violation.lock().get_or_insert(what);
        self.violated.notify_one();
    }

    pub(crate) fn violation(&self) -> Option<String> {
        self.violation.lock().clone()
    }

    pub(crate) fn restarts(&self, side: Side) -> u64 {
        self.restarts[side as usize].load(Relaxed)
    }

    pub(crate) fn database(&self, side: Side) -> &Arc<MemoryDatabase> {
        if side == Side::Store { &self.store } else { &self.app }
    }

    /// Whether a redrive has not ended.
    pub(crate) fn has_open_redrive(&self) -> bool {
        let sql =
            "SELECT EXISTS (SELECT 1 FROM windlass_jobs WHERE redrive AND finished_at IS NULL)";
        self.store.with(|db| db.query_row(sql, [], |row| row.get(0))).unwrap_or(false)
    }

    /// Copies a database.
    pub(crate) fn image(&self, side: Side) -> rusqlite::Result<Vec<u8>> {
        self.database(side).with(|db| Ok(db.serialize(MAIN_DB)?.to_vec()))
    }

    /// Restarts a database with an earlier content.
    pub(crate) fn restore(&self, side: Side, image: &[u8]) -> rusqlite::Result<()> {
        self.restarts[side as usize].fetch_add(1, Relaxed);
        self.database(side).with(|db| {
            db.flush_prepared_statement_cache();
            db.deserialize_read_exact(MAIN_DB, image, image.len(), false)
        })
    }

    pub(crate) fn set_faults(&self, on: bool) {
        self.faults_on.store(on, Relaxed);
    }

    pub(crate) fn rates(&self) -> Rates {
        if self.faults_on.load(Relaxed) { self.plan.rates } else { Rates::default() }
    }

    pub(crate) fn chance(&self, probability: f64) -> bool {
        probability > 0.0 && self.rng.lock().random_bool(probability)
    }

    pub(crate) fn pick(&self, below: usize) -> usize {
        self.rng.lock().random_range(0..below.max(1))
    }

    pub(crate) fn between(&self, shortest: Duration, longest: Duration) -> Duration {
        self.rng.lock().random_range(shortest..=longest)
    }

    /// A time whose mean is given, as between independent events.
    pub(crate) fn around(&self, mean: Duration) -> Duration {
        let uniform: f64 = self.rng.lock().random_range(0.0001..1.0);
        mean.mul_f64(-uniform.ln())
    }
}
