// Opens the dashboard in a browser and does what people do, and what they should not be able to.
//
// FACTS names the link that `unspool serve` printed, the sessions there are, the script of
// axe-core, and a folder for pictures if they are wanted; PLAYWRIGHT the folder of
// playwright-core, CHROMIUM the browser.
"use strict";
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { chromium } = require(process.env.PLAYWRIGHT);

const facts = JSON.parse(process.env.FACTS);
const origin = new URL(facts.link).origin;
const token = new URL(facts.link).hash.slice("#token=".length);
// A slow machine is no fault of the page.
const patience = Number(process.env.UNSPOOL_DASHBOARD_PATIENCE ?? 60000);
const wrong = [];
let chapter = "";
const expect = (good, what) => {
  if (!good) wrong.push(`${chapter}: ${what}`);
};

// A page that notes everything it should never do.
async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: "en-US", timezoneId: "UTC", ...options });
  context.setDefaultTimeout(patience);
  context.on("page", track);
  await context.addInitScript(() => {
    window.pwned = () => { window.wasPwned = true; };
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) =>
      window.violations.push(event.effectiveDirective + " " + event.blockedURI));
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((one) => Math.round(one.duration))))
      .observe({ type: "longtask", buffered: true });
  });
  const page = await context.newPage();
  page.on("dialog", (dialog) => {
    wrong.push(`${chapter}: dialog ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url();
    const ours = [origin + "/", `blob:${origin}/`, "data:image/"].some((start) => url.startsWith(start));
    if (!ours && !options.elsewhere) wrong.push(`${chapter}: request ${url}`);
  });
  page.on("console", (message) => {
    if (!["error", "warning"].includes(message.type())) return;
    // A browser always logs an answer that is an error, also where the page expects it.
    if (options.errors && message.text().startsWith("Failed to load resource")) return;
    wrong.push(`${chapter}: console ${message.text()}`);
  });
  page.on("pageerror", (error) => wrong.push(`${chapter}: script failed: ${error.message}`));
  page.on("popup", (other) => wrong.push(`${chapter}: popup ${other.url()}`));
  if (options.token !== false) {
    // The key belongs to this tab; other tabs get it from this one.
    await page.goto(facts.link);
    await page.waitForFunction(() => !location.hash);
    await page.waitForSelector("header.top .link.live");
  }
  return page;
}

// What each page waits for; the stream of events never ends.
const waiting = new WeakMap();
function track(page) {
  const open = new Set();
  waiting.set(page, open);
  page.on("request", (request) => request.url().endsWith("/api/events") || open.add(request));
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => open.delete(request));
}

// What the page shows to the server.
const keyOf = (page) => page.evaluate(() => sessionStorage.getItem("unspool.key"));

// Asks the server as a program does; gives the status.
function status(where, headers, method = "GET", body) {
  return new Promise((done, failed) => {
    const request = http.request(origin + where, { method, headers }, (answer) => {
      done(answer.statusCode);
      answer.destroy();
    });
    request.on("error", failed);
    request.end(body);
  });
}

async function close(page) {
  expect(!(await page.evaluate(() => window.wasPwned)), "a foreign script ran");
  const violations = await page.evaluate(() => window.violations);
  expect(violations.length === 0, "the policy was violated: " + violations.slice(0, 5).join("; "));
  await page.context().close();
}

const visible = (page, selector) => page.waitForSelector(selector, { state: "visible", timeout: patience });
const said = (page, text) => page.waitForFunction((text) => document.body.innerText.includes(text), text, { timeout: patience });
const quiet = async (page) => {
  // Nothing has been on its way for a moment, and two frames were painted.
  const begun = Date.now();
  for (let since = begun; Date.now() - since < 500 && since - begun < patience; ) {
    if (waiting.get(page).size > 0) since = Date.now();
    await page.waitForTimeout(50);
  }
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
};
const session = (id, rest = "") => `${origin}/s/${id}${rest}`;

async function axe(page, name) {
  await page.evaluate(fs.readFileSync(facts.axe, "utf8"));
  const found = await page.evaluate(async () => {
    const result = await window.axe.run(document, { resultTypes: ["violations"] });
    return result.violations
      .filter((one) => ["serious", "critical"].includes(one.impact))
      .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.target.join(" ") + " " + (node.any[0]?.message ?? "")).join(" | ")}`);
  });
  for (const one of found) wrong.push(`${chapter}: ${name}: ${one}`);
}

async function shot(page, name) {
  if (facts.shots) {
    fs.mkdirSync(facts.shots, { recursive: true });
    await page.screenshot({ path: path.join(facts.shots, name + ".png") });
  }
}

// Lines as the client writes them, at this very moment.
let lines = 0;
function write(kind, content, more = {}) {
  const before = fs.readFileSync(facts.live.path, "utf8").trim().split("\n");
  const last = before.map((line) => JSON.parse(line)).filter((line) => line.uuid).pop();
  lines += 1;
  const uuid = `22222222-0000-4000-8000-${String(lines).padStart(12, "0")}`;
  const message =
    kind === "user"
      ? { role: "user", content }
      : {
          id: `msg_live_${lines}`, type: "message", role: "assistant", model: "claude-opus-5", content,
          stop_reason: content.some((block) => block.type === "tool_use") ? "tool_use" : "end_turn",
          usage: more.usage ?? { input_tokens: 10, output_tokens: 20, cache_read_input_tokens: 3000, cache_creation_input_tokens: 100 },
        };
  const line = {
    type: kind, uuid, parentUuid: last ? last.uuid : null, sessionId: facts.live.id, timestamp: new Date().toISOString(),
    version: "2.1.325", cwd: "/home/dev/live", gitBranch: "main", isSidechain: false, userType: "external", message, ...more.line,
  };
  fs.appendFileSync(facts.live.path, JSON.stringify(line) + "\n");
}
const you = (text) => write("user", text, { line: { permissionMode: "default" } });
const claude = (text, usage) => write("assistant", [{ type: "text", text }], { usage });
const call = (id, command) => write("assistant", [{ type: "tool_use", id, name: "Bash", input: { command, description: "Try it" } }]);
const result = (id, text) =>
  write("user", [{ type: "tool_result", tool_use_id: id, content: text, is_error: false }], { line: { toolUseResult: { stdout: text, stderr: "" } } });

// Everything that a page of another port can try in the browser of the owner; runs there.
async function steal(api) {
  const found = {};
  const report = (how, what) => (found[how] = what === null || what === undefined || what === "" ? "nothing" : String(what).slice(0, 200));
  const wait = (time) => new Promise((done) => setTimeout(done, time));
  report("cookies", document.cookie.split("; ").filter((pair) => pair && !pair.endsWith("=planted")).join("; "));
  report("storage", Object.entries({ ...sessionStorage, ...localStorage }).join());
  report("caches", (await caches?.keys().catch(() => []))?.join());
  report("databases", (await indexedDB.databases()).map((one) => one.name).join());
  report("locks", (await navigator.locks.query()).held.map((one) => one.name).join());
  const told = [];
  for (const name of ["unspool", "unspool.access", "unspool.key", "unspool.keeper"]) {
    const channel = new BroadcastChannel(name);
    channel.onmessage = (event) => told.push(JSON.stringify(event.data));
    channel.postMessage({ want: true });
  }
  addEventListener("message", (event) => told.push(JSON.stringify(event.data)));
  for (const credentials of ["include", "omit"]) {
    for (const mode of ["cors", "no-cors"]) {
      const asked = await fetch(api + "/api/sessions", { credentials, mode }).then((answer) => answer.text(), () => "");
      report(`fetch ${credentials} ${mode}`, asked);
    }
  }
  const event = { method: "POST", mode: "no-cors", credentials: "include", body: JSON.stringify({ token: "planted" }) };
  report("login", await fetch(api + "/api/login", event).then((answer) => answer.text(), () => ""));
  const source = new EventSource(api + "/api/events", { withCredentials: true });
  source.onmessage = source.onopen = () => told.push("events");
  source.addEventListener("snapshot", () => told.push("snapshot"));
  const frame = document.createElement("iframe");
  frame.src = api + "/";
  document.body.append(frame);
  const image = new Image();
  image.onload = () => told.push("image");
  image.src = api + "/api/sessions";
  const script = document.createElement("script");
  script.onload = () => told.push("script");
  script.src = api + "/api/sessions";
  document.body.append(script);
  const popup = window.open(api + "/");
  await wait(1500);
  const peek = (name, look) => {
    try {
      report(name, look());
    } catch {
      report(name, "");
    }
  };
  peek("frame", () => frame.contentDocument?.body?.innerText || frame.contentWindow.sessionStorage.length);
  peek("popup", () => popup.document.title);
  peek("popup storage", () => popup.sessionStorage.getItem("unspool.key"));
  for (const target of [popup, frame.contentWindow]) target?.postMessage({ want: true }, "*");
  await wait(300);
  popup?.close();
  source.close();
  report("messages", told.join());
  return found;
}

const chapters = {
  async "the door"(browser) {
    const page = await open(browser, { token: false, errors: true });
    await page.goto(origin + "/");
    await said(page, "Open the link that");
    await axe(page, "locked");
    await page.goto(session(facts.live.id));
    await said(page, "Open the link that");
    expect(!(await page.content()).includes("parrot"), "a stranger sees something of a session");
    await page.goto(facts.link);
    await said(page, "Teach the parrot to count");
    expect(!page.url().includes("token"), "the token stays in the address");
    const kept = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie + JSON.stringify(history.state));
    expect(!kept.includes(token), "the token is kept where scripts can read it");
    expect((await page.context().cookies()).length === 0, "a cookie was set");
    await page.reload();
    await said(page, "Teach the parrot to count");
    await shot(page, "logged-in");
    await close(page);
  },

  async "logging in and out, in several tabs"(browser) {
    const page = await open(browser);
    await said(page, "Teach the parrot to count");
    const key = await keyOf(page);
    expect((await status("/api/health", { authorization: `Bearer ${key}` })) === 200, "the key of the page is not known");
    // A new tab gets the key from this one; another browser does not.
    const second = await page.context().newPage();
    await second.goto(session(facts.live.id));
    await said(second, "It says two.");
    expect((await keyOf(second)) === key, "the second tab has another key");
    const stranger = await open(browser, { token: false, errors: true });
    await stranger.goto(origin + "/usage");
    await said(stranger, "Open the link that");
    expect((await keyOf(stranger)) === null, "a stranger has a key");
    // A wrong token is refused, and does not lock out the right one.
    for (let i = 0; i < 12; i++) await status("/api/login", {}, "POST", JSON.stringify({ token: "wrong" + i }));
    await stranger.fill("#token", "wrong");
    await stranger.click("text=Log in");
    await visible(stranger, "#token-wrong");
    await axe(stranger, "a wrong token");
    await stranger.fill("#token", facts.link);
    await stranger.keyboard.press("Enter");
    await said(stranger, "By project");
    expect(!stranger.url().includes(token) && stranger.url().endsWith("/usage"), "the address is " + stranger.url());
    await visible(stranger, "header.top .link.live");
    // Out: in all tabs of this browser, and at the server; not in the other one.
    await second.click("button[aria-label='Log out']");
    for (const one of [page, second]) {
      await said(one, "Open the link that");
      expect(!(await one.content()).includes("parrot"), "something of a session is left");
      expect((await keyOf(one)) === null, "the key is left");
    }
    expect((await status("/api/health", { authorization: `Bearer ${key}` })) === 403, "the key is still good");
    await visible(stranger, "header.top .link.live");
    await page.reload();
    await said(page, "Open the link that");
    // A link that differs only behind the # logs in as well, and both tabs are in again.
    await page.evaluate((hash) => { location.hash = hash; }, new URL(facts.link).hash);
    for (const one of [page, second]) await visible(one, "header.top .link.live");
    await said(page, "Teach the parrot to count");
    await said(second, "It says two.");
    expect(!page.url().includes("token"), "the token stays in the address");
    await close(stranger);
    await close(page);
  },

  async "a second server on another port gets nothing"(browser) {
    const page = await open(browser, { elsewhere: true, errors: true });
    await said(page, "Teach the parrot to count");
    const secrets = [token, await keyOf(page)];
    // It notes all that it is sent, answers as the dashboard would, and sets cookies for everybody.
    const heard = [];
    const server = http.createServer((request, answer) => {
      let body = "";
      request.on("data", (part) => (body += part));
      request.on("end", () => {
        heard.push({ where: request.method + " " + request.url, headers: request.rawHeaders, body });
        const names = ["unspool", "unspool.key", "token", `unspool-${new URL(origin).port}`];
        answer.setHeader("set-cookie", names.map((name) => `${name}=planted; Path=/`));
        const isData = request.url.startsWith("/api/");
        answer.setHeader("content-type", isData ? "application/json" : "text/html");
        answer.end(isData ? "[]" : "<!doctype html><title>other</title><h1>The other server</h1>");
      });
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    const thief = await page.context().newPage();
    for (const name of ["127.0.0.1", "localhost"]) {
      const other = `http://${name}:${server.address().port}`;
      // The tab of the owner goes there and comes back, and another tab stays there.
      await page.goto(other + "/from-the-owner");
      await said(page, "The other server");
      await page.goBack();
      await visible(page, "header.top .link.live");
      await thief.goto(other + "/?api=" + encodeURIComponent(origin));
      const found = await thief.evaluate(steal, origin);
      for (const [how, what] of Object.entries(found)) expect(what === "nothing", `${name}: ${how}: ${what}`);
      await said(page, "Teach the parrot to count");
    }
    await page.reload();
    await visible(page, "header.top .link.live");
    await said(page, "Teach the parrot to count");
    server.close();
    expect(heard.length >= 4, `only ${heard.length} requests were heard`);
    // Everything that it heard is tried, and every value of it as a token.
    expect((await status("/api/sessions", { authorization: `Bearer ${secrets[1]}` })) === 200, "the key itself is not good");
    const values = new Set();
    for (const one of heard) {
      const all = JSON.stringify(one);
      for (const secret of secrets) expect(!all.includes(secret), `${one.where} was sent a secret`);
      const headers = {};
      for (let i = 0; i < one.headers.length; i += 2) {
        const [name, value] = [one.headers[i].toLowerCase(), one.headers[i + 1]];
        expect(name !== "authorization", `${one.where} was sent ${name}`);
        if (name === "cookie") expect(value.split("; ").every((pair) => pair.endsWith("=planted")), `${one.where} was sent the cookie ${value}`);
        for (const part of value.split(/[;,=\s]+/)) values.add(part);
        if (!["host", "connection", "content-length", "upgrade"].includes(name)) headers[name] = value;
      }
      for (const where of ["/api/sessions", "/api/events", "/api/health"]) {
        expect((await status(where, headers)) >= 400, `${where} answered what ${one.where} was sent`);
      }
    }
    for (const value of values) {
      const as = { authorization: `Bearer ${value}`, cookie: `unspool-${new URL(origin).port}=${value}` };
      expect((await status("/api/sessions", as)) === 403, `${value} opens the server`);
    }
    await close(page);
  },

  async home(browser) {
    const page = await open(browser);
    await page.goto(origin + "/");
    await said(page, "Teach the parrot to count");
    const rows = await page.locator("a.row").count();
    expect(rows >= 8, `only ${rows} sessions`);
    // Keys: choose, filter, open.
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    expect((await page.locator("a.row.chosen").count()) === 1, "j chooses nothing");
    await page.keyboard.press("k");
    await page.keyboard.press("?");
    await visible(page, "dialog[open]");
    await axe(page, "help");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !document.querySelector("dialog[open]"));
    await page.keyboard.press("/");
    await page.keyboard.type("parrot");
    await page.waitForFunction(() => document.querySelectorAll("a.row").length === 1);
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/s/**");
    await page.goBack();
    await visible(page, "a.row");
    await page.fill("input[type=search]", "no such session anywhere");
    await said(page, "No session matches");
    await page.keyboard.press("Escape");
    await page.click("text=By project");
    await page.waitForFunction(() => document.querySelectorAll("main h2").length >= 4);
    await axe(page, "by project");
    await page.selectOption("select", "name");
    await page.waitForFunction(() => localStorage.getItem("unspool.sort") === "name");
    await close(page);
  },

  async live(browser) {
    const page = await open(browser, { permissions: ["notifications"] });
    // Whichever page hears of it first tells it, so all of them note what they tell.
    await page.context().addInitScript(() => {
      window.notices = [];
      const Real = window.Notification;
      window.Notification = class extends EventTarget {
        static permission = "granted";
        static requestPermission = async () => "granted";
        constructor(title, options) {
          super();
          window.notices.push([title, options.body]);
        }
        close() {}
      };
      void Real;
    });
    await page.goto(origin + "/");
    await said(page, "Teach the parrot to count");
    await page.click("button[aria-label='Notify me when a session needs me']");
    await page.evaluate(() => { window.sameDocument = true; });
    const row = page.locator(`a.row[data-id="${facts.live.id}"]`);
    you("and three");
    call("toolu_live_1", "parrot --say three");
    await page.waitForFunction((id) => document.querySelector(`a.row[data-id="${id}"]`)?.innerText.includes("parrot --say three"), facts.live.id, { timeout: patience });
    expect((await row.innerText()).match(/working|needs you/) !== null, "a call that runs is not shown as work: " + (await row.innerText()));
    await axe(page, "at work");
    result("toolu_live_1", "three");
    claude("It says three.");
    await page.waitForFunction((id) => document.querySelector(`a.row[data-id="${id}"]`)?.innerText.includes("It says three."), facts.live.id, { timeout: patience });
    expect(await page.evaluate(() => window.sameDocument), "the page was loaded again");

    // The session itself: the latest stays in sight, until the reader scrolls.
    const reader = await page.context().newPage();
    await reader.setViewportSize({ width: 1200, height: 420 });
    await reader.goto(session(facts.live.id));
    await said(reader, "It says three.");
    const inSight = (text) => reader.waitForFunction((text) => {
      const box = document.querySelector(".scroll").getBoundingClientRect();
      return [...document.querySelectorAll(".scroll .row")].some((one) => {
        const at = one.getBoundingClientRect();
        return one.innerText.includes(text) && at.bottom > box.top && at.top < box.bottom;
      });
    }, text, { timeout: patience });
    await inSight("It says three.");
    you("and four");
    claude("It says four.");
    await inSight("It says four.");
    await reader.mouse.move(600, 300);
    await reader.mouse.wheel(0, -2000);
    await reader.waitForFunction(() => document.querySelector("button[title^='Follow the latest']").getAttribute("aria-pressed") === "false");
    await quiet(reader);
    const before = await reader.evaluate(() => document.querySelector(".scroll").scrollTop);
    you("and five");
    claude("It says five.");
    await reader.waitForFunction(() => document.querySelector(".facts").innerText.includes("5 turns"), null, { timeout: patience });
    await reader.waitForTimeout(800);
    const after = await reader.evaluate(() => document.querySelector(".scroll").scrollTop);
    expect(Math.abs(after - before) < 3, `the page jumped from ${before} to ${after} under the reader`);
    await reader.keyboard.press("f");
    await inSight("It says five.");

    // Needs somebody: told once, however often and on however many pages it is seen.
    const second = await page.context().newPage();
    await second.goto(origin + "/");
    await said(second, "It says five.");
    const told = async () => {
      const all = [];
      for (const one of [page, reader, second]) all.push(...(await one.evaluate(() => window.notices)));
      return all;
    };
    for (const one of [page, reader, second]) await one.evaluate(() => { window.notices = []; });
    you("and six");
    await page.waitForFunction((id) => document.querySelector(`a.row[data-id="${id}"] .dot.working`), facts.live.id, { timeout: patience }).catch(() => wrong.push("live: a prompt does not make it work"));
    claude("It says six.");
    await page.waitForFunction((id) => document.querySelector(`a.row[data-id="${id}"]`)?.innerText.includes("It says six."), facts.live.id, { timeout: patience });
    const since = Date.now();
    while ((await told()).length === 0 && Date.now() - since < patience) await page.waitForTimeout(50);
    // A second notice would come soon.
    await page.waitForTimeout(1500);
    const once = await told();
    const kept = await page.evaluate(() => localStorage.getItem("unspool.told"));
    expect(once.length === 1, `notices of one wait: ${JSON.stringify(once)}, kept ${kept}`);
    await page.reload();
    await said(page, "It says six.");
    await page.waitForTimeout(500);
    expect((await page.evaluate(() => window.notices.length)) === 0, "told again after the page was loaded again");
    await close(page);
  },

  async "cost today"(browser) {
    const page = await open(browser);
    await page.goto(origin + "/");
    const cost = (id) => page.waitForSelector(`a.row[data-id="${id}"] .cost`).then((one) => one.innerText());
    await said(page, "Teach the parrot to count");
    expect(!(await cost(facts.large)).includes("today"), "a session of long ago cost something today");
    claude("That was a lot.", { input_tokens: 10, output_tokens: 400000 });
    const dollars = (text) => Number(/\$([\d.]+) today/.exec(text)?.[1] ?? 0);
    await page.waitForFunction((id) => /\$\d+\.\d\d today/.test(document.querySelector(`a.row[data-id="${id}"] .cost`)?.innerText), facts.live.id, { timeout: patience });
    const before = dollars(await cost(facts.live.id));
    claude("And that as well.", { input_tokens: 10, output_tokens: 400000 });
    await page.waitForFunction(([id, before]) => {
      const text = document.querySelector(`a.row[data-id="${id}"] .cost`).innerText;
      return Number(/\$([\d.]+) today/.exec(text)?.[1]) > before * 1.9;
    }, [facts.live.id, before], { timeout: patience });
    // As the command line has it.
    const rows = await page.evaluate((key) => fetch("/api/sessions", { headers: { authorization: `Bearer ${key}` } }).then((answer) => answer.json()), await keyOf(page));
    const told = rows.find((row) => row.id === facts.live.id);
    expect(told.cost_today_usd > 0 && told.cost_today_usd < told.cost_usd, `today ${told.cost_today_usd} of ${told.cost_usd}`);
    await page.selectOption("select[aria-label=Sort]", "today");
    await page.click("text=By project");
    await page.waitForFunction((id) => document.querySelector("a.row")?.dataset.id === id, facts.live.id);
    await close(page);
  },

  async session(browser) {
    const page = await open(browser);
    await page.goto(session(facts.recorded.s05_write_edit));
    await visible(page, ".turn .prompt");
    await visible(page, "aside");
    await page.click("button.work");
    await visible(page, ".entry .call");
    await visible(page, ".diff .added");
    expect((await page.locator(".diff .removed").count()) > 0, "no removed line");
    await axe(page, "a change");
    await page.click("text=Side by side");
    await visible(page, ".diff.split .columns");
    await axe(page, "side by side");
    await shot(page, "diff");
    await page.hover(".entry.call");
    await page.locator(".entry.call .braces").first().click();
    await visible(page, "pre[aria-label^='Line']");
    await said(page, "\"type\"");
    await page.click("text=Trim");
    await visible(page, "dialog[open]");
    await said(page, "tokens");
    await visible(page, "dialog[open] .command");
    await axe(page, "trim");
    await page.keyboard.press("Escape");
    await page.click("summary:has-text('Export')");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(".menu button:has-text('Markdown')")]);
    expect(fs.readFileSync(await download.path(), "utf8").length > 50, "an empty document");
    expect(download.suggestedFilename() === `${facts.recorded.s05_write_edit}.md`, "it is called " + download.suggestedFilename());

    you("what is left to teach?");
    const todos = ["four", "five", "six"].map((content, i) => ({ content, status: ["completed", "in_progress", "pending"][i], activeForm: content }));
    write("assistant", [{ type: "tool_use", id: "toolu_todo", name: "TodoWrite", input: { todos } }]);
    result("toolu_todo", "Todos have been modified successfully.");
    claude("Five and six are left.");
    await page.goto(session(facts.live.id));
    await said(page, "Five and six are left.");
    await page.locator("button.work").last().click();
    await visible(page, ".todos li");
    await axe(page, "things to do");
    you("show me how");
    claude("So:\n\n```rust\nfn count() -> u8 { 10 } // \"ten\"\n```");
    await visible(page, "pre .hk");
    const colours = await page.evaluate(() => ["pre .hk", "pre .hn", "pre .hc", "pre:has(.hk)"].map((one) => getComputedStyle(document.querySelector(one)).color));
    expect(new Set(colours).size === 4, "code is not highlighted: " + colours);
    await axe(page, "code");

    await page.goto(session(facts.recorded.s15_image));
    await visible(page, ".turn");
    if (!(await page.locator(".row img").count())) await page.click("button.work");
    await visible(page, ".row img");
    await page.waitForFunction(() => [...document.querySelectorAll(".row img")].every((one) => one.complete && one.naturalWidth > 0));

    await page.goto(session(facts.recorded.s09_compact));
    await page.click(".segments button:has-text('All')");
    await visible(page, ".compacted");
    await axe(page, "compacted");
    await page.click(".segments button:has-text('Turns')");

    // Into a sub-agent, and back.
    await page.goto(session(facts.recorded.s08b_agent_two));
    await visible(page, ".agents a");
    await page.locator(".agents a").first().click();
    await page.waitForURL("**agent=**");
    await visible(page, ".turn");
    await axe(page, "a sub-agent");
    await page.click("h1 a");
    await page.waitForFunction(() => !location.search.includes("agent="));

    // Branches.
    await page.goto(session(facts.recorded.i04_rewind));
    await visible(page, "select[aria-label='Branch of the conversation']");
    const first = await page.locator(".scroll").innerText();
    await page.selectOption("select[aria-label='Branch of the conversation']", { index: 1 });
    await page.waitForFunction((first) => document.querySelector(".scroll")?.innerText !== first && document.querySelector(".scroll .turn"), first, { timeout: patience });
    await close(page);
  },

  async "deep links"(browser) {
    const page = await open(browser);
    const top = () => page.evaluate(() => {
      const box = document.querySelector(".scroll").getBoundingClientRect();
      const all = [...document.querySelectorAll(".scroll .turn")];
      return all.find((one) => one.getBoundingClientRect().bottom > box.top + 20)?.getAttribute("aria-label");
    });
    await page.goto(session(facts.large, "/t/12345"));
    await said(page, "question number 12345");
    await quiet(page);
    expect((await top()) === "Turn 12345", "the link leads to " + (await top()));
    await page.keyboard.press("j");
    await said(page, "question number 12346");
    await quiet(page);
    expect((await top()) === "Turn 12346", "j leads to " + (await top()));
    // In this session: typed, found, gone to.
    await page.keyboard.press("/");
    await page.keyboard.type("answer number 20017.");
    await page.waitForFunction(() => /1 of 1/.test(document.querySelector(".find .num").innerText), null, { timeout: patience });
    await page.waitForFunction(() => [...document.querySelectorAll(".scroll .row")].some((one) => {
      const box = document.querySelector(".scroll").getBoundingClientRect();
      const at = one.getBoundingClientRect();
      return one.innerText.includes("answer number 20017.") && at.bottom > box.top && at.top < box.bottom;
    }), null, { timeout: patience });
    // The timeline leads somewhere.
    const strip = await page.locator("[role=slider]").boundingBox();
    await page.mouse.click(strip.x + strip.width / 2, strip.y + strip.height / 2);
    await page.waitForFunction(() => {
      const turn = document.querySelector(".scroll .turn")?.getAttribute("aria-label")?.slice(5);
      return Math.abs(Number(turn) - 12500) < 400;
    }, null, { timeout: patience });
    await close(page);
  },

  async large(browser) {
    const page = await open(browser);
    await page.addInitScript(() => {
      localStorage.setItem("unspool.level", "all");
      window.most = 0;
      setInterval(() => { window.most = Math.max(window.most, document.querySelectorAll(".scroll .row").length); }, 10);
    });
    const begun = Date.now();
    await page.goto(session(facts.large));
    await said(page, "answer number 25000");
    const painted = Date.now() - begun;
    // The end is there before all of it is.
    await page.waitForFunction(() => document.querySelector(".scroll").scrollHeight > 1e6, null, { timeout: patience });
    await quiet(page);
    await page.evaluate(() => { window.tasks = []; });
    const there = (low, high) => page.waitForFunction(([low, high]) => {
      const heads = [...document.querySelectorAll(".scroll .turn")].map((one) => Number(one.getAttribute("aria-label").slice(5)));
      return heads.length > 0 && heads.every((turn) => turn >= low && turn <= high) && document.querySelectorAll(".scroll .bone").length === 0;
    }, [low, high], { timeout: patience });
    const drag = (share) => page.evaluate((share) => {
      const box = document.querySelector(".scroll");
      box.scrollTop = share * (box.scrollHeight - box.clientHeight);
    }, share);
    await drag(0.5);
    await there(11000, 14000);
    await shot(page, "large");
    await page.keyboard.press("G");
    await there(24900, 25000);
    await drag(0);
    await there(1, 100);
    await drag(0.25);
    await there(5000, 7500);
    // A wheel, as fast as a hand.
    const box = await page.locator(".scroll").boundingBox();
    await page.mouse.move(box.x + 200, box.y + 200);
    for (let i = 0; i < 25; i++) {
      await page.mouse.wheel(0, 500);
      await page.waitForTimeout(16);
    }
    await there(5000, 7600);
    const { most, tasks, nodes } = await page.evaluate(() => ({ most: window.most, tasks: window.tasks, nodes: document.querySelectorAll("*").length }));
    expect(most <= 80, `${most} rows at once`);
    // On a machine that does other things too a task takes longer than it needs, so this is told
    // and judged only where somebody asks for it.
    const longest = Math.max(0, ...tasks);
    const allowed = Number(process.env.UNSPOOL_LONGEST_TASK ?? Infinity);
    expect(longest <= allowed, `a task of ${longest} ms`);
    console.log(`${facts.lines} lines: open in ${painted} ms, at most ${most} rows and ${nodes} elements, longest task ${longest} ms`);
    await close(page);
  },

  async search(browser) {
    const page = await open(browser);
    await page.goto(origin + "/search");
    await visible(page, "input[type=search]:focus");
    await axe(page, "empty search");
    // An index that is being built has nothing yet; the page says so, and asks again.
    let early = 0;
    await page.route("**/api/search?**", async (route) => {
      early += 1;
      if (early > 2) return route.fallback();
      return route.fulfill({ json: [], headers: { "unspool-index": "building" } });
    });
    await page.keyboard.type("parrot", { delay: 15 });
    await said(page, "The index is being built");
    // 100,000 lines are gathered first, which takes a busy machine its time.
    await page.waitForFunction(() => document.querySelectorAll("li a mark").length > 0, null, { timeout: 4 * patience });
    expect(early >= 3, "asked only " + early + " times");
    expect(page.url().endsWith("/search?q=parrot"), "the address is " + page.url());
    await axe(page, "search");
    await shot(page, "search");
    await page.click("text=Exact");
    await page.fill("input[type=search]", "answer number 777.");
    await page.waitForFunction(() => /^1 hit\b/.test(document.querySelector(".sum").innerText), null, { timeout: patience });
    await page.locator("li a").first().click();
    await page.waitForURL(`**/s/${facts.large}**`);
    await said(page, "answer number 777.");
    await page.goBack();
    await page.fill("input[type=search]", "zyzzyva nowhere");
    await said(page, "Nothing found");
    await close(page);
  },

  async usage(browser) {
    const page = await open(browser);
    await page.goto(origin + "/usage");
    await page.click(".segments button:has-text('All')");
    await visible(page, "svg[role=img] .tick");
    expect((await page.locator("svg[role=img] .tick").count()) >= 4, "no axis");
    for (const by of ["Model", "Project", "Session", "Month", "5-hour block"]) {
      await page.locator("[aria-label='Table by'] button", { hasText: by }).click();
      await page.waitForFunction((by) => document.querySelector("table.data th")?.innerText === by && document.querySelectorAll("table.data tbody tr").length > 0, by, { timeout: patience });
    }
    await page.click("text=Tokens");
    await axe(page, "usage");
    await close(page);
  },

  async attacks(browser) {
    // What only says that it is an image is refused.
    const page = await open(browser, { errors: true });
    await page.addInitScript(() => {
      localStorage.setItem("unspool.level", "all");
      localStorage.setItem("unspool.thinking", "yes");
    });
    for (const where of ["/", "/search?q=script", "/usage", `/s/${facts.hostile}/t/1`]) {
      await page.goto(origin + where);
      await quiet(page);
      await page.waitForTimeout(300);
    }
    await visible(page, ".scroll .turn");
    // Down to the end, everything opened and pointed at on the way.
    let turns = new Set();
    for (let step = 0; step < 400; step++) {
      const state = await page.evaluate(() => {
        const box = document.querySelector(".scroll");
        for (const one of box.querySelectorAll("[aria-expanded=false]:not(.work)")) one.click();
        for (const node of box.querySelectorAll(".row *")) {
          for (const kind of ["mouseover", "focus", "toggle", "error", "load"]) node.dispatchEvent(new Event(kind));
        }
        const strange = [...box.querySelectorAll("script, style, link, iframe, object, embed, form, base, meta, video, audio, math, template, noscript")];
        const handlers = [...box.querySelectorAll("*")].flatMap((node) => [...node.attributes]).map((one) => one.name).filter((name) => name.startsWith("on") || name === "srcdoc");
        const links = [...box.querySelectorAll("a")].filter((a) => !["http:", "https:", "mailto:"].includes(a.protocol)).map((a) => a.href);
        const images = [...box.querySelectorAll("img")].filter((one) => !one.src.startsWith(`blob:${location.origin}/`)).map((one) => one.src);
        const seen = [...box.querySelectorAll(".turn")].map((one) => one.getAttribute("aria-label"));
        const end = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
        box.scrollTop += box.clientHeight * 0.85;
        return { strange: strange.map((one) => one.outerHTML.slice(0, 80)), handlers, links, images, seen, end };
      });
      for (const name of ["strange", "handlers", "links", "images"]) {
        if (state[name].length > 0) wrong.push(`attacks: ${name}: ${JSON.stringify(state[name].slice(0, 3))}`);
      }
      for (const turn of state.seen) turns.add(turn);
      await page.waitForTimeout(30);
      await page.waitForFunction(() => !document.querySelector(".scroll .bone"));
      if (state.end || wrong.length > 20) break;
    }
    expect(turns.size >= facts.attacks, `only ${turns.size} of the turns with attacks were seen`);
    expect(page.url().startsWith(origin), "the page went to " + page.url());
    await close(page);
  },

  async "light and dark, wide and narrow"(browser) {
    const places = {
      home: ["/", "Teach the parrot to count"],
      session: [`/s/${facts.recorded.s08b_agent_two}`, "Sub-agents"],
      usage: ["/usage", "By project"],
      search: ["/search?q=parrot", "Teach the parrot"],
    };
    for (const theme of ["light", "dark"]) {
      for (const [size, width, height] of [["wide", 1440, 900], ["narrow", 390, 844]]) {
        const page = await open(browser, { colorScheme: theme, viewport: { width, height } });
        for (const [name, [where, text]] of Object.entries(places)) {
          await page.goto(origin + where);
          if (name === "usage") await page.click(".segments button:has-text('All')");
          if (name === "session" && size === "narrow") await page.click("text=Analysis");
          await said(page, text);
          await quiet(page);
          await axe(page, `${name} ${theme} ${size}`);
          const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          expect(over <= 0, `${name} ${size} is ${over} pixels too wide`);
          await shot(page, `${name}-${theme}-${size}`);
        }
        await close(page);
      }
    }
  },

  // Last, because nothing is there after it.
  async "the end of the server"(browser) {
    const page = await open(browser, { errors: true });
    const other = await page.context().newPage();
    await page.goto(origin + "/");
    await said(page, "Teach the parrot to count");
    // What stands around the transcript is asked for after it; the server ends before it answers.
    let asked;
    const detail = new Promise((done) => (asked = done));
    await other.route(`**/api/sessions/${facts.live.id}`, (route) => asked(route));
    await other.goto(session(facts.live.id));
    await visible(other, ".turn");
    const held = await detail;
    process.kill(facts.pid);
    await held.abort();
    await said(page, "The server does not respond");
    await said(other, "The server does not respond");
    expect((await page.locator("a.row").count()) > 0, "what was known is gone");
    await axe(page, "offline");
    await shot(page, "offline");
    // The transcript stays, and says so when it is asked for more.
    await visible(other, ".turn");
    await other.click(".segments button:has-text('All')");
    await said(other, "Try again");
    await close(page);
  },
};

(async () => {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
  const only = process.env.ONLY;
  try {
    for (const [name, run] of Object.entries(chapters)) {
      if (only && !name.includes(only)) continue;
      chapter = name;
      const begun = Date.now();
      try {
        await run(browser);
      } catch (error) {
        const place = /check\.cjs:(\d+)/.exec(error.stack)?.[1];
        wrong.push(`${name}: line ${place}: ${error.message.split("\n").slice(0, 3).join(" ")}`);
        for (const context of browser.contexts()) {
          for (const [i, page] of context.pages().entries()) await shot(page, `wrong-${name}-${i}`);
          await context.close();
        }
      }
      console.log(`${name} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
    }
  } finally {
    await browser.close();
  }
  for (const one of wrong) console.error("WRONG " + one);
  process.exit(wrong.length > 0 ? 1 : 0);
})();
