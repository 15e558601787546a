// The flat list of a session, fetched by pages as they come into sight.
import { ask, failure, isAborted, type Failure } from "./api";
import { first, items, PAGE, type At, type Place, type Query } from "./opening";
import { afterPaint } from "./paint";
import type { Item } from "./types";

/** Pages kept; those seen longest ago go. */
const KEPT = 60;

export class Items {
  total = $state(0);
  known = $state(false);
  /** Changes when any item does. */
  version = $state(0);
  failure: Failure | null = $state.raw(null);

  /** Called with the places of items that came. */
  came: (from: number, items: Item[]) => void = () => {};
  resized: (before: number, now: number, grows: "above" | "below") => void = () => {};

  #pages = new Map<number, Item[]>();
  /** Items of pages that are not whole: those around the place where the reader began. */
  #loose = new Map<number, Item>();
  #asked = new Map<number, AbortController>();
  #wanted = new Set<number>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  /** Whether only the end is known. */
  #partial = false;

  constructor(readonly place: Place) {}

  get(i: number): Item | undefined {
    void this.version;
    return this.#pages.get(Math.floor(i / PAGE))?.[i % PAGE] ?? this.#loose.get(i);
  }

  /** Asks for what is in sight, a moment later: a reader who drags the bar passes many pages. */
  want(places: Iterable<number>): void {
    if (this.#partial) return;
    this.#wanted = new Set();
    for (const place of places) this.#wanted.add(Math.floor(place / PAGE));
    if (this.#missing().length === 0) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fetch(), 40);
  }

  /** The start: how many there are, and those at a turn, at a line or at the end; says from where. */
  async open(at: At): Promise<number> {
    let answer = await this.#ask(first(at, this.place.level));
    if (answer?.partial) {
      // A large session: its end is there at once, and has no places yet.
      this.#put(0, answer.items);
      this.known = true;
      // All of it takes every processor for a moment, which painting needs as well.
      await new Promise<void>((done) => void afterPaint(done));
      answer = await this.#ask({ last: PAGE });
    }
    if (!answer) return 0;
    this.#put(answer.from, answer.items);
    this.known = true;
    return answer.from;
  }

  /** Where a turn or a line is in this list, and what stands there. */
  async find(at: { turn?: number; line?: number; from?: number }): Promise<{ at: number; item: Item } | null> {
    const answer = await this.#ask({ ...at, limit: 1 });
    const item = answer?.items[0];
    return answer && item ? { at: answer.from, item } : null;
  }

  /** The session has grown: what is in sight is asked for again, the rest when it is needed. */
  async refresh(): Promise<void> {
    for (const [page, asked] of this.#asked) {
      asked.abort();
      this.#asked.delete(page);
    }
    for (const page of this.#pages.keys()) if (!this.#wanted.has(page)) this.#pages.delete(page);
    this.#loose.clear();
    // One page tells the number, whatever is in sight.
    const pages = this.#wanted.size > 0 ? [...this.#wanted] : [Math.floor(Math.max(0, this.total - 1) / PAGE)];
    await Promise.all(pages.map((page) => this.#load(page)));
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const asked of this.#asked.values()) asked.abort();
  }

  #missing(): number[] {
    // A page that was the last one is no longer whole when the list has grown.
    const whole = (page: number) => {
      const items = this.#pages.get(page);
      return items !== undefined && items.length >= Math.min(PAGE, this.total - page * PAGE);
    };
    return [...this.#wanted].filter((page) => !whole(page) && !this.#asked.has(page));
  }

  #fetch(): void {
    for (const [page, asked] of this.#asked) {
      if (!this.#wanted.has(page)) {
        asked.abort();
        this.#asked.delete(page);
      }
    }
    for (const page of this.#missing()) void this.#load(page);
  }

  async #load(page: number): Promise<void> {
    const abort = new AbortController();
    this.#asked.set(page, abort);
    const answer = await this.#ask({ from: page * PAGE, limit: PAGE }, abort.signal);
    if (this.#asked.get(page) === abort) this.#asked.delete(page);
    if (answer) this.#put(answer.from, answer.items);
  }

  async #ask(query: Query, signal?: AbortSignal): Promise<{ from: number; items: Item[]; partial: boolean } | null> {
    try {
      const { data, headers } = await ask<Item[]>(items(this.place, query), signal);
      if (this.#closed) return null;
      const partial = headers.has("unspool-partial");
      const total = Number(headers.get("unspool-total") ?? data.length);
      const from = Number(headers.get("unspool-from") ?? query.from ?? 0);
      if (total !== this.total || this.#partial) {
        const before = this.total;
        const grows = this.#partial ? "above" : "below";
        // What had no places yet is the end of what has.
        if (this.#partial) this.#pages.clear();
        this.#partial = partial;
        this.total = total;
        this.resized(before, total, grows);
      }
      this.failure = null;
      return { from, items: data, partial };
    } catch (error) {
      if (!isAborted(error) && !this.#closed) this.failure = failure(error);
      return null;
    }
  }

  /** Keeps items by pages; what is no whole page stays until that page comes. */
  #put(from: number, items: Item[]): void {
    let at = from;
    const end = from + items.length;
    while (at < end) {
      const page = Math.floor(at / PAGE);
      const start = page * PAGE;
      const whole = Math.min(start + PAGE, this.total);
      if (start >= from && whole <= end) {
        this.#pages.delete(page);
        this.#pages.set(page, items.slice(start - from, whole - from));
      } else {
        for (let i = at; i < Math.min(start + PAGE, end); i++) this.#loose.set(i, items[i - from] as Item);
      }
      at = start + PAGE;
    }
    for (const page of this.#pages.keys()) {
      if (this.#pages.size <= KEPT) break;
      if (!this.#wanted.has(page)) this.#pages.delete(page);
    }
    this.version += 1;
    this.came(from, items);
  }
}
