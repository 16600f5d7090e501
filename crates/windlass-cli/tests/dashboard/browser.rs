//! A headless Chromium, driven by what a user sees and presses.

use crate::common::{PATIENCE, eventually};
use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::key::Key;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value as Json, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use windlass_testkit::{Running, Windlass, descendants_in, python_program};

/// A browser for one test.
pub(crate) struct Browser {
    pub(crate) client: Client,
    folder: TempDir,
    driver: Running,
    base: String,
}

/// The size and colour scheme of the browser.
#[derive(Clone, Copy)]
pub(crate) enum Viewport {
    Desktop,
    DesktopDark,
    Phone,
    PhoneDark,
}

impl Browser {
    /// Opens a browser on a server.
    pub(crate) async fn on(base: &str) -> Browser {
        Browser::with(base, Viewport::Desktop).await
    }

    /// Opens a browser with another size or colour scheme.
    pub(crate) async fn with(base: &str, viewport: Viewport) -> Browser {
        let folder = TempDir::new().unwrap();
        let windlass = Windlass::new(folder.path()).binary("chromedriver");
        let home = folder.path().to_str().unwrap();
        let driver = windlass.env("HOME", home).env("TMPDIR", home).spawn(["--port=0"]);
        let mut port = None;
        eventually("the driver listens", async || {
            let said = driver.stdout();
            assert!(driver.is_running(), "{said}{}", driver.stderr());
            let rest = said.split("started successfully on port ").nth(1).map(str::to_owned);
            port = rest.and_then(|rest| rest.split('.').next()?.parse::<u16>().ok());
            port.is_some()
        })
        .await;
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let capabilities = json!({"goog:chromeOptions": options(viewport)});
        builder.capabilities(capabilities.as_object().unwrap().clone());
        let client = builder.connect(&format!("http://127.0.0.1:{}", port.unwrap())).await;
        Browser { client: client.unwrap(), folder, driver, base: base.to_owned() }
    }

    /// Goes to a page.
    pub(crate) async fn open(&self, path: &str) {
        self.client.goto(&format!("{}{path}", self.base)).await.unwrap();
    }

    /// The path of the current page.
    pub(crate) async fn path(&self) -> String {
        self.client.current_url().await.unwrap().path().to_owned()
    }

    /// The visible text of the page.
    pub(crate) async fn text(&self) -> String {
        let text = self.run("return document.body.innerText").await;
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the page shows a text, without reloading it.
    pub(crate) async fn sees(&self, text: &str) {
        self.shows(text, true).await;
    }

    /// Waits until the page no longer shows a text.
    pub(crate) async fn misses(&self, text: &str) {
        self.shows(text, false).await;
    }

    async fn shows(&self, text: &str, expected: bool) {
        let begun = Instant::now();
        loop {
            let shown = self.text().await;
            if shown.contains(text) == expected {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "`{text}` shown: {expected}? It shows:\n{shown}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the browser is at a path.
    pub(crate) async fn is_at(&self, path: &str) {
        eventually(&format!("the browser is at {path}"), async || self.path().await == path).await;
    }

    /// Clicks the button, link or summary with this text, when it appears.
    pub(crate) async fn press(&self, text: &str) {
        let wait = self.client.wait().at_most(PATIENCE);
        let found = wait.for_element(Locator::XPath(&pressable(text))).await;
        found.unwrap_or_else(|_| panic!("there is no `{text}`")).click().await.unwrap();
    }

    /// Clicks what leads to another page, and waits for it.
    pub(crate) async fn go(&self, text: &str) {
        self.run("window.left = false").await;
        self.press(text).await;
        self.is_elsewhere(text).await;
    }

    async fn is_elsewhere(&self, by: &str) {
        let there = "return window.left === undefined && document.readyState === 'complete'";
        eventually(&format!("`{by}` leads on"), async || self.run(there).await == json!(true))
            .await;
    }

    /// Presses a key.
    pub(crate) async fn key(&self, key: impl Into<char>) {
        let value = key.into();
        let press = KeyActions::new("keyboard".to_owned())
            .then(KeyAction::Down { value })
            .then(KeyAction::Up { value });
        self.client.perform_actions(press).await.unwrap();
    }

    /// The accessible name of the focused element. Its focus must be visible.
    pub(crate) async fn focused(&self) -> String {
        let script = "const at = document.activeElement; \
            const seen = at === document.body || getComputedStyle(at).outlineStyle !== 'none'; \
            return [seen, at.getAttribute('aria-label') || at.innerText.trim() || at.name || '']";
        let [seen, name]: [Json; 2] = serde_json::from_value(self.run(script).await).unwrap();
        assert_eq!(seen, json!(true), "the focus of `{name}` is not visible");
        name.as_str().unwrap_or_default().to_owned()
    }

    /// Presses Tab until the element with this name has the focus.
    pub(crate) async fn tab_to(&self, name: &str) {
        let mut passed = Vec::new();
        loop {
            self.key(Key::Tab).await;
            let at = self.focused().await;
            if at == name {
                return;
            }
            passed.push(at);
            assert!(passed.len() < 200, "`{name}` cannot be reached, only {passed:?}");
        }
    }

    /// Presses Enter on what leads to another page, and waits for that page.
    pub(crate) async fn enter(&self) {
        self.run("window.left = false").await;
        self.key(Key::Enter).await;
        self.is_elsewhere("Enter").await;
    }

    /// Whether the page has a button, link or summary with this text.
    pub(crate) async fn offers(&self, text: &str) -> bool {
        self.client.find(Locator::XPath(&pressable(text))).await.is_ok()
    }

    /// Types into a field.
    pub(crate) async fn fill(&self, name: &str, text: &str) {
        let field = format!("[name=\"{name}\"]");
        let wait = self.client.wait().at_most(PATIENCE);
        wait.for_element(Locator::Css(&field)).await.unwrap().send_keys(text).await.unwrap();
    }

    /// Runs a script, regardless of the page's content security policy.
    pub(crate) async fn run(&self, script: &str) -> Json {
        self.client.execute(script, Vec::new()).await.unwrap()
    }

    /// The serious and critical accessibility violations that axe finds.
    pub(crate) async fn accessibility_violations(&self) -> Vec<String> {
        let python = python_program("python");
        let found = "import axe_core_python, os; print(os.path.dirname(axe_core_python.__file__))";
        let output = std::process::Command::new(python).args(["-c", found]).output().unwrap();
        let folder = String::from_utf8(output.stdout).unwrap();
        let axe = std::fs::read_to_string(Path::new(folder.trim()).join("axe.min.js")).unwrap();
        self.run(&axe).await;
        let script = "const done = arguments[arguments.length - 1]; \
            axe.run().then(found => done(found.violations \
                .filter(one => ['serious', 'critical'].includes(one.impact)) \
                .map(one => one.id + ': ' + one.nodes.map(node => node.html).join(' | '))))";
        let found = self.client.execute_async(script, Vec::new()).await.unwrap();
        serde_json::from_value(found).unwrap()
    }

    /// Saves a screenshot.
    pub(crate) async fn screenshot(&self, file: &Path) {
        std::fs::write(file, self.client.screenshot().await.unwrap()).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.driver.kill9();
        descendants_in(self.folder.path()).iter().for_each(|process| process.kill9());
    }
}

fn pressable(text: &str) -> String {
    format!("//*[self::button or self::a or self::summary][normalize-space(.)='{text}']")
}

fn options(viewport: Viewport) -> Json {
    let mut args = vec![
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        "--window-size=1280,1400",
    ];
    if matches!(viewport, Viewport::DesktopDark | Viewport::PhoneDark) {
        args.push("--blink-settings=preferredColorScheme=0");
    }
    let mut options = json!({ "args": args });
    if matches!(viewport, Viewport::Phone | Viewport::PhoneDark) {
        let metrics = json!({"width": 390, "height": 844, "pixelRatio": 2.0});
        options["mobileEmulation"] = json!({ "deviceMetrics": metrics });
    }
    options
}
