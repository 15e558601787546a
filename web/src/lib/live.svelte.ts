// All sessions as they are now, told by the server as they change.
import { accessKey } from "./access";
import { failure, get, isAborted, path, response, type Failure } from "./api";
import { eventsOf, type ServerEvent } from "./event_stream";
import type { Health, SessionRow } from "./types";
import { announce } from "./notify.svelte";

export type Link = "connecting" | "live" | "offline";

type Grown = (row: SessionRow) => void;

class Live {
  /** Latest first. */
  rows: SessionRow[] = $state.raw([]);
  link: Link = $state("connecting");
  /** Whether there is anything to show yet. */
  known = $state(false);
  scanned = $state(false);
  failure: Failure | null = $state.raw(null);
  version = $state("");
  /** Now, to the second or so, for ages. */
  now = $state(Date.now());

  #byId = new Map<string, SessionRow>();
  /** Ends the stream that is read now; `null` while none is. */
  #stream: AbortController | null = null;
  /** The number of the last event, to go on from there. */
  #last = "";
  #dirty = false;
  #listeners = new Set<Grown>();
  #retry: ReturnType<typeof setTimeout> | undefined;
  #leave: ReturnType<typeof setTimeout> | undefined;
  #started = false;
  #keeper = false;
  #patience = 1000;

  row(id: string): SessionRow | undefined {
    // Reading the list makes whoever asks be told when it changes.
    void this.rows;
    return this.#byId.get(id);
  }

  /** Calls when a session has changed; returns how to stop. */
  on(listener: Grown): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Begins to listen, once. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    setInterval(() => {
      if (!document.hidden) this.now = Date.now();
    }, 5000);
    document.addEventListener("visibilitychange", () => this.#seen());
    // One page listens even when nobody looks at it, to tell what needs somebody.
    void navigator.locks?.request("unspool.keeper", () => {
      this.#keeper = true;
      return new Promise(() => {});
    });
    addEventListener("online", () => this.link === "offline" && this.#connect());
    this.#connect();
  }

  /** Browsers have few connections to one server, so pages that nobody looks at give theirs back. */
  #seen(): void {
    clearTimeout(this.#leave);
    if (document.hidden) {
      if (!this.#keeper) this.#leave = setTimeout(() => this.#close(), 10_000);
      return;
    }
    this.now = Date.now();
    if (this.#started && (this.link === "offline" || !this.#stream)) this.#connect();
  }

  /** Tries now, if anything was begun. */
  again(): void {
    if (this.#started) this.#connect();
  }

  /** Ends it, and forgets what was told: somebody else may sit here now. */
  stop(): void {
    this.#close();
    this.#last = "";
    this.#byId.clear();
    this.rows = [];
    this.known = false;
  }

  #close(): void {
    clearTimeout(this.#retry);
    this.#stream?.abort();
    this.#stream = null;
  }

  #connect(): void {
    this.#close();
    // Who has no key is not answered.
    if (!accessKey()) return;
    if (this.link !== "offline") this.link = "connecting";
    this.#stream = new AbortController();
    void this.#listen(this.#stream);
  }

  /** Reads the stream to its end, then comes back with the number of the last event. */
  async #listen(stream: AbortController): Promise<void> {
    let wrong: Failure | null = null;
    try {
      const headers: Record<string, string> = this.#last ? { "last-event-id": this.#last } : {};
      const answer = await response("/api/events", stream.signal, headers);
      this.link = "live";
      this.failure = null;
      this.#patience = 1000;
      void this.#health();
      if (answer.body) for await (const event of eventsOf(answer.body)) this.#take(event);
    } catch (error) {
      if (!isAborted(error)) wrong = failure(error);
    }
    if (stream.signal.aborted) return;
    this.#stream = null;
    this.link = "offline";
    if (wrong?.locked) return;
    if (wrong && wrong.status > 0) await this.#refused();
    else if (wrong?.offline) this.failure = wrong;
    if (this.#stream || !this.#started) return;
    this.#retry = setTimeout(() => this.#connect(), this.#patience);
    this.#patience = Math.min(this.#patience * 2, 30_000);
  }

  #take(event: ServerEvent): void {
    this.#last = event.id;
    if (event.name === "snapshot") this.#snapshot(parsed<SessionRow[]>(event) ?? []);
    else if (event.name === "session") {
      const told = parsed<{ session: SessionRow; previous_status: string | null }>(event);
      if (told?.session) this.#changed(told.session, told.previous_status);
    } else if (event.name === "removed") {
      const told = parsed<{ id: string }>(event);
      if (told && this.#byId.delete(told.id)) this.#paint();
    } else if (event.name === "scanned") {
      this.scanned = true;
      this.known = true;
    }
  }

  async #health(): Promise<void> {
    try {
      const health = await get<Health>("/api/health");
      this.version = health.version;
      this.scanned = health.scanned;
      if (health.scanned) this.known = true;
    } catch {
      // The stream itself says what is wrong.
    }
  }

  /** The stream was refused: without it, a list that does not move is better than none. */
  async #refused(): Promise<void> {
    try {
      const rows = await get<SessionRow[]>(path("/api/sessions", { limit: 200 }));
      if (!this.known) this.#snapshot(rows);
    } catch (error) {
      this.failure = failure(error);
    }
  }

  #snapshot(rows: SessionRow[]): void {
    const before = this.#byId;
    this.#byId = new Map(rows.map((row) => [row.id, row]));
    for (const row of rows) {
      const old = before.get(row.id);
      // What was read before anybody listened may be older than this.
      if (old?.bytes !== row.bytes) this.#tell(row);
      if (old && old.status !== row.status) announce(row, old.status);
    }
    if (rows.length > 0) this.known = true;
    this.#paint();
  }

  #changed(row: SessionRow, before: string | null): void {
    this.#byId.set(row.id, row);
    this.known = true;
    this.#tell(row);
    announce(row, before);
    this.#paint();
  }

  #tell(row: SessionRow): void {
    for (const listener of this.#listeners) listener(row);
  }

  /** Many changes, one picture: at most one per frame. */
  #paint(): void {
    if (this.#dirty) return;
    this.#dirty = true;
    setTimeout(() => {
      this.#dirty = false;
      const rows = [...this.#byId.values()].filter((row) => !row.is_subagent);
      const last = (row: SessionRow) => row.last ?? "";
      rows.sort((a, b) => (last(a) < last(b) ? 1 : last(a) > last(b) ? -1 : 0));
      this.rows = rows;
      this.now = Date.now();
    }, 50);
  }
}

function parsed<T>(event: ServerEvent): T | null {
  try {
    return JSON.parse(event.data) as T;
  } catch {
    return null;
  }
}

export const live = new Live();
