// What the server says. Names are those of the rows that `unspool … --json` prints.

export interface Usage {
  input: number;
  output: number;
  cache_read: number;
  cache_write_5m: number;
  cache_write_1h: number;
}

export interface Pending {
  name: string;
  subject: string | null;
  since: string | null;
}

export type State =
  | "working"
  | "compacting"
  | "waiting_for_approval"
  | "waiting_for_input"
  | "idle"
  | "error"
  | "ended";

/** What a session wants from a person. */
export type Need = "you" | "working" | "waiting" | "idle";

export interface SessionRow {
  id: string;
  path: string;
  project: string;
  cwd: string | null;
  title: string | null;
  goal: string | null;
  recent_output: string | null;
  last_prompt?: string | null;
  status: State;
  status_from: string;
  status_sure?: boolean;
  status_since: string | null;
  need: Need;
  pending_tool: Pending | null;
  question?: string | null;
  error?: string | null;
  resets?: string | null;
  agents_working?: number;
  tasks_running?: number;
  turns: number;
  messages: number;
  calls: number;
  agents: number;
  first: string | null;
  last: string | null;
  model: string | null;
  models: string[];
  version: string | null;
  git_branch: string | null;
  permission_mode: string | null;
  pr_links: string[];
  compactions: number;
  bytes: number;
  usage: Usage;
  cost_usd: number | null;
  cost_usd_known?: number | null;
  unpriced_messages?: number;
  used_by?: { own: Used; agents: Used; client: Used };
  cost_today_usd?: number | null;
  cost_today_usd_known?: number | null;
  context_tokens: number | null;
  context_limit: number | null;
  forked_from: string | null;
  /** What somebody filed it under. */
  tag?: string | null;
  is_subagent: boolean;
  /** Only its start and end were read so far. */
  partial?: boolean;
}

/** What some messages used. */
export interface Used {
  messages: number;
  usage: Usage;
  cost_usd: number | null;
  cost_usd_known: number;
  unpriced_messages: number;
}

export interface AgentRow {
  agent: string;
  type: string | null;
  description: string | null;
  parent: string | null;
  depth: number;
  status: string;
  turns: number;
  calls: number;
  usage: Usage;
  cost_usd: number | null;
  cost_usd_known?: number | null;
  unpriced_messages?: number;
  recent_output: string | null;
}

export interface FileRow {
  path: string;
  reads: number;
  writes: number;
  edits: number;
  added: number;
  removed: number;
}

export interface Branch {
  uuid: string;
  label: string;
  at: string | null;
  live: boolean;
}

export interface ToolSum {
  name: string;
  count: number;
  failed: number;
  ms?: number;
}

export interface Commit {
  turn: number;
  at: string | null;
  hash: string;
  branch: string;
  title: string;
}

export interface Detail extends SessionRow {
  resume: string;
  chat: string;
  agents_list: AgentRow[];
  files: FileRow[];
  branches: Branch[];
  items: number;
  commits: Commit[];
  tools: ToolSum[];
}

export interface Prose {
  text: string;
  html?: string | null;
  images?: Picture[];
  more?: boolean;
}

export interface Picture {
  url: string;
  media_type?: string;
}

export interface DiffLine {
  op: string;
  text: string;
}

export interface Hunk {
  old_start: number | null;
  new_start: number | null;
  lines: DiffLine[];
}

export interface Todo {
  text: string;
  state: string;
}

export interface Question {
  text: string;
  options: string[];
  answer: string | null;
}

/** A workflow run under the call that started it. */
export interface WorkflowRun {
  id: string;
  name: string | null;
  status: string | null;
  phases: string[];
  agents: WorkflowAgent[];
}

/** A sub-agent of a workflow run. */
export interface WorkflowAgent {
  agent: string;
  label: string | null;
  phase: string | null;
  state: string | null;
}

/** One entry of the flat list that a session is. */
export interface Item {
  i: number;
  kind: "turn" | "prompt" | "text" | "thinking" | "call" | "note" | "compaction" | "agent";
  turn: number;
  line: number;
  uuid?: string | null;
  at?: string | null;
  more?: boolean;
  text?: string;
  html?: string | null;
  images?: Picture[];
  model?: string | null;
  // A turn, whole in itself.
  row?: {
    kind: string;
    round: string;
    live: boolean;
    interrupted: boolean;
    compacted: boolean;
    duration_ms: number | null;
    cost_usd: number | null;
    cost_usd_known?: number;
    unpriced_messages?: number;
    messages: number;
    permission_mode: string | null;
    agents: number;
    queued?: number;
    usage?: Usage;
  };
  tools?: ToolSum[];
  prompt?: Prose | null;
  reply?: Prose | null;
  first_item?: number;
  items?: number;
  // A call.
  id?: string;
  name?: string;
  verb?: string;
  subject?: string | null;
  status?: string;
  duration_ms?: number | null;
  input?: unknown;
  result?: { text: string; html?: string | null; is_error?: boolean } | null;
  summary?: string | null;
  paint?: string | null;
  diff?: Hunk[] | null;
  written?: string | null;
  todos?: Todo[] | null;
  questions?: Question[] | null;
  plan?: Prose | null;
  agent?: string | null;
  agent_kind?: string | null;
  agent_calls?: number | null;
  run?: WorkflowRun | null;
  // A note.
  sub?: string;
  label?: string;
  level?: string;
  // A compaction.
  trigger?: string | null;
  before?: number | null;
  after?: number | null;
  chars?: number;
  matters?: boolean;
}

export interface Bucket {
  turn: number;
  turns: number;
  i: number;
  at: string | null;
  ms: number;
  calls: number;
  failed: number;
  output: number;
  cost_usd: number | null;
  cost_usd_known?: number;
  unpriced_messages?: number;
  context_tokens: number | null;
  compacted: boolean;
  live: boolean;
}

export interface ContextRow {
  category: string;
  tokens: number;
  share: number;
  freed_by: string | null;
  label?: string;
  line?: number;
}

export interface EditResult {
  lines: { kept: number; changed: number; dropped: number; added: number };
  bytes: { before: number; after: number };
  tokens: { before: number; after: number };
  calls: { removed: number; truncated: number };
  thinking_removed: number;
  lost: { what: string; tokens: number }[];
  checks: { name: string; ok: boolean; detail: string }[];
}

export interface Hit {
  session: string;
  line: number;
  uuid: string | null;
  where: string;
  at: string | null;
  snippet: string;
  matches: number;
  agent: string | null;
  project: string;
  score?: number;
  title?: string;
}

export interface Found {
  i: number;
  turn: number;
  line: number;
  snippet: string;
  where?: string;
}

export interface UsageSum extends Usage {
  day?: string;
  week?: string;
  month?: string;
  block?: string;
  block_end?: string;
  active?: boolean;
  session?: string;
  project?: string;
  model: string | null;
  models: string[];
  messages: number;
  total: number;
  cost_usd: number | null;
  cost_usd_known: number;
  unpriced_messages: number;
  first: string | null;
  last: string | null;
}

export interface Health {
  ok: boolean;
  version: string;
  pid: number;
  sessions: number;
  scanned: boolean;
  uptime_ms: number;
}
