//! One process: the real engine with its worker and scheduler, on its own wires.

use crate::environment::Environment;
use crate::wire::{Life, Side, Wire};
use parking_lot::Mutex;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::Duration;
use windlass_core::{Change, Config, ItemError, Outcome};
use windlass_drivers::Sqlite;
use windlass_engine::{Engine, ItemContext, Options, Worker};

/// A process that has connected.
pub(crate) struct Process {
    pub(crate) life: Arc<Life>,
    pub(crate) engine: Engine,
    /// The databases are known under the paths of this process for as long as these exist.
    _databases: [Sqlite; 2],
}

impl Process {
    /// Connects the engine of a process, as the commands do: with or without `--after-restore`.
    pub(crate) async fn connect(
        env: &Arc<Environment>,
        life: &Arc<Life>,
        after_restore: bool,
    ) -> anyhow::Result<Process> {
        let attach = |side, name: &str| {
            let path = format!("/{}/{name}.db", life.name);
            let (env, life, notified) = (env.clone(), life.clone(), AtomicI64::new(0));
            let database = env.database(side).clone();
            let wire = Arc::new(Wire { env, life, side, notified });
            (database.attach(Path::new(&path), wire), path)
        };
        let (store, store_path) = attach(Side::Store, "store");
        let (app, app_path) = attach(Side::App, "app");
        let toml = env.plan.toml(&store_path, &app_path);
        let config = Config::parse(&toml, |_| None).map_err(|error| anyhow::anyhow!("{error}"))?;
        let handler = |writes: bool| {
            let env = env.clone();
            move |item: Item, context: ItemContext| work(env.clone(), writes, item, context)
        };
        let engine = Engine::builder(config).handler("work", handler(true));
        let engine = engine.handler("insert", handler(false)).connect().await?;
        match after_restore {
            false => engine.check_restored().await?,
            true => {
                let done = engine.continue_after_restore().await?;
                anyhow::ensure!(done.unreachable.is_empty(), "{:?}", done.unreachable);
            }
        }
        Ok(Process { life: life.clone(), engine, _databases: [store, app] })
    }

    /// Starts its loops. They end with the simulation, or wait for ever once the process is dead.
    fn start(&self, env: &Environment) {
        let options = Options::default().with_slots(env.plan.slots).with_name(&self.life.name);
        let (worker, _) = Worker::new(self.engine.clone(), options);
        tokio::spawn(worker.run());
        let engine = self.engine.clone();
        tokio::spawn(async move { engine.run_scheduler().await });
    }
}

/// A record of `items`.
#[derive(Deserialize)]
struct Item {
    id: i64,
    marks: String,
    bad: i64,
}

/// The longest time that a handler takes for an item: longer than the lease, which heartbeats renew.
const SLOWEST_ITEM: Duration = Duration::from_secs(20);

/// Inserts a row for an item, and also changes the item if `writes`.
async fn work(
    env: Arc<Environment>,
    writes: bool,
    item: Item,
    context: ItemContext,
) -> Result<Outcome, ItemError> {
    let rates = env.rates();
    if !env.plan.item_time.is_zero() {
        tokio::time::sleep(env.plan.item_time).await;
    }
    if env.chance(rates.slow_item) {
        tokio::time::sleep(env.between(Duration::ZERO, SLOWEST_ITEM)).await;
    }
    if env.chance(rates.item_error) {
        return Err(ItemError::transient("simulated failure of the handler"));
    }
    if item.bad != 0 && !is_repaired(&env) {
        return Err(ItemError::permanent("this item is bad"));
    }
    let tag = context.param("tag").and_then(|tag| tag.as_str()).unwrap_or_default();
    let change = match writes {
        true => Change::default().set("marks", format!("{}{tag}", item.marks)),
        false => Change::default(),
    };
    Ok(change.insert("log", [("tag", tag.into()), ("item", item.id.into())]).into())
}

fn is_repaired(env: &Environment) -> bool {
    let sql = "SELECT repaired FROM sim_settings";
    env.app.with(|db| db.query_row(sql, [], |row| row.get(0))).unwrap_or(false)
}

/// All processes. Those that crash are started again.
pub(crate) struct Processes {
    pub(crate) env: Arc<Environment>,
    running: Mutex<Vec<Option<Arc<Process>>>>,
    starting: Mutex<Vec<Arc<Life>>>,
    /// How many processes were started so far.
    started: AtomicI64,
    /// Whether an operator has stopped all processes.
    halted: AtomicBool,
}

/// The wait before a process that could not connect is started again.
const START_RETRY: Duration = Duration::from_secs(1);
const LONGEST_START: Duration = Duration::from_secs(120);

impl Processes {
    pub(crate) fn new(env: Arc<Environment>) -> Arc<Processes> {
        let running = Mutex::new((0..env.plan.processes).map(|_| None).collect());
        let starting = Mutex::default();
        Arc::new(Processes {
            env,
            running,
            starting,
            started: AtomicI64::new(0),
            halted: AtomicBool::new(false),
        })
    }

    /// Starts a process in the place of one that does not run any more.
    pub(crate) fn start(self: &Arc<Processes>, number: usize) {
        if self.halted.load(Relaxed) {
            return;
        }
        let (processes, life) = (self.clone(), self.next_life(number));
        processes.starting.lock().push(life.clone());
        processes.running.lock()[number] = None;
        tokio::spawn(async move {
            loop {
                match Process::connect(&processes.env, &life, false).await {
                    Ok(process) if !life.is_dead() => {
                        processes.env.add(&life.name, "started");
                        process.start(&processes.env);
                        processes.running.lock()[number] = Some(Arc::new(process));
                        return;
                    }
                    Ok(_) => return,
                    Err(error) => processes.env.add(&life.name, &format!("cannot start: {error}")),
                }
                tokio::time::sleep(START_RETRY).await;
            }
        });
    }

    /// Completes what an operator began, who is gone.
    pub(crate) async fn finish_restore(self: &Arc<Processes>) {
        if self.halted.load(Relaxed) {
            self.continue_after_restore().await;
        }
    }

    fn next_life(&self, number: usize) -> Arc<Life> {
        let generation = self.started.fetch_add(1, Relaxed);
        Arc::new(Life::new(number, format!("p{number}.{generation}")))
    }

    /// Ends all processes, until the store is restored and prepared for its new processes.
    pub(crate) fn halt(&self) {
        self.halted.store(true, Relaxed);
        self.starting.lock().drain(..).for_each(|life| {
            life.end();
        });
    }

    /// Starts a process with `--after-restore`, again and again until it succeeds, then all others.
    pub(crate) async fn continue_after_restore(self: &Arc<Processes>) {
        loop {
            let life = self.next_life(0);
            // It may crash as well. Then nothing answers.
            let connecting = Process::connect(&self.env, &life, true);
            match tokio::time::timeout(LONGEST_START, connecting).await {
                Ok(Ok(_)) => break,
                Ok(Err(error)) => self.env.add(&life.name, &format!("cannot start: {error}")),
                Err(_) => drop(life.end()),
            }
        }
        self.env.add("oper", "continued after the restore");
        self.halted.store(false, Relaxed);
        self.start_missing();
    }

    /// Starts all processes that do not run.
    pub(crate) fn start_missing(self: &Arc<Processes>) {
        for number in 0..self.env.plan.processes {
            let runs = self.running.lock()[number].as_ref().is_some_and(|p| !p.life.is_dead());
            if !runs {
                self.start(number);
            }
        }
    }

    /// One of the running processes.
    pub(crate) fn any(&self) -> Option<Arc<Process>> {
        let running: Vec<_> =
            self.running.lock().iter().flatten().filter(|p| !p.life.is_dead()).cloned().collect();
        running.get(self.env.pick(running.len())).cloned()
    }
}
