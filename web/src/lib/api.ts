// The way to the server: one function that asks, one kind of failure.
import { accessKey, forget, keep, refuse } from "./access";

/** What went wrong, in words for the reader. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly hint: string | null = null,
  ) {
    super(message);
  }

  /** Nobody answered. */
  get offline(): boolean {
    return this.status === 0;
  }

  /** The server does not know our key. */
  get locked(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

let locked: () => void = () => {};
let unlocked: () => void = () => {};

/** Says what to do when the server does not know us. */
export function whenLocked(then: () => void): void {
  locked = then;
}

/** Says what to do when somebody has logged in. */
export function whenUnlocked(then: () => void): void {
  unlocked = then;
}

export interface Answer<T> {
  data: T;
  headers: Headers;
}

type Query = Record<string, string | number | boolean | null | undefined>;

/** A path with its parameters; those that are absent are left out. */
export function path(base: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "" && value !== false) {
      search.set(name, value === true ? "1" : String(value));
    }
  }
  const text = search.toString();
  return text ? `${base}?${text}` : base;
}

/** The path of something that belongs to a session. */
export function of(id: string, rest = ""): string {
  return `/api/sessions/${encodeURIComponent(id)}${rest}`;
}

/** Asks, with the headers of the answer. */
export async function ask<T>(url: string, signal?: AbortSignal): Promise<Answer<T>> {
  const response = await send(url, { signal: signal ?? null });
  return { data: (await response.json()) as T, headers: response.headers };
}

/** Asks. */
export async function get<T>(url: string, signal?: AbortSignal): Promise<T> {
  return (await ask<T>(url, signal)).data;
}

/** Asks for text. */
export async function text(url: string, signal?: AbortSignal): Promise<string> {
  return (await send(url, { signal: signal ?? null })).text();
}

/** Asks for anything else. */
export function response(url: string, signal?: AbortSignal, headers: Record<string, string> = {}): Promise<Response> {
  return send(url, { signal: signal ?? null, headers });
}

/** What was asked before anybody wanted to know, by its address. */
const asked = new Map<string, Promise<Response>>();

/** Asks now; who asks the same for the first time gets this answer. */
export function early(url: string): void {
  const answer = reach(url, {});
  // Who takes it hears what went wrong.
  answer.catch(() => {});
  asked.set(url, answer);
}

/** Asks our own server, and nobody else: the key goes with it. */
async function reach(url: string, init: RequestInit): Promise<Response> {
  if (!url.startsWith("/api/")) throw new Error(`${url} is not a path of the server`);
  const headers = new Headers(init.headers);
  const key = accessKey();
  if (key) headers.set("authorization", `Bearer ${key}`);
  return fetch(url, { ...init, headers, mode: "same-origin", credentials: "omit", redirect: "error", cache: "no-store" });
}

async function send(url: string, init: RequestInit): Promise<Response> {
  let response: Response;
  const answer = asked.get(url);
  asked.delete(url);
  try {
    response = await (answer ?? reach(url, init));
  } catch (error) {
    if (isAborted(error)) throw error;
    if (!(error instanceof TypeError)) throw error;
    throw new Failure(0, "the server does not respond", "is `unspool serve` still running?");
  }
  if (response.ok) return response;
  const told = (await response.json().catch(() => ({}))) as { error?: string; hint?: string };
  const failure = new Failure(
    response.status,
    told.error ?? `the server answered ${response.status}`,
    told.hint ?? null,
  );
  if (failure.locked) {
    refuse();
    locked();
  }
  throw failure;
}

/** Whether it ended because we no longer wanted it. */
export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Anything that was thrown, as a failure. */
export function failure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  return new Failure(-1, error instanceof Error ? error.message : String(error));
}

/** Shows a token to the server and keeps the key that it gives for it. */
export async function login(token: string): Promise<void> {
  const answer = await send("/api/login", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token }),
  });
  keep(((await answer.json()) as { token: string }).token);
  unlocked();
}

/** Makes the key void, here and at the server. */
export async function logout(): Promise<void> {
  // Nobody there to forget it: then it is void already.
  await send("/api/logout", { method: "POST" }).catch(() => {});
  forget();
  locked();
}
