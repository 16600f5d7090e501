// Keeps a page up to date: reloads it when a job changes, and patches only what differs, so that open
// details, selections and unfinished input stay as they are.
"use strict";
(() => {
  // Times, by the names of `TimeStyle`. The server writes UTC; the viewer sees the own time zone, and UTC
  // in the tooltip.
  const time = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  const day = { day: "2-digit", month: "short" };
  const styles = {
    full: ["sv-SE", { year: "numeric", month: "2-digit", day: "2-digit", ...time, second: "2-digit" }],
    day: ["en-GB", day],
    "day-minute": ["en-GB", { weekday: "short", ...day, ...time }],
    minute: ["en-GB", time],
    second: ["en-GB", { ...time, second: "2-digit" }],
    millisecond: ["en-GB", { ...time, second: "2-digit", fractionalSecondDigits: 3 }],
  };
  const formats = {};
  for (const [name, [locale, options]] of Object.entries(styles)) formats[name] = new Intl.DateTimeFormat(locale, options);
  const zoneFormat = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" });
  const zoneName = Intl.DateTimeFormat().resolvedOptions().timeZone;

  function local(at, style) { return formats[style].format(at).replace(",", ""); }
  function zoned(at, style) {
    return local(at, style) + " " + zoneFormat.formatToParts(at).find((part) => part.type === "timeZoneName").value;
  }

  function showLocalTimes(root) {
    for (const element of root.querySelectorAll("time")) {
      const at = new Date(element.dateTime), style = element.dataset.style;
      if (style) element.textContent = zoned(at, style);
      else element.title = zoned(at, "full") + " · " + element.title;
    }
    for (const element of root.querySelectorAll("[data-at]")) {
      const at = new Date(element.dataset.at), { style, rest } = element.dataset;
      element.textContent = rest === undefined ? local(at, style) : zoned(at, style) + rest;
    }
    for (const element of root.querySelectorAll("[data-zone]")) element.textContent = "Times are in " + zoneName + ".";
  }

  const main = document.querySelector("main[data-live]");
  showLocalTimes(document);
  if (!main) return;
  const watched = main.dataset.live;
  const indicator = document.getElementById("live");
  const POLL_MS = 5000; // Workers, dead letters and limits change without an event.
  const MIN_REFRESH_MS = 700; // A running job sends many events.
  let source, timer, refreshing = false, refreshAgain = false, delay = MIN_REFRESH_MS;

  function showConnection(lost) {
    indicator.textContent = lost ? "Connection lost. Reconnecting…" : "Live";
    indicator.classList.toggle("lost", lost);
  }

  function scheduleRefresh() {
    if (!timer) timer = setTimeout(() => { timer = undefined; refresh(); }, delay);
  }

  async function refresh() {
    if (refreshing) { refreshAgain = true; return; }
    refreshing = true;
    const started = performance.now();
    try {
      const response = await fetch(location.href, { headers: { accept: "text/html" } });
      if (response.redirected) { location.assign(response.url); return; }
      if (response.ok) {
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        const fresh = page.querySelector("main");
        if (fresh) { showLocalTimes(fresh); patchChildren(main, fresh); document.title = page.title; showConnection(false); }
      }
    } catch (error) {
      showConnection(true);
    } finally {
      // A slow page is requested less often.
      delay = Math.max(MIN_REFRESH_MS, 4 * (performance.now() - started));
      refreshing = false;
      if (refreshAgain) { refreshAgain = false; scheduleRefresh(); }
    }
  }

  function listen() {
    if (source) source.close();
    source = new EventSource("/api/v1/events");
    source.onopen = () => { showConnection(false); scheduleRefresh(); };
    source.addEventListener("job", (event) => {
      if (watched === "all" || JSON.parse(event.data).id === watched) scheduleRefresh();
    });
    source.onerror = () => {
      showConnection(true);
      // The browser reconnects by itself, except after an HTTP error.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => { refresh(); listen(); }, 2000);
    };
  }

  // Identifies an element among its siblings. Not by `node.id`: in a form that is its field with the name "id".
  function keyOf(node) {
    return (node.getAttribute && (node.getAttribute("id") || node.getAttribute("aria-labelledby"))) || "";
  }

  // Makes the children of `old` equal to those of `fresh`. Elements that stay are not moved, so that they
  // keep the focus: removed siblings before them are deleted instead.
  function patchChildren(old, fresh) {
    const keyed = (parent) => new Map([...parent.children].filter(keyOf).map((child) => [keyOf(child), child]));
    const before = keyed(old), after = keyed(fresh);
    let at = old.firstChild;
    for (const next of [...fresh.childNodes]) {
      while (at && keyOf(at) && !after.has(keyOf(at))) { const removed = at; at = at.nextSibling; removed.remove(); }
      const existing = before.get(keyOf(next));
      if (existing && existing !== at) { (old.moveBefore || old.insertBefore).call(old, existing, at); at = existing; }
      if (!at || keyOf(at) !== keyOf(next) || at.nodeName !== next.nodeName) {
        old.insertBefore(document.importNode(next, true), at);
        continue;
      }
      if (!at.isEqualNode(next)) patchNode(at, next);
      at = at.nextSibling;
    }
    while (at) { const removed = at; at = at.nextSibling; removed.remove(); }
  }

  function patchNode(old, fresh) {
    if (old.nodeType === Node.TEXT_NODE) { if (old.data !== fresh.data) old.data = fresh.data; return; }
    if (old.nodeType !== Node.ELEMENT_NODE) return;
    const keep = (name) => name === "open" && old.nodeName === "DETAILS";
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !keep(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (!keep(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    patchChildren(old, fresh);
  }

  // A hidden tab holds no connection.
  function onVisibilityChange() {
    if (document.hidden) { if (source) source.close(); source = undefined; } else { listen(); }
  }
  document.addEventListener("visibilitychange", onVisibilityChange);
  setInterval(() => { if (!document.hidden) refresh(); }, POLL_MS);
  onVisibilityChange();
})();
