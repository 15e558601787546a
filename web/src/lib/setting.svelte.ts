// What the reader chose, kept in this browser.
import { kept, LEVELS, type Level } from "./kept";

type Theme = "auto" | "light" | "dark";

class Setting {
  theme: Theme = $state(kept("theme", ["auto", "light", "dark"]));
  group: "need" | "project" = $state(kept("group", ["need", "project"]));
  sort: "recent" | "today" | "cost" | "context" | "turns" | "name" = $state(kept("sort", ["recent", "today", "cost", "context", "turns", "name"]));
  level: Level = $state(kept("level", LEVELS));
  thinking: "no" | "yes" = $state(kept("thinking", ["no", "yes"]));
  diff: "inline" | "split" = $state(kept("diff", ["inline", "split"]));
  list: "yes" | "no" = $state(kept("list", ["yes", "no"]));
  analysis: "yes" | "no" = $state(kept("analysis", ["yes", "no"]));

  set<K extends "theme" | "group" | "sort" | "level" | "thinking" | "diff" | "list" | "analysis">(key: K, value: this[K]): void {
    (this as Setting)[key] = value;
    try {
      localStorage.setItem(`unspool.${key}`, String(value));
    } catch {
      // Then it lasts as long as the page.
    }
    if (key === "theme") this.paint();
  }

  paint(): void {
    if (this.theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.theme;
  }

  nextTheme(): void {
    const order: Theme[] = ["auto", "light", "dark"];
    this.set("theme", order[(order.indexOf(this.theme) + 1) % 3] ?? "auto");
  }
}

export const setting = new Setting();
