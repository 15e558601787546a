// Where we are: the address is the only state of navigation.
import { parse, type Route } from "./address";
import { path } from "./api";

/** The address of a session, of one of its agents, of a turn in it. */
export function sessionPath(
  id: string,
  at: { agent?: string | null; turn?: number | null; line?: number | null } = {},
): string {
  const turn = at.turn != null ? `/t/${at.turn}` : "";
  // Names of agents are free text, which has no place in a path.
  return path(`/s/${encodeURIComponent(id)}${turn}`, { agent: at.agent, line: at.line });
}

class Where {
  now: Route = $state.raw(parse(location.pathname, location.search));
  /** Counts visits, so that the same address can be gone to again. */
  visit = $state(0);

  constructor() {
    addEventListener("popstate", () => this.look());
  }

  look(): void {
    this.now = parse(location.pathname, location.search);
    this.visit += 1;
  }

  go(path: string): void {
    if (path !== location.pathname + location.search) history.pushState(null, "", path);
    this.look();
  }

  /** Names where we are without going there. */
  note(path: string): void {
    if (path !== location.pathname + location.search) history.replaceState(null, "", path);
  }
}

export const where = new Where();

/** Lets links of ours change the page without loading it again. */
export function follow(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element | null)?.closest?.("a");
  if (!link || link.target || link.hasAttribute("download")) return;
  if (link.origin !== location.origin || link.pathname.startsWith("/api/")) return;
  const hash = link.getAttribute("href");
  if (!hash || hash.startsWith("#")) return;
  event.preventDefault();
  where.go(link.pathname + link.search);
}
