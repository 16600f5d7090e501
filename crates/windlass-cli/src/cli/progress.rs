//! Following a job: a bar with rate and time left on a terminal, plain lines otherwise.

use super::meter::Meter;
use super::{log, print};
use anyhow::Result;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use parking_lot::Mutex;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use windlass::{Engine, EngineError, Job, JobId, JobStatus};
use windlass_drivers::ErrorClass;
use windlass_store::StoreError;

/// The signals of Ctrl-C and SIGTERM. SIGHUP is ignored: a worker outlives the terminal that started it.
pub(super) struct Interrupt {
    int: Signal,
    term: Signal,
}

impl Interrupt {
    pub(super) fn listen() -> Result<Interrupt> {
        let mut hangup = signal(SignalKind::hangup())?;
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                tracing::info!(
                    "SIGHUP ignored; restart the process to read a changed configuration"
                );
            }
        });
        Ok(Interrupt {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
        })
    }

    pub(super) async fn wait(&mut self) {
        tokio::select! { _ = self.int.recv() => {} _ = self.term.recv() => {} }
    }
}

/// Shows a job's progress until it has ended or is paused (true), or the user interrupts (false).
pub(super) async fn follow(engine: &Engine, id: JobId, interrupt: &mut Interrupt) -> Result<bool> {
    let mut show = Show::new();
    let mut changes = engine.store().subscribe();
    loop {
        let begun = Instant::now();
        match engine.job(id).await {
            Ok(job) => {
                show.update(&job);
                if job.status.is_final() || job.status == JobStatus::Paused {
                    show.finish();
                    return Ok(true);
                }
            }
            // Workers wait for the store too.
            Err(error) if is_unavailable(&error) => {
                tracing::warn!(%error, "the store is unavailable; retrying");
            }
            Err(error) => return Err(error.into()),
        }
        tokio::select! {
            () = engine.wait_for_progress(&mut changes, id, begun.elapsed()) => {}
            () = interrupt.wait() => { show.finish(); return Ok(false); }
        }
    }
}

fn is_unavailable(error: &EngineError) -> bool {
    matches!(error, EngineError::Store(StoreError::Database(error))
        if matches!(error.class, ErrorClass::Connection | ErrorClass::Retry))
}

/// A bar, or a line every two seconds, or nothing with `--quiet`.
enum Show {
    Nothing,
    Bar(ProgressBar, Arc<Mutex<Meter>>),
    Lines { begun: Instant, last: Option<Instant>, meter: Meter },
}

/// Time between two lines where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

impl Show {
    fn new() -> Show {
        if log::is_quiet() {
            return Show::Nothing;
        }
        if !std::io::stderr().is_terminal() {
            return Show::Lines { begun: Instant::now(), last: None, meter: Meter::default() };
        }
        let bar = ProgressBar::new(0);
        let style = "{prefix} {bar:30} {percent}%  {human_pos}/{human_len}  {rate}/s  {left}{msg}";
        let meter = Arc::new(Mutex::new(Meter::default()));
        if let Ok(style) = ProgressStyle::with_template(style) {
            let of = meter.clone();
            let rate = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
                let _ = out.write_str(&print::number(of.lock().rate() as i64));
            };
            let of = meter.clone();
            let left = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
                let left = of.lock().left();
                let _ = match left {
                    Some(left) => write!(out, "{} left", HumanDuration(left)),
                    None => Ok(()),
                };
            };
            bar.set_style(style.with_key("rate", rate).with_key("left", left));
        }
        Show::Bar(bar, meter)
    }

    fn update(&mut self, job: &Job) {
        let done = job.items.done();
        match self {
            Show::Nothing => {}
            Show::Bar(bar, meter) => {
                meter.lock().update(job, Instant::now());
                bar.set_prefix(job.phase.map_or(job.status.as_str(), |phase| phase.as_str()));
                bar.set_length(job.items.total as u64);
                bar.set_position(done as u64);
                let dead = match job.items.dead {
                    0 => String::new(),
                    dead => format!("  {}", print::count(dead, "dead letter")),
                };
                let waiting = job.waiting().map(|waiting| format!("  {waiting}"));
                bar.set_message(dead + &waiting.unwrap_or_default());
            }
            Show::Lines { begun, last, meter } => {
                meter.update(job, Instant::now());
                if last.is_some_and(|at| at.elapsed() < LINE_INTERVAL) {
                    return;
                }
                // A job that ends at once needs no line, because its summary follows.
                if last.is_some() || !job.status.is_final() && begun.elapsed() >= LINE_INTERVAL {
                    let waiting = job.waiting().map(|waiting| format!("; {waiting}"));
                    eprintln!(
                        "{}: {} of {} items, {}/s, {}{}",
                        job.phase.map_or(job.status.as_str(), |phase| phase.as_str()),
                        print::number(done),
                        print::number(job.items.total),
                        print::number(meter.rate() as i64),
                        print::count(job.items.dead, "dead letter"),
                        waiting.unwrap_or_default(),
                    );
                    *last = Some(Instant::now());
                } else if last.is_none() && begun.elapsed() >= LINE_INTERVAL {
                    *last = Some(Instant::now());
                }
            }
        }
    }

    fn finish(&self) {
        if let Show::Bar(bar, _) = self {
            bar.finish_and_clear();
        }
    }
}
