// A session as rows: its turns, and in the place of an opened turn what was done in it.
import { Items } from "./items.svelte";
import type { Level } from "./kept";
import type { At, Place } from "./opening";
import { Scroller } from "./scroller.svelte";
import type { Item } from "./types";

/** A turn whose work is shown below it. */
interface Opened {
  /** Its place among the rows of the level. */
  at: number;
  turn: number;
  /** Where its work begins in the list of everything, and how many there are. */
  first: number;
  count: number;
}

export interface Row {
  key: string;
  item: Item | undefined;
  place: number;
  /** Whether it is part of an opened turn. */
  inside: boolean;
  open: boolean;
  /** Whether it is the prompt that the head of its turn shows already. */
  opener: boolean;
}

export class Reader {
  readonly scroller = new Scroller();
  readonly list: Items;
  readonly #all: Items;
  #opened: Opened[] = $state.raw([]);
  /** Which calls and thoughts are open, by line and place. */
  folds: Record<string, boolean> = $state({});
  chosen: number | null = $state(null);

  constructor(readonly source: Place) {
    this.list = new Items(source);
    this.#all = new Items({ ...source, level: "all" });
    const { scroller } = this;
    this.list.resized = (before, now, grows) => {
      if (before > 0 && now >= before && grows === "above") {
        scroller.splice(0, 0, now - before, () => this.#unknown);
      } else if (before === 0 || now < before) {
        this.#opened = now < before ? [] : this.#opened;
        scroller.reset(now, () => this.#unknown);
      } else {
        scroller.splice(this.#rowOf(before), 0, now - before, () => this.#unknown);
      }
    };
    this.list.came = (from, items) => {
      for (const [k, item] of items.entries()) this.#grown(from + k, item);
      scroller.guess(items.map((item, k) => [this.#rowOf(from + k), guess(item, source.level, this.isOpen(item.turn))]));
    };
    this.#all.came = (from, items) => {
      const guesses: [number, number][] = [];
      for (const [k, item] of items.entries()) {
        const row = this.#rowOfInside(from + k);
        if (row !== null) guesses.push([row, isBook(item) ? 0 : guess(item, "all", false)]);
      }
      scroller.guess(guesses);
    };
    scroller.moved = () => this.#want();
  }

  get #unknown(): number {
    return this.source.level === "turns" ? 180 : 44;
  }

  get failure() {
    return this.list.failure;
  }

  get length(): number {
    return this.#opened.reduce((sum, one) => sum + one.count, this.list.total);
  }

  rows(): Row[] {
    const { first, last } = this.scroller;
    const rows: Row[] = [];
    for (let row = first; row < last; row++) rows.push(this.#row(row));
    return rows;
  }

  isOpen(turn: number): boolean {
    return this.#opened.some((one) => one.turn === turn);
  }

  /** Opens or closes the work of a turn. */
  toggle(item: Item): void {
    const known = this.#opened.find((one) => one.turn === item.turn);
    if (known) {
      const row = this.#rowOf(known.at);
      this.#opened = this.#opened.filter((one) => one !== known);
      this.scroller.splice(row + 1, known.count, 0, () => 0);
    } else {
      this.#open(item.i, item);
    }
  }

  #open(at: number, item: Item): void {
    const count = workOf(item);
    if (item.first_item === undefined || count === 0 || this.isOpen(item.turn)) return;
    const opened = { at, turn: item.turn, first: item.first_item + 1, count };
    this.#opened = [...this.#opened, opened].sort((a, b) => a.at - b.at);
    this.scroller.splice(this.#rowOf(at) + 1, 0, count, () => 36);
  }

  /** A turn that is open and still goes on gets more rows. */
  #grown(at: number, item: Item): void {
    const known = this.#opened.find((one) => one.turn === item.turn);
    const now = workOf(item);
    if (!known || item.kind !== "turn" || now === known.count) return;
    const row = this.#rowOf(at) + 1;
    const before = known.count;
    this.#opened = this.#opened.map((one) => (one === known ? { ...one, count: now } : one));
    if (now > before) this.scroller.splice(row + before, 0, now - before, () => 36);
    else this.scroller.splice(row + now, before - now, 0, () => 0);
  }

  /** Begins: at a line, at a turn, or at the end. */
  async start(at: At): Promise<void> {
    const end = at.turn === null && at.line === null;
    this.scroller.follow = end;
    const place = await this.list.open(at);
    if (end) {
      // Who has scrolled meanwhile stays there.
      if (this.scroller.follow) this.scroller.end();
    } else if (at.line !== null) await this.toLine(at.line);
    else {
      this.chosen = at.turn;
      this.scroller.to(this.#rowOf(place), 8);
    }
  }

  async toTurn(turn: number): Promise<void> {
    const found = await this.list.find({ turn });
    if (!found) return;
    this.chosen = found.item.turn;
    this.scroller.to(this.#rowOf(found.at), 8);
  }

  /** To what stands in a line of the transcript; the turn around it is opened for that. */
  async toLine(line: number): Promise<void> {
    if (this.source.level !== "turns") {
      const found = await this.list.find({ line });
      if (!found) return;
      this.chosen = found.item.turn;
      return this.#show(this.#rowOf(found.at), found.item);
    }
    const [turn, inside] = await Promise.all([this.list.find({ line }), this.#all.find({ line })]);
    if (!turn) return;
    this.chosen = turn.item.turn;
    const isHead = inside !== null && inside.at <= (turn.item.first_item ?? 0) + 1 && inside.item.kind !== "call";
    if (!inside || isHead) {
      return this.#show(this.#rowOf(turn.at), turn.item);
    }
    this.#open(turn.at, turn.item);
    this.#show(this.#rowOfInside(inside.at) ?? this.#rowOf(turn.at), inside.item);
  }

  #show(row: number, item: Item): void {
    if (item.kind !== "turn") this.folds[foldKey(item)] = true;
    this.scroller.to(row, 90);
  }

  /** The turn that the reader looks at. */
  get turnHere(): number | null {
    const row = this.#row(this.scroller.here);
    return row.item?.turn ?? null;
  }

  step(by: number): void {
    const base = this.chosen ?? this.turnHere ?? 1;
    const next = this.chosen === null ? base : Math.max(1, base + by);
    void this.toTurn(next);
  }

  /** The item of the chosen turn, if it is here. */
  chosenItem(): Item | undefined {
    for (const row of this.rows()) {
      if (row.item?.kind === "turn" && row.item.turn === this.chosen) return row.item;
    }
    return undefined;
  }

  async refresh(): Promise<void> {
    await Promise.all([this.list.refresh(), this.#opened.length > 0 ? this.#all.refresh() : undefined]);
  }

  close(): void {
    this.list.close();
    this.#all.close();
  }

  #row(row: number): Row {
    let before = 0;
    for (const one of this.#opened) {
      const start = one.at + 1 + before;
      if (row < start) break;
      if (row < start + one.count) {
        const place = one.first + row - start;
        const item = this.#all.get(place);
        const opener = place === one.first && item?.kind === "prompt";
        return { key: `w${place}`, item, place: row, inside: true, open: false, opener };
      }
      before += one.count;
    }
    const at = row - before;
    const item = this.list.get(at);
    const opener = item?.kind === "prompt" && this.list.get(at - 1)?.kind === "turn";
    return { key: `t${at}`, item, place: row, inside: false, open: item ? this.isOpen(item.turn) : false, opener };
  }

  #rowOf(at: number): number {
    let row = at;
    for (const one of this.#opened) if (one.at < at) row += one.count;
    return row;
  }

  #rowOfInside(place: number): number | null {
    const one = this.#opened.find((one) => place >= one.first && place < one.first + one.count);
    return one ? this.#rowOf(one.at) + 1 + place - one.first : null;
  }

  /** Asks for what is in sight. */
  #want(): void {
    const turns: number[] = [];
    const work: number[] = [];
    const { first, last } = this.scroller;
    let before = 0;
    let next = 0;
    for (let row = first; row < last; row++) {
      let one = this.#opened[next];
      while (one && row >= one.at + 1 + before + one.count) {
        before += one.count;
        one = this.#opened[++next];
      }
      if (one && row > one.at + before) work.push(one.first + row - one.at - 1 - before);
      else turns.push(row - before);
    }
    this.list.want(turns);
    if (work.length > 0) this.#all.want(work);
  }
}

/** Whether it only keeps books: it is told where everything is told. */
export function isBook(item: Item): boolean {
  return item.kind === "note" && item.matters === false;
}

/** How many items a turn has beside its head. */
export function workOf(turn: Item): number {
  return Math.max(0, (turn.items ?? 1) - 1);
}

/** The name under which it is remembered whether something is open. */
export function foldKey(item: Item): string {
  return item.kind === "call" ? `c${item.id ?? item.line}` : `${item.kind}${item.line}.${item.i}`;
}

/** About how high something will be. */
function guess(item: Item, level: Level, open: boolean): number {
  const lines = (text: string | undefined) => (text ? Math.min(400, text.length / 95 + (text.match(/\n/g)?.length ?? 0)) : 0);
  switch (item.kind) {
    case "turn": {
      const prompt = item.prompt ? Math.min(12, Math.max(1, lines(item.prompt.text))) * 24 + 34 : 0;
      const reply = level === "turns" && !open && item.reply ? lines(item.reply.text) * 25 + 24 : 0;
      return 60 + prompt + (item.tools?.length ? 36 : 0) + reply;
    }
    case "prompt":
      return Math.max(1, lines(item.text)) * 24 + 34;
    case "text":
      return Math.max(1, lines(item.text)) * 25 + 16;
    case "call":
      return 32 + (item.diff ? Math.min(24, item.diff.reduce((sum, hunk) => sum + hunk.lines.length, 0)) * 18 + 20 : 0) + (item.todos ? item.todos.length * 24 : 0);
    case "compaction":
      return 60;
    default:
      return 32;
  }
}
