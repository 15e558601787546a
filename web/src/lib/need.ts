// What sessions need, in words. Which one needs what is told by the server.
import type { Need, SessionRow, State } from "./types";

export const NEEDS: { need: Need; name: string; about: string }[] = [
  { need: "you", name: "Needs you", about: "needs permission, has a question, or failed" },
  { need: "working", name: "Working", about: "running now" },
  { need: "waiting", name: "Your turn", about: "has replied and waits for your next prompt" },
  { need: "idle", name: "Idle", about: "no recent activity" },
];

const WORDS: Record<State, string> = {
  working: "working",
  compacting: "compacting",
  waiting_for_approval: "needs you",
  waiting_for_input: "your turn",
  idle: "idle",
  error: "error",
  ended: "ended",
};

export function word(row: SessionRow): string {
  if (row.status === "waiting_for_input" && row.question) return "asks you";
  return WORDS[row.status] ?? row.status;
}

/** How we know, for those who want to know. */
export function evidence(row: SessionRow): string {
  const sources: Record<string, string> = {
    hook: "from a Claude Code hook",
    registry: "from Claude Code's process list",
    transcript: "from the end of the transcript",
    process: "from the process that runs it",
  };
  const from = sources[row.status_from] ?? row.status_from;
  return row.status_sure === false ? `${from} (uncertain)` : from;
}

/** What the reader should see first of a session. */
export function title(row: SessionRow): string {
  return row.title || row.goal || row.last_prompt || row.id;
}
