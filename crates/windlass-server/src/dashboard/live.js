// Keeps a page true while somebody looks at it: asks for it again when a job has changed, and takes
// over only what differs, so that what is open, chosen or being typed stays as it is.
"use strict";
(() => {
  const main = document.querySelector("main[data-live]");
  localTimes(document);
  if (!main) return;
  const watched = main.dataset.live;
  const sign = document.getElementById("live");
  const SLOW = 5000; // Workers, letters and limits change without an event.
  const QUICK = 700; // A job at work has many.
  let source, waiting, asking = false, again = false, wait = QUICK;

  function say(lost) {
    sign.textContent = lost ? "Connection lost, trying again…" : "Live";
    sign.classList.toggle("lost", lost);
  }

  function soon() {
    if (!waiting) waiting = setTimeout(() => { waiting = undefined; refresh(); }, wait);
  }

  async function refresh() {
    if (asking) { again = true; return; }
    asking = true;
    const begun = performance.now();
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (answer.redirected) { location.assign(answer.url); return; }
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.querySelector("main");
        if (fresh) { localTimes(fresh); children(main, fresh); document.title = page.title; say(false); }
      }
    } catch (error) {
      say(true);
    } finally {
      // A page that takes long to make is asked for less often.
      wait = Math.max(QUICK, 4 * (performance.now() - begun));
      asking = false;
      if (again) { again = false; soon(); }
    }
  }

  function listen() {
    if (source) source.close();
    source = new EventSource("/api/v1/events");
    source.onopen = () => { say(false); soon(); };
    source.addEventListener("job", (event) => {
      if (watched === "all" || JSON.parse(event.data).id === watched) soon();
    });
    source.onerror = () => {
      say(true);
      // A browser comes back by itself, except after an answer that it does not understand.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => { refresh(); listen(); }, 2000);
    };
  }

  // What tells an element from its neighbours.
  function name(node) {
    return node.id || (node.getAttribute && node.getAttribute("aria-labelledby")) || "";
  }

  // Makes the children of one element those of another. What stays is not moved, so that it keeps the
  // focus: what is gone from before it is removed instead.
  function children(old, fresh) {
    const named = (parent) => new Map([...parent.children].filter(name).map((child) => [name(child), child]));
    const before = named(old), after = named(fresh);
    let at = old.firstChild;
    for (const next of [...fresh.childNodes]) {
      while (at && name(at) && !after.has(name(at))) { const gone = at; at = at.nextSibling; gone.remove(); }
      const known = before.get(name(next));
      if (known && known !== at) { (old.moveBefore || old.insertBefore).call(old, known, at); at = known; }
      if (!at || name(at) !== name(next) || at.nodeName !== next.nodeName) {
        old.insertBefore(document.importNode(next, true), at);
        continue;
      }
      if (!at.isEqualNode(next)) become(at, next);
      at = at.nextSibling;
    }
    while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
  }

  function become(old, fresh) {
    if (old.nodeType === Node.TEXT_NODE) { if (old.data !== fresh.data) old.data = fresh.data; return; }
    if (old.nodeType !== Node.ELEMENT_NODE) return;
    const kept = (name) => name === "open" && old.nodeName === "DETAILS";
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !kept(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (!kept(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    children(old, fresh);
  }

  // A tab that nobody looks at holds no connection.
  function look() {
    if (document.hidden) { if (source) source.close(); source = undefined; } else { listen(); }
  }
  document.addEventListener("visibilitychange", look);
  setInterval(() => { if (!document.hidden) refresh(); }, SLOW);
  look();

  // On a closer look a time is that of the reader's own clock as well.
  function localTimes(root) {
    const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
    for (const time of root.querySelectorAll("time")) {
      const here = clock.format(new Date(time.dateTime));
      if (!time.title.includes(here)) time.title += " · " + here;
    }
  }
})();
