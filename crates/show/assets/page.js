
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const one = (id) => document.getElementById(id);
  const keep = (name, value) => {
    try {
      if (value === undefined) return localStorage.getItem(name);
      localStorage.setItem(name, value);
    } catch { /* A page in a frame or from a file may have no storage. */ }
    return null;
  };

  // Light, dark, or as the system has it.
  const themes = ["auto", "light", "dark"];
  const paint = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
    const button = one("theme");
    if (button) button.textContent = { light: "Light", dark: "Dark" }[theme] || "Auto";
  };
  let theme = keep("unspool-theme") || "auto";
  paint(theme);

  const start = () => {
    paint(theme);
    const turns = [...document.querySelectorAll("main > .turn")];
    const items = new Map();
    for (const item of document.querySelectorAll(".list > li")) {
      items.set(item.firstElementChild.hash.slice(1), item);
    }
    let at = -1;
    const shown = () => turns.filter((turn) => !turn.classList.contains("out"));
    const mark = (turn) => {
      if (at >= 0) turns[at].classList.remove("at");
      at = turns.indexOf(turn);
      if (at >= 0) turn.classList.add("at");
    };
    const go = (turn) => {
      if (!turn) return;
      mark(turn);
      turn.scrollIntoView({ block: "start" });
      try {
        if (turn.id) history.replaceState(null, "", "#" + turn.id);
      } catch { /* A page in a frame may have no history. */ }
    };
    const step = (by) => {
      const list = shown();
      const place = list.indexOf(turns[at]);
      const next = place < 0 ? (by > 0 ? 0 : list.length - 1) : place + by;
      go(list[Math.max(0, Math.min(list.length - 1, next))]);
    };
    const flip = () => {
      const turn = turns[at] || shown()[0];
      if (!turn) return;
      const works = [...turn.querySelectorAll(":scope > .work")];
      const open = !works.every((work) => work.open);
      for (const work of works) work.open = open;
      mark(turn);
    };
    let everything = false;
    const all = () => {
      everything = !everything;
      for (const work of document.querySelectorAll(".work")) work.open = everything;
      one("all").textContent = everything ? "Fold all" : "Open all";
    };

    // Search: turns that hold the words stay, and matches are stepped through one by one.
    const texts = new WeakMap();
    const text = (turn) => {
      let known = texts.get(turn);
      if (known === undefined) texts.set(turn, known = turn.textContent.toLowerCase());
      return known;
    };
    const lights = window.CSS && CSS.highlights;
    let words = "", hits = [], ranges = [], hit = -1, match = -1, fresh = false;
    const inside = (turn) => {
      const found = [];
      const walk = document.createTreeWalker(turn, NodeFilter.SHOW_TEXT);
      for (let node = walk.nextNode(); node; node = walk.nextNode()) {
        const lower = node.data.toLowerCase();
        if (lower.length !== node.data.length) continue;
        for (let from = lower.indexOf(words); from >= 0; from = lower.indexOf(words, from + words.length)) {
          const range = new Range();
          range.setStart(node, from);
          range.setEnd(node, from + words.length);
          found.push(range);
          if (found.length >= 5000) return found;
        }
      }
      return found;
    };
    const light = () => {
      if (!lights) return;
      lights.delete("found");
      lights.delete("here");
      if (ranges.length) lights.set("found", new Highlight(...ranges));
      if (ranges[match]) lights.set("here", new Highlight(ranges[match]));
    };
    const enter = (index, last) => {
      hit = index;
      ranges = hits[hit] ? inside(hits[hit]) : [];
      match = last ? ranges.length - 1 : 0;
    };
    const reveal = () => {
      if (!hits.length) return;
      const range = ranges[match];
      mark(hits[hit]);
      if (!range) return go(hits[hit]);
      for (let node = range.startContainer.parentElement; node; node = node.parentElement) {
        if (node.tagName === "DETAILS") node.open = true;
      }
      light();
      range.startContainer.parentElement.scrollIntoView({ block: "center" });
      tell();
    };
    const tell = () => {
      const count = hits.length;
      one("found").textContent = !words ? "" : !count ? "nothing found"
        : (hit >= 0 ? hit + 1 + " of " : "") + count + (count === 1 ? " turn" : " turns");
    };
    const next = (by) => {
      if (!hits.length) return;
      if (fresh) fresh = false;
      else if (ranges[match + by]) match += by;
      else enter((hit + by + hits.length) % hits.length, by < 0);
      reveal();
    };
    const search = () => {
      words = one("find").value.trim().toLowerCase();
      hits = [];
      ranges = [];
      hit = match = -1;
      for (const turn of turns) {
        const fits = !words || text(turn).includes(words);
        turn.classList.toggle("out", !fits);
        const item = items.get(turn.id);
        if (item) item.classList.toggle("out", !fits);
        if (words && fits) hits.push(turn);
      }
      fresh = hits.length > 0;
      if (fresh) enter(0, false);
      light();
      tell();
    };
    let timer = 0;
    const field = one("find");
    if (field) {
      field.addEventListener("input", () => {
        clearTimeout(timer);
        timer = setTimeout(search, 160);
      });
      field.addEventListener("keydown", (event) => {
        if (event.key === "Enter") {
          event.preventDefault();
          clearTimeout(timer);
          const now = field.value.trim().toLowerCase();
          if (now !== words) search();
          next(event.shiftKey ? -1 : 1);
        }
        if (event.key === "Escape") {
          field.value = "";
          search();
          field.blur();
        }
      });
    }

    const turnTheme = () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      keep("unspool-theme", theme);
      paint(theme);
    };
    const help = () => {
      const dialog = one("help");
      if (!dialog) return;
      if (dialog.open) dialog.close();
      else dialog.showModal();
    };
    const press = (id, act) => one(id) && one(id).addEventListener("click", act);
    press("all", all);
    press("theme", turnTheme);
    press("keys", help);
    const dialog = one("help");
    if (dialog) dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

    const keys = {
      j: () => step(1), k: () => step(-1), o: flip, Enter: flip, e: all,
      g: () => go(shown()[0]), G: () => go(shown().at(-1)),
      n: () => next(1), N: () => next(-1), d: turnTheme, "?": help,
      "/": () => { field.focus(); field.select(); },
      Escape: () => { if (words) { field.value = ""; search(); } },
    };
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !turns.length) return;
      const target = event.target;
      if (target.closest("input, textarea, select, dialog")) return;
      if (event.key === "Enter" && target.closest("a, button, summary")) return;
      const act = Object.hasOwn(keys, event.key) && keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });

    // An address may name something that is folded away.
    const open = () => {
      const name = decodeURIComponent(location.hash.slice(1));
      const target = name && one(name);
      if (!target) return;
      for (let node = target; node; node = node.parentElement) {
        if (node.tagName === "DETAILS") node.open = true;
      }
      const turn = target.closest("main > .turn");
      if (turn) mark(turn);
      target.scrollIntoView({ block: turn === target ? "start" : "center" });
    };
    window.addEventListener("hashchange", open);
    if (location.hash) open();

    // The list shows where the reader is.
    let here = null;
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        const item = items.get(entry.target.id);
        if (!item || item === here) continue;
        if (here) here.classList.remove("here");
        here = item;
        item.classList.add("here");
        const list = item.closest("nav");
        if (list.scrollHeight > list.clientHeight) {
          const top = item.offsetTop - list.offsetTop;
          if (top < list.scrollTop || top > list.scrollTop + list.clientHeight - 60) list.scrollTop = top - 80;
        }
      }
    }, { rootMargin: "-15% 0px -75% 0px" });
    for (const turn of turns) watch.observe(turn);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
