// The dashboard: let in first, then shown.
import { mount } from "svelte";
import "./app.css";
import App from "./App.svelte";
import { accessKey, askOtherTabs, takeToken, whenOtherTabs } from "./lib/access";
import { login, whenLocked, whenUnlocked } from "./lib/api";
import { door } from "./lib/door.svelte";
import { live } from "./lib/live.svelte";
import { setting } from "./lib/setting.svelte";

setting.paint();
const lock = (): void => {
  door.locked = true;
  live.stop();
};
const unlock = (): void => {
  if (!door.locked) return;
  door.locked = false;
  live.again();
};
whenLocked(lock);
whenUnlocked(unlock);
whenOtherTabs(unlock, lock);

/** Shows the token in the address to the server; without one, asks other tabs for their key. */
async function enter(): Promise<void> {
  const token = takeToken();
  // Refused or not: without a key the page says how to get in.
  if (token !== null) await login(token).catch(() => {});
  await askOtherTabs();
  if (!accessKey()) lock();
}

// A link that differs only behind the `#` does not load the page again.
addEventListener("hashchange", () => void enter());
const target = document.getElementById("app");
if (target) void enter().then(() => mount(App, { target }));
