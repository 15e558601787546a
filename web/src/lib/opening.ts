// What an opened address asks first. It is asked before anything is drawn: reading the end of a
// long session takes the server about as long as the page takes to be built.
import type { Route } from "./address";
import { early, of, path } from "./api";
import { kept, LEVELS, type Level } from "./kept";

/** Items of one question. */
export const PAGE = 50;
/** Turns that fill a high window; other items are small. */
const SCREEN = 12;

/** A list of items. */
export interface Place {
  id: string;
  agent: string | null;
  branch: string | null;
  level: Level;
}

/** Where in it to begin; nowhere: at its end. */
export interface At {
  turn: number | null;
  line: number | null;
}

export type Query = Record<string, number | undefined>;

/** The question for a range of items. */
export function items({ id, agent, branch, level }: Place, query: Query): string {
  return path(of(id, "/items"), { ...query, level, agent, branch, thinking: 1 });
}

/** What is asked first. Of a large session, `quick` gives the end before all of it is read. */
export function first(at: At, level: Level): Query {
  if (at.line !== null) return { line: at.line, limit: PAGE };
  if (at.turn !== null) return { turn: at.turn, limit: PAGE };
  return { last: level === "turns" ? SCREEN : PAGE, quick: 1 };
}

/** Asks what the page at this address will ask. */
export function begin(route: Route): void {
  if (route.page !== "session") return;
  const level = kept("level", LEVELS);
  const { id, agent } = route;
  early(items({ id, agent, branch: null, level }, first(route, level)));
}
