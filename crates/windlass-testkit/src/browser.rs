//! A headless Chromium that tests drive through what a person can see and press.

use std::path::Path;
use std::time::{Duration, Instant};

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::key::Key;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::{Running, Windlass, descendants_in, free_port, python_program};

/// The longest time to wait for the page to reach a state. Generous, for machines under load.
const STATE_TIMEOUT: Duration = Duration::from_secs(100);

/// A browser with its own driver process and its own profile. Both end with this handle.
pub struct Browser {
    /// The WebDriver session, for what the methods here do not cover.
    pub client: Client,
    folder: TempDir,
    driver: Running,
    base: String,
}

/// The screen and the colour scheme of a browser.
#[derive(Clone, Copy, Debug)]
pub enum Screen {
    /// 1280 pixels wide, light colours.
    Desktop,
    /// 1280 pixels wide, dark colours.
    DesktopDark,
    /// 390 pixels wide, light colours.
    Phone,
    /// 390 pixels wide, dark colours.
    PhoneDark,
}

impl Browser {
    /// Starts a browser with a desktop screen. `base` is the URL that paths are relative to.
    pub async fn start(base: &str) -> Browser {
        Browser::with_screen(base, Screen::Desktop).await
    }

    /// Starts a browser with the given screen.
    pub async fn with_screen(base: &str, screen: Screen) -> Browser {
        Browser::launch(base, screen, "UTC").await
    }

    /// Starts a browser with a desktop screen, in a time zone such as `Asia/Tokyo`.
    pub async fn in_time_zone(base: &str, zone: &str) -> Browser {
        Browser::launch(base, Screen::Desktop, zone).await
    }

    async fn launch(base: &str, screen: Screen, zone: &str) -> Browser {
        let folder = TempDir::new().unwrap();
        let windlass = Windlass::new(folder.path()).binary("chromedriver");
        let home = folder.path().to_str().unwrap();
        let windlass = windlass.env("HOME", home).env("TMPDIR", home).env("TZ", zone);
        let (driver, port) = start_driver(&windlass).await;
        let mut builder = ClientBuilder::new(HttpConnector::new());
        // The default for scripts, 30 s, is too short for axe-core on a machine under load.
        let capabilities =
            json!({"goog:chromeOptions": options(screen), "timeouts": {"script": 300_000}});
        builder.capabilities(capabilities.as_object().unwrap().clone());
        let client = builder.connect(&format!("http://127.0.0.1:{port}")).await;
        Browser { client: client.unwrap(), folder, driver, base: base.to_owned() }
    }

    /// Loads a page.
    pub async fn open(&self, path: &str) {
        self.client.goto(&format!("{}{path}", self.base)).await.unwrap();
    }

    /// The path of the current page.
    pub async fn path(&self) -> String {
        self.client.current_url().await.unwrap().path().to_owned()
    }

    /// The visible text of the page.
    pub async fn text(&self) -> String {
        let text = self.run("return document.body.innerText").await;
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the page shows a text. Does not reload the page.
    pub async fn sees(&self, text: &str) {
        self.wait_for_text(text, true).await;
    }

    /// Opens a page and waits until it shows a text.
    pub async fn shows(&self, path: &str, text: &str) {
        self.open(path).await;
        self.sees(text).await;
    }

    /// Waits until the page shows these texts, one after the other. Does not reload the page.
    pub async fn sees_all(&self, texts: &[&str]) {
        for text in texts {
            self.sees(text).await;
        }
    }

    /// Waits until the page no longer shows a text. Does not reload the page.
    pub async fn misses(&self, text: &str) {
        self.wait_for_text(text, false).await;
    }

    async fn wait_for_text(&self, text: &str, expected: bool) {
        let started = Instant::now();
        loop {
            // A script fails if the page goes away while it runs.
            let body = "return document.body.innerText";
            let found = self.client.execute(body, Vec::new()).await.ok();
            let found = found.as_ref().and_then(Json::as_str);
            if found.is_some_and(|shown| shown.contains(text) == expected) {
                return;
            }
            let shown = found.unwrap_or_default();
            let wrong = if expected { "does not show" } else { "still shows" };
            assert!(
                started.elapsed() < STATE_TIMEOUT,
                "after {STATE_TIMEOUT:?} the page {wrong} `{text}`:\n{shown}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the browser is at a path.
    pub async fn is_at(&self, path: &str) {
        let started = Instant::now();
        while self.client.current_url().await.ok().is_none_or(|url| url.path() != path) {
            assert!(
                started.elapsed() < STATE_TIMEOUT,
                "after {STATE_TIMEOUT:?} the browser is not at {path}, but at {}:\n{}",
                self.path().await,
                self.text().await
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits for the button, link or summary with this text, and clicks it.
    pub async fn press(&self, text: &str) {
        let wait = self.client.wait().at_most(STATE_TIMEOUT);
        let found = wait.for_element(Locator::XPath(&pressable(text))).await;
        found.unwrap_or_else(|_| panic!("there is no `{text}`")).click().await.unwrap();
    }

    /// Clicks what leads to another page, and waits until that page is loaded.
    pub async fn go(&self, text: &str) {
        self.mark_page().await;
        self.press(text).await;
        self.wait_for_next_page(text).await;
    }

    /// Presses Enter on what leads to another page, and waits until that page is loaded.
    pub async fn enter(&self) {
        self.mark_page().await;
        self.key(Key::Enter).await;
        self.wait_for_next_page("Enter").await;
    }

    /// Sets a variable that a page load removes.
    async fn mark_page(&self) {
        self.run("window.same_page = true").await;
    }

    async fn wait_for_next_page(&self, link: &str) {
        let loaded = "return window.same_page === undefined && document.readyState === 'complete'";
        let what = format!("`{link}` opens another page");
        // The script fails if the page goes away while it runs.
        let is_loaded =
            async || self.client.execute(loaded, Vec::new()).await.ok() == Some(json!(true));
        eventually(&what, is_loaded).await;
    }

    /// Presses and releases a key.
    pub async fn key(&self, key: impl Into<char>) {
        let value = key.into();
        let press = KeyActions::new("keyboard".to_owned())
            .then(KeyAction::Down { value })
            .then(KeyAction::Up { value });
        self.client.perform_actions(press).await.unwrap();
    }

    /// The accessible name of the focused element. Panics where the focus cannot be seen.
    pub async fn focused(&self) -> String {
        let script = "const at = document.activeElement; \
            const seen = at === document.body || getComputedStyle(at).outlineStyle !== 'none'; \
            return [seen, at.getAttribute('aria-label') || at.innerText.trim() || at.name || '']";
        let [seen, name]: [Json; 2] = serde_json::from_value(self.run(script).await).unwrap();
        assert_eq!(seen, json!(true), "the focus on `{name}` is invisible");
        name.as_str().unwrap_or_default().to_owned()
    }

    /// Presses Tab until the element with this name has the focus.
    pub async fn tab_to(&self, name: &str) {
        let mut passed = Vec::new();
        loop {
            self.key(Key::Tab).await;
            let at = self.focused().await;
            if at == name {
                return;
            }
            passed.push(at);
            assert!(passed.len() < 200, "Tab does not reach `{name}`, only {passed:?}");
        }
    }

    /// Whether the page has a button, link or summary with this text.
    pub async fn offers(&self, text: &str) -> bool {
        self.client.find(Locator::XPath(&pressable(text))).await.is_ok()
    }

    /// Waits for a form field, and types a text into it.
    pub async fn fill(&self, name: &str, text: &str) {
        let field = format!("[name=\"{name}\"]");
        let wait = self.client.wait().at_most(STATE_TIMEOUT);
        wait.for_element(Locator::Css(&field)).await.unwrap().send_keys(text).await.unwrap();
    }

    /// Runs a script through WebDriver, which the page's content security policy does not block.
    pub async fn run(&self, script: &str) -> Json {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    /// The serious and critical accessibility violations that axe-core finds on the page.
    pub async fn accessibility_violations(&self) -> Vec<String> {
        let python = python_program("python");
        let print_folder =
            "import axe_core_python, os; print(os.path.dirname(axe_core_python.__file__))";
        let output = std::process::Command::new(python).args(["-c", print_folder]).output();
        let folder = String::from_utf8(output.unwrap().stdout).unwrap();
        let axe = std::fs::read_to_string(Path::new(folder.trim()).join("axe.min.js")).unwrap();
        self.run(&axe).await;
        let script = "const done = arguments[arguments.length - 1]; \
            axe.run().then(found => done(found.violations \
                .filter(one => ['serious', 'critical'].includes(one.impact)) \
                .map(one => one.id + ': ' + one.nodes.map(node => node.html).join(' | '))), \
            error => done(['axe-core failed: ' + error]))";
        let found = self.client.execute_async(script, Vec::new()).await.unwrap();
        serde_json::from_value(found).unwrap()
    }

    /// Writes a screenshot of the visible part of the page.
    pub async fn screenshot(&self, file: &Path) {
        std::fs::write(file, self.client.screenshot().await.unwrap()).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.driver.kill9();
        descendants_in(self.folder.path()).iter().for_each(|process| process.kill9());
    }
}

/// Starts chromedriver. It binds its port for IPv4 and for IPv6, so a port that the kernel chooses for one of them may be
/// taken for the other. Tries several ports, because another process may take one first.
async fn start_driver(windlass: &Windlass) -> (Running, u16) {
    let mut failure = String::new();
    for _ in 0..5 {
        let port = free_port();
        let driver = windlass.spawn([format!("--port={port}").as_str()]);
        let mut listens = false;
        eventually("chromedriver listens or exits", async || {
            listens = driver.stdout().contains("started successfully");
            listens || !driver.is_running()
        })
        .await;
        if listens {
            return (driver, port);
        }
        failure = driver.stdout() + &driver.stderr();
    }
    panic!("chromedriver does not start\n{failure}")
}

async fn eventually(what: &str, condition: impl AsyncFnMut() -> bool) {
    crate::eventually(what, STATE_TIMEOUT, condition).await;
}

fn pressable(text: &str) -> String {
    format!("//*[self::button or self::a or self::summary][normalize-space(.)='{text}']")
}

fn options(screen: Screen) -> Json {
    let mut args = vec![
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--window-size=1280,1400",
    ];
    if matches!(screen, Screen::DesktopDark | Screen::PhoneDark) {
        args.push("--blink-settings=preferredColorScheme=0");
    }
    let mut options = json!({ "args": args });
    if matches!(screen, Screen::Phone | Screen::PhoneDark) {
        let metrics = json!({"width": 390, "height": 844, "pixelRatio": 2.0});
        options["mobileEmulation"] = json!({ "deviceMetrics": metrics });
    }
    options
}
