// The key that this page shows to the server with every question.
//
// It is kept in `sessionStorage`: that belongs to one origin, port included, and to one tab. A
// cookie would be sent to every server on this machine, whatever its port. Other tabs of the same
// origin can ask for the key and are told when it is gone.

const KEPT = "unspool.key";
/** How long a tab without a key waits for one from another tab, in milliseconds. */
const PATIENCE = 150;

type Message = { want: true } | { key: string } | { out: true };

let key: string | null = read();
/** A key that the server refused, which is not taken again from another tab. */
let refused: string | null = null;
const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("unspool.access");
let arrived: () => void = () => {};
let gone: () => void = () => {};

if (channel) {
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if ("want" in data) {
      if (key) tell({ key });
    } else if ("out" in data) {
      drop();
      gone();
    } else if (!key && data.key !== refused) {
      keepHere(data.key);
      arrived();
    }
  };
}

/** The key, if this tab has one. */
export function accessKey(): string | null {
  return key;
}

/** Keeps a new key, and hands it to tabs that have none. */
export function keep(fresh: string): void {
  keepHere(fresh);
  tell({ key: fresh });
}

/** Forgets a key that the server does not know. */
export function refuse(): void {
  refused = key ?? refused;
  drop();
}

/** Forgets the key in all tabs. */
export function forget(): void {
  drop();
  tell({ out: true });
}

/** Asks other tabs for a key; ends when one came or none will. */
export function askOtherTabs(): Promise<void> {
  if (key || !channel) return Promise.resolve();
  return new Promise((done) => {
    const before = arrived;
    const end = (): void => {
      clearTimeout(timer);
      arrived = before;
      done();
    };
    const timer = setTimeout(end, PATIENCE);
    arrived = () => {
      end();
      before();
    };
    tell({ want: true });
  });
}

/** Says what to do when another tab hands over a key, and when one logs out. */
export function whenOtherTabs(came: () => void, left: () => void): void {
  arrived = came;
  gone = left;
}

/** The token in the address. */
export function tokenInAddress(): string | null {
  return new URLSearchParams(location.hash.slice(1)).get("token");
}

/** Takes the token out of the address, so that neither the address bar nor the history keeps it. */
export function takeToken(): string | null {
  const token = tokenInAddress();
  if (token !== null) history.replaceState(history.state, "", location.pathname + location.search);
  return token;
}

function tell(message: Message): void {
  channel?.postMessage(message);
}

function keepHere(fresh: string): void {
  key = fresh;
  try {
    sessionStorage.setItem(KEPT, fresh);
  } catch {
    // Then it lasts as long as the page.
  }
}

function drop(): void {
  key = null;
  try {
    sessionStorage.removeItem(KEPT);
  } catch {
    // Nothing was kept.
  }
}

function read(): string | null {
  try {
    return sessionStorage.getItem(KEPT);
  } catch {
    return null;
  }
}
