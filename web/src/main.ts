// The dashboard: let in first, then shown.
import { mount } from "svelte";
import "./app.css";
import App from "./App.svelte";
import { login, whenLocked } from "./lib/api";
import { door } from "./lib/door.svelte";
import { setting } from "./lib/setting.svelte";

setting.paint();
whenLocked(() => (door.locked = true));
const target = document.getElementById("app");
if (target) void login().then(() => mount(App, { target }));
