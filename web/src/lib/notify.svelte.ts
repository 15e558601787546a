// Web notifications: only if asked for, and never twice for the same wait.
import { title, word } from "./need";
import { where, sessionPath } from "./route.svelte";
import type { SessionRow } from "./types";

const WANTED = "unspool.notify";
const TOLD = "unspool.told";
const KEPT = 300;
/** How long a wait lasts before it is told that is not certain, in milliseconds. */
const DOUBT = 5000;

class Notices {
  possible = typeof Notification !== "undefined";
  wanted = $state(read(WANTED) === "yes");
  denied = $state(typeof Notification !== "undefined" && Notification.permission === "denied");

  get on(): boolean {
    return this.possible && this.wanted && !this.denied;
  }

  async toggle(): Promise<void> {
    if (!this.possible) return;
    if (this.wanted) {
      this.wanted = false;
    } else {
      const answer = await Notification.requestPermission();
      this.denied = answer === "denied";
      this.wanted = answer === "granted";
    }
    write(WANTED, this.wanted ? "yes" : "no");
  }
}

export const notices = new Notices();

/** What may be over in a moment, and when it will have lasted. */
const doubtful = new Map<string, { key: string; timer: ReturnType<typeof setTimeout> }>();

/** Tells that a session needs somebody, unless that was told before. */
export function announce(row: SessionRow, before: string | null): void {
  if (!notices.on || row.is_subagent) return;
  const key = `${row.id} ${row.status} ${row.status_since ?? ""} ${row.pending_tool?.since ?? ""}`;
  const open = doubtful.get(row.id);
  const lasts = open?.key === key;
  if (lasts && row.status_sure === false) return;
  clearTimeout(open?.timer);
  doubtful.delete(row.id);
  // A wait for the next prompt is news only where work went before it.
  const news = row.need === "waiting" && (before === "working" || before === "compacting");
  if (!lasts && !news && row.need !== "you") return;
  const tell = () => void once(key, () => show(row));
  if (row.status_sure !== false) tell();
  else doubtful.set(row.id, { key, timer: setTimeout(tell, DOUBT) });
}

/** Does it once, even with several pages open. */
async function once(key: string, act: () => void): Promise<void> {
  const check = () => {
    const told: string[] = JSON.parse(read(TOLD) ?? "[]");
    if (told.includes(key)) return;
    write(TOLD, JSON.stringify([...told, key].slice(-KEPT)));
    act();
  };
  if (!navigator.locks) return check();
  // What one page keeps, a page in another process reads a moment later: until then a lock says it.
  await navigator.locks.request(`${TOLD} ${key}`, { ifAvailable: true }, async (mine) => {
    if (!mine) return;
    await navigator.locks.request(TOLD, check);
    await new Promise((done) => setTimeout(done, DOUBT));
  });
}

function show(row: SessionRow): void {
  const about = row.question ?? row.error ?? (row.pending_tool ? `${row.pending_tool.name} ${row.pending_tool.subject ?? ""}` : row.recent_output);
  const notice = new Notification(`${title(row).slice(0, 80)}: ${word(row)}`, {
    body: (about ?? "").slice(0, 200),
    tag: row.id,
  });
  notice.onclick = () => {
    window.focus();
    where.go(sessionPath(row.id));
    notice.close();
  };
}

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // A browser that keeps nothing only forgets the choice.
  }
}
