// Opens pages in a browser and looks for anything they should not do.
//
// usage: node check.cjs check PAGE…     hostile or not, a page runs our script and nothing else
//        node check.cjs first PAGE      how long until the first prompt is seen
//
// PLAYWRIGHT names the folder of playwright-core, CHROMIUM the browser.
"use strict";
const { chromium } = require(process.env.PLAYWRIGHT);
const { pathToFileURL } = require("node:url");

const launch = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });

const wrong = [];
const expect = (good, what) => {
  if (!good) wrong.push(what);
};

// Everything that a page should never cause.
async function watched(browser, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on("dialog", (dialog) => {
    wrong.push("dialog: " + dialog.message());
    dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith("file:") && !url.startsWith("data:image/")) wrong.push("request: " + url);
  });
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) wrong.push("console: " + message.text());
  });
  page.on("pageerror", (error) => wrong.push("script failed: " + error.message));
  page.on("popup", (other) => wrong.push("popup: " + other.url()));
  page.on("framenavigated", (frame) => {
    if (!frame.url().startsWith("file:") && frame.url() !== "about:blank") wrong.push("went to " + frame.url());
  });
  await page.addInitScript(() => {
    window.pwned = () => { window.wasPwned = true; };
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) =>
      window.violations.push(event.effectiveDirective + " " + event.blockedURI));
  });
  return page;
}

async function check(browser, file) {
  const page = await watched(browser, { viewport: { width: 1200, height: 800 } });
  await page.goto(pathToFileURL(file).href, { waitUntil: "load" });
  const made = await page.evaluate(() => {
    const all = [...document.querySelectorAll("*")];
    const attributes = new Set(all.flatMap((node) => [...node.attributes].map((one) => one.name)));
    return {
      scripts: document.querySelectorAll("script").length,
      styles: document.querySelectorAll("style, link").length,
      frames: document.querySelectorAll("iframe, object, embed, frame, form, base, video, audio, svg, math, template, noscript").length,
      handlers: [...attributes].filter((name) => name.startsWith("on") || name === "style" || name === "srcdoc"),
      links: [...document.querySelectorAll("a")].map((a) => a.protocol).filter((p) => !["http:", "https:", "mailto:", "file:"].includes(p)),
      local: [...document.querySelectorAll("a")].map((a) => a.getAttribute("href")).filter((href) => !/^(https?:|mailto:|#)/i.test(href)),
      images: [...document.images].map((image) => image.src.slice(0, 24)).filter((src) => !/^data:image\/(png|jpeg|gif|webp);/.test(src)),
      turns: document.querySelectorAll("main > .turn").length,
    };
  });
  expect(made.scripts === 1, "scripts: " + made.scripts);
  expect(made.styles === 1, "styles: " + made.styles);
  expect(made.frames === 0, "foreign elements: " + made.frames);
  for (const name of ["handlers", "links", "images", "local"]) {
    expect(made[name].length === 0, name + ": " + JSON.stringify(made[name].slice(0, 5)));
  }
  expect(made.turns > 0, "no turns");
  // Everything that can be opened is opened, every key is pressed, every place is pointed at.
  await page.evaluate(() => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
  for (const key of ["j", "j", "k", "o", "Enter", "e", "e", "g", "G", "d", "d", "d", "?", "Escape", "/"]) {
    // A browser closes a dialog some time after the key that asks for it.
    if (key === "/") await page.waitForFunction(() => !document.querySelector("dialog[open]"));
    await page.keyboard.press(key);
  }
  expect(await page.evaluate(() => document.activeElement.id === "find"), "/ does not search");
  await page.keyboard.type("script");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await page.evaluate(() => {
    for (const node of document.querySelectorAll("main *")) {
      for (const kind of ["mouseover", "focus", "click", "toggle", "error", "load"]) {
        if (node.tagName !== "A" && node.tagName !== "SUMMARY") node.dispatchEvent(new Event(kind));
      }
    }
  });
  await page.waitForTimeout(300);
  expect(!(await page.evaluate(() => window.wasPwned)), "a foreign script ran");
  const violations = await page.evaluate(() => window.violations);
  expect(violations.length === 0, "the policy was violated: " + violations.slice(0, 5).join("; "));
  await page.context().close();
}

// A plain page does what its keys say, and can be read without any script.
async function use(browser, file) {
  const page = await watched(browser, { viewport: { width: 1200, height: 800 } });
  await page.goto(pathToFileURL(file).href);
  const open = () => page.evaluate(() => document.querySelectorAll(".work[open]").length);
  expect((await open()) === 0, "work is not folded");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  expect((await open()) > 0, "Enter does not open the work of a turn");
  await page.keyboard.press("e");
  const folds = await page.evaluate(() => document.querySelectorAll(".work").length);
  expect((await open()) === folds, "e does not open everything");
  await page.keyboard.press("d");
  expect((await page.evaluate(() => document.documentElement.dataset.theme)) === "light", "d does not change the theme");
  await page.fill("#find", "no such words in here");
  await page.waitForFunction(() => document.getElementById("found").textContent === "nothing found");
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  expect(await page.evaluate(() => document.getElementById("help").open), "? does not help");
  await page.context().close();

  const plain = await watched(browser, { javaScriptEnabled: false, viewport: { width: 1200, height: 800 } });
  await plain.goto(pathToFileURL(file).href);
  expect(await plain.isVisible(".turn .prompt"), "no prompt without a script");
  expect(!(await plain.isVisible(".bar")), "buttons that do nothing without a script");
  await plain.click(".work > summary");
  expect(await plain.isVisible(".work .call"), "work does not open without a script");
  await plain.context().close();
}

async function first(browser, file) {
  const page = await watched(browser, { viewport: { width: 1200, height: 800 } });
  await page.addInitScript(() => {
    const look = () => {
      const prompt = document.querySelector(".turn .prompt");
      if (prompt && prompt.getBoundingClientRect().height > 0) {
        // After the frame that holds it was painted.
        requestAnimationFrame(() => setTimeout(() => { window.seen = performance.now(); }));
      } else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  await page.goto(pathToFileURL(file).href, { waitUntil: "load", timeout: 120000 });
  await page.waitForFunction(() => window.seen, null, { timeout: 120000 });
  const told = await page.evaluate(() => ({
    first_prompt_ms: Math.round(window.seen),
    first_paint_ms: Math.round(performance.getEntriesByName("first-contentful-paint")[0].startTime),
    loaded_ms: Math.round(performance.getEntriesByType("navigation")[0].loadEventStart),
    elements: document.querySelectorAll("*").length,
  }));
  console.log(JSON.stringify(told));
  await page.context().close();
}

(async () => {
  const [what, ...files] = process.argv.slice(2);
  const browser = await launch();
  try {
    for (const file of files) await { check, use, first }[what](browser, file);
  } finally {
    await browser.close();
  }
  for (const one of [...new Set(wrong)].slice(0, 40)) console.error(one);
  process.exit(wrong.length ? 1 : 0);
})();
