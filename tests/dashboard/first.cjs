// How long it takes until a session is on the screen: from the click on its address to the
// first turn that is painted, and to the first one of which nothing is missing.
//
// FACTS names the link that `unspool serve` printed and the session; PLAYWRIGHT the folder of
// playwright-core, CHROMIUM the browser.
"use strict";
const { chromium } = require(process.env.PLAYWRIGHT);
const facts = JSON.parse(process.env.FACTS);
const origin = new URL(facts.link).origin;

(async () => {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.goto(facts.link);
  await page.waitForFunction(() => sessionStorage.getItem("unspool.key"));
  await page.addInitScript(() => {
    // The frame after the one in which a turn stands in the document has it painted.
    const look = () => {
      if (document.querySelector(".scroll .turn .prompt, .scroll .row .text")) {
        requestAnimationFrame(() => { window.painted = performance.now(); });
      } else {
        requestAnimationFrame(look);
      }
    };
    requestAnimationFrame(look);
  });
  await page.goto(`${origin}/s/${facts.session}`);
  await page.waitForFunction(() => window.painted, null, { timeout: 120000 });
  const painted = await page.evaluate(() => window.painted);
  // All of it is known when the list has its whole height and nothing is missing on screen.
  await page.waitForFunction(
    () => document.querySelector(".facts")?.innerText.match(/\d turns?/) && !document.querySelector(".scroll .bone"),
    null,
    { timeout: 120000 },
  );
  const whole = await page.evaluate(() => performance.now());
  console.log(`first turns after ${Math.round(painted)} ms, the whole session known after ${Math.round(whole)} ms`);
  await browser.close();
})();
