// Renders exported Markdown with two engines, raw HTML allowed in both, and opens what comes out
// in a browser: no script runs, nothing is requested, and no element is there that Markdown of
// ours does not make.
//
// usage: node markdown.cjs FILE.md…
//
// MARKDOWN names the folder whose node_modules hold the engines, PLAYWRIGHT that of
// playwright-core, CHROMIUM the browser.
"use strict";
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { createRequire } = require("node:module");
const engines = createRequire(path.join(process.env.MARKDOWN, "engines.cjs"));
const { chromium } = require(process.env.PLAYWRIGHT);
const { marked } = engines("marked");
const MarkdownIt = engines("markdown-it");

// As careless as they can be told to be. `validateLink` keeps markdown-it from links that a
// reader without it would make.
const loose = new MarkdownIt({ html: true, linkify: true, typographer: true });
loose.validateLink = () => true;
const ENGINES = {
  marked: (text) => marked.parse(text),
  "marked with breaks": (text) => marked.parse(text, { gfm: true, breaks: true }),
  "markdown-it": (text) => loose.render(text),
  "markdown-it, CommonMark": (text) => new MarkdownIt("commonmark", { html: true }).render(text),
};

const ELEMENTS = new Set(
  "A BLOCKQUOTE BR CODE DEL S EM H1 H2 H3 H4 H5 H6 HR INPUT LI OL P PRE STRONG TABLE TBODY TD TH THEAD TR UL".split(" "),
);
const ATTRIBUTES = {
  A: ["href", "title"], CODE: ["class"], OL: ["start"], TD: ["align", "style"], TH: ["align", "style"],
  INPUT: ["type", "checked", "disabled"],
};

const wrong = [];

async function look(browser, name, html) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "unspool-markdown-"));
  const file = path.join(folder, "page.html");
  fs.writeFileSync(file, `<!doctype html><meta charset="utf-8"><main>${html}</main><i id="end"></i>`);
  const page = await (await browser.newContext()).newPage();
  const say = (what) => wrong.push(`${name}: ${what}`);
  page.on("dialog", (dialog) => { say("dialog"); dialog.dismiss(); });
  page.on("request", (request) => { if (request.url() !== pathToFileURL(file).href) say("request: " + request.url().slice(0, 80)); });
  page.on("popup", () => say("popup"));
  await page.addInitScript(() => { window.pwned = () => { window.wasPwned = true; }; });
  await page.goto(pathToFileURL(file).href, { waitUntil: "load" });
  const found = await page.evaluate(([elements, attributes]) => {
    const found = [];
    const short = (node) => node.outerHTML.slice(0, 120) + " in " + (node.parentElement?.outerHTML ?? "").slice(0, 200);
    const main = document.querySelector("main");
    for (const node of main.querySelectorAll("*")) {
      if (!elements.includes(node.tagName)) found.push("element " + short(node));
      for (const { name, value } of node.attributes) {
        const allowed = (attributes[node.tagName] ?? []).includes(name);
        const styled = name !== "style" || /^text-align: ?(left|right|center);?$/.test(value);
        if (!allowed || !styled) found.push("attribute " + name + " " + short(node));
      }
      if (node.tagName === "A" && !/^(https?:\/\/|mailto:)/i.test(node.getAttribute("href") ?? "")) found.push("link " + short(node));
    }
    // Nothing closes what it stands in.
    const end = document.getElementById("end");
    if (end?.parentElement !== document.body || end.previousElementSibling !== main) found.push("the text breaks out of its place");
    for (const node of main.querySelectorAll("*")) {
      for (const kind of ["mouseover", "focus", "toggle", "error", "load"]) node.dispatchEvent(new Event(kind));
      if (node.tagName !== "A") node.dispatchEvent(new Event("click"));
    }
    return found;
  }, [[...ELEMENTS], ATTRIBUTES]);
  found.slice(0, 12).forEach(say);
  await page.waitForTimeout(200);
  if (await page.evaluate(() => window.wasPwned)) say("a foreign script ran");
  const made = await page.evaluate(() => ({
    headings: document.querySelectorAll("h2").length,
    code: document.querySelectorAll("pre > code").length,
  }));
  if (made.headings === 0) say("no turn is a heading");
  await page.context().close();
  fs.rmSync(folder, { recursive: true });
}

(async () => {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
  try {
    for (const file of process.argv.slice(2)) {
      const text = fs.readFileSync(file, "utf8");
      for (const [name, render] of Object.entries(ENGINES)) {
        await look(browser, `${name}, ${path.basename(file)}`, render(text));
      }
    }
  } finally {
    await browser.close();
  }
  for (const one of [...new Set(wrong)].slice(0, 60)) console.error(one);
  process.exit(wrong.length ? 1 : 0);
})();
