//! The dashboard with 100,000 jobs in the store: the time until a page is answered and until a browser shows it,
//! and whether the page of a job with 100,000 chunks stays responsive while chunks change.

pub(crate) mod seed;

use crate::pages::Pages;
use crate::report::Report;
use crate::served::Served;
use crate::setup::{Bench, RAISE, accounts};
use anyhow::{Context, Result};
use seed::{SeededJobs, Store};
use serde_json::Value as Json;
use std::time::Duration;
use windlass_testkit::Browser;

const JOBS: u64 = 100_000;
const LARGEST: &str = "100,000 chunks";
/// Requests per page, one after the other.
const TIMES: usize = 50;
/// How often a browser opens a page.
const PAINTS: usize = 15;
/// Updates of the largest job's chunks while a browser shows it.
const CHANGES: u64 = 20;

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let database = bench.database().await;
    accounts(&database, 10).await;
    let folder = tempfile::tempdir()?;
    let file = format!("sqlite:{}", folder.path().join("store.db").display());
    on(Store::Postgres(database.clone()), &database, bench, report).await?;
    on(Store::Sqlite(file), &database, bench, report).await
}

async fn on(
    store: Store,
    data: &windlass_testkit::Database,
    bench: &Bench,
    report: &mut Report,
) -> Result<()> {
    let name = store.name();
    let served = Served::at(store.url(), data.url(), RAISE, &["--concurrency", "0"]).await?;
    let id = served.run(&["submit", "RAISE"]).await;
    let jobs = bench.rows(JOBS);
    let seeded = SeededJobs::fill(&store, id.trim(), jobs).await?;
    let large = format!("/jobs/{}", seeded.large);
    let look = Look { name, served: &served };
    let browser = look.sign_in().await;
    for (what, path) in [("overview", "/"), ("10,000 chunks", &large)] {
        look.answer(what, path, report).await?;
        look.paint(&browser, what, path, report).await?;
    }
    for (what, path) in
        [("jobs", "/jobs"), ("letters", "/dead-letters"), ("job type", "/job-types/RAISE")]
    {
        look.answer(what, path, report).await?;
    }
    let largest = SeededJobs::add(&store, id.trim(), 100_000).await?;
    let page = format!("/jobs/{largest}");
    look.answer(LARGEST, &page, report).await?;
    look.paint(&browser, LARGEST, &page, report).await?;
    browser.open(&page).await;
    browser.sees("Live").await;
    browser.run(OBSERVE).await;
    for moment in 0..CHANGES {
        SeededJobs::change(&store, &largest, moment).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let seen = browser.run(OBSERVED).await;
    let number = |place: usize| seen[place].as_f64().context("a number");
    let detail = format!("ms; {} updates of {} elements", number(0)?, number(2)?);
    report.at_most(&format!("dashboard: {name}, longest task"), number(1)?, 50.0, detail);
    look.weigh(report).await
}

/// Measures the pages of a server.
struct Look<'a> {
    name: &'static str,
    served: &'a Served,
}

impl Look<'_> {
    async fn sign_in(&self) -> Browser {
        let browser = Browser::start(&format!("http://127.0.0.1:{}", self.served.port)).await;
        browser.open("/").await;
        browser.fill("token", &self.served.token).await;
        browser.go("Sign in").await;
        browser
    }

    /// The time until a page is answered.
    async fn answer(&self, what: &str, path: &str, report: &mut Report) -> Result<()> {
        let mut pages = Pages::connect(self.served).await?;
        let (_, bytes) = pages.get(path).await?;
        let mut times = Vec::new();
        for _ in 0..TIMES {
            times.push(pages.get(path).await?.0.as_secs_f64() * 1000.0);
        }
        times.sort_by(f64::total_cmp);
        let detail = format!("ms, worst {:.1}; {} kB", times[TIMES - 1], bytes / 1000);
        let line = format!("dashboard: {}, {what}, answer", self.name);
        // The largest job must stay responsive; its answer time grows with its chunks.
        match what == LARGEST {
            true => report.note(&line, times[TIMES / 2], detail),
            false => report.at_most(&line, times[TIMES / 2], 50.0, detail),
        }
        Ok(())
    }

    /// The time from the answer until a browser shows the page.
    async fn paint(
        &self,
        browser: &Browser,
        what: &str,
        path: &str,
        report: &mut Report,
    ) -> Result<()> {
        let mut times = Vec::new();
        for _ in 0..PAINTS {
            browser.open(path).await;
            times.push(painted(browser).await?);
        }
        times.sort_by(f64::total_cmp);
        let detail = format!("ms after the answer, worst {:.0}", times[PAINTS - 1]);
        let line = format!("dashboard: {}, {what}, paint", self.name);
        report.at_most(&line, times[PAINTS / 2], 200.0, detail);
        Ok(())
    }

    /// The total size of all assets.
    async fn weigh(&self, report: &mut Report) -> Result<()> {
        let mut pages = Pages::connect(self.served).await?;
        let mut bytes = 0;
        for asset in ["style.css", "live.js", "icon.svg"] {
            bytes += pages.get(&format!("/assets/{asset}")).await?.1;
        }
        report.at_most("dashboard: assets", bytes as f64 / 1000.0, 150.0, "kB".to_owned());
        Ok(())
    }
}

/// Observes how long updates of the page take. Browsers do not report tasks below 50 ms.
const OBSERVE: &str = "window.updates = 0; window.longest = 0; \
    new PerformanceObserver(list => list.getEntries().forEach(entry => \
        window.longest = Math.max(window.longest, entry.duration))).observe({entryTypes: ['longtask']}); \
    new MutationObserver(() => window.updates += 1) \
        .observe(document.querySelector('main'), {subtree: true, childList: true, characterData: true});";

/// Results: updates, the longest task in milliseconds, elements.
const OBSERVED: &str =
    "return [window.updates, window.longest, document.querySelectorAll('*').length]";

/// The time from the start of the answer to the first paint.
async fn painted(browser: &Browser) -> Result<f64> {
    let script = "const paint = performance.getEntriesByName('first-contentful-paint')[0]; \
        const way = performance.getEntriesByType('navigation')[0]; \
        return paint ? paint.startTime - way.responseStart : null";
    for _ in 0..100 {
        if let Json::Number(time) = browser.run(script).await {
            return time.as_f64().context("a time");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("the browser shows nothing")
}
