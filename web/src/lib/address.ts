// What an address means.

export type Route =
  | { page: "home" }
  | { page: "session"; id: string; agent: string | null; turn: number | null; line: number | null }
  | { page: "usage" }
  | { page: "search"; query: string }
  | { page: "nowhere" };

export function parse(pathname: string, search: string): Route {
  const parts = pathname.split("/").filter(Boolean).map(decoded);
  const query = new URLSearchParams(search);
  if (parts.length === 0) return { page: "home" };
  if (parts[0] === "usage" && parts.length === 1) return { page: "usage" };
  if (parts[0] === "search" && parts.length === 1) {
    return { page: "search", query: query.get("q") ?? "" };
  }
  const id = parts[1];
  if (parts[0] !== "s" || !id) return { page: "nowhere" };
  const rest = parts.slice(2);
  const turn = rest[0] === "t" ? whole(rest.splice(0, 2)[1]) : null;
  if (rest.length > 0) return { page: "nowhere" };
  return { page: "session", id, agent: query.get("agent"), turn, line: whole(query.get("line")) };
}

function whole(text: string | null | undefined): number | null {
  return text && /^\d{1,9}$/.test(text) ? Number(text) : null;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
