// What sessions need, in words. Which one needs what is told by the server.
import type { Need, SessionRow, State } from "./types";

export const NEEDS: { need: Need; name: string; about: string }[] = [
  { need: "you", name: "Needs you", about: "asks for permission, asks a question, or has failed" },
  { need: "working", name: "Working", about: "busy now" },
  { need: "waiting", name: "Waiting", about: "has answered and waits for the next prompt" },
  { need: "idle", name: "Idle", about: "nothing has happened for a while" },
];

const WORDS: Record<State, string> = {
  working: "working",
  compacting: "compacting",
  waiting_for_approval: "asks permission",
  waiting_for_input: "waits for you",
  idle: "idle",
  error: "failed",
  ended: "ended",
};

export function word(row: SessionRow): string {
  if (row.status === "waiting_for_input" && row.question) return "asks";
  return WORDS[row.status] ?? row.status;
}

/** How we know, for those who want to know. */
export function evidence(row: SessionRow): string {
  const sources: Record<string, string> = {
    hook: "told by a hook of the client",
    registry: "told by the client's list of processes",
    transcript: "read from the end of the transcript",
    process: "from the process that runs it",
  };
  const from = sources[row.status_from] ?? row.status_from;
  return row.status_sure === false ? `${from}; not certain` : from;
}

/** What the reader should see first of a session. */
export function title(row: SessionRow): string {
  return row.title || row.goal || row.last_prompt || row.id;
}
