// Amounts and times in a few characters. By hand: the browser's own formats take twenty
// milliseconds to be loaded, and the first turns need some.

export function count(n: number, one: string, many = one + "s"): string {
  return `${number(n)} ${n === 1 ? one : many}`;
}

/** 12,345. */
export function number(n: number): string {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** 950, 12.3k, 4.1M. */
export function short(n: number): string {
  if (n < 1000) return String(Math.round(n));
  const [value, unit] = n < 999_500 ? [n / 1e3, "k"] : n < 999_500_000 ? [n / 1e6, "M"] : [n / 1e9, "B"];
  return (value < 99.95 ? value.toFixed(1).replace(/\.0$/, "") : String(Math.round(value))) + unit;
}

export function bytes(n: number): string {
  if (n < 1000) return `${n} B`;
  const units = ["kB", "MB", "GB"];
  let value = n / 1000;
  let at = 0;
  while (value >= 999.5 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${value < 99.95 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)} ${units[at]}`;
}

export function money(usd: number | null | undefined): string {
  if (usd == null) return "–";
  if (usd === 0) return "$0";
  if (usd < 0.005) return "<$0.01";
  if (usd < 1000) return "$" + usd.toFixed(2);
  return "$" + number(usd);
}

export interface Cost {
  cost_usd: number | null;
  cost_usd_known?: number | null;
  unpriced_messages?: number;
}

/** What something cost; where some messages have no price, what the others cost at least. */
export function cost(row: Cost | null | undefined): string {
  if (!row) return "–";
  if (row.cost_usd != null || !row.cost_usd_known) return money(row.cost_usd);
  return row.cost_usd_known < 0.005 ? "≥ $0.00" : "≥ " + money(row.cost_usd_known);
}

/** What all of these cost together. */
export function together(rows: Cost[]): Cost {
  const known = rows.reduce((all, row) => all + (row.cost_usd_known ?? 0), 0);
  const unpriced = rows.reduce((all, row) => all + (row.unpriced_messages ?? 0), 0);
  return { cost_usd: unpriced > 0 ? null : known, cost_usd_known: known, unpriced_messages: unpriced };
}

/** How many messages have no price, to be shown beside a cost. */
export function unpriced(row: Cost | null | undefined): string | undefined {
  const many = row?.unpriced_messages;
  return many ? `${many === 1 ? "1 message" : `${number(many)} messages`} without a price` : undefined;
}

export function duration(ms: number | null | undefined): string {
  if (ms == null) return "";
  if (ms < 1000) return `${ms} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${two(Math.floor(seconds % 60))}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours}h ${two(minutes % 60)}m`;
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

/** How long ago, in one word. */
export function ago(at: string | null | undefined, now: number): string {
  if (!at) return "";
  const seconds = Math.max(0, (now - Date.parse(at)) / 1000);
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 10) return "now";
  if (seconds < 60) return `${Math.floor(seconds)}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`;
  if (seconds < 86_400 * 60) return `${Math.floor(seconds / 86_400)}d`;
  if (seconds < 86_400 * 700) return `${Math.floor(seconds / 86_400 / 30.4)}mo`;
  return `${Math.floor(seconds / 86_400 / 365)}y`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (n: number) => String(n).padStart(2, "0");

/** 15:04, in the zone of the browser. */
export function time(at: string | null | undefined): string {
  const date = new Date(at ?? "");
  return Number.isNaN(date.getTime()) ? "" : `${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** Nov 15, 2026, 15:04. */
export function moment(at: string | null | undefined): string {
  const date = new Date(at ?? "");
  if (Number.isNaN(date.getTime())) return "";
  return `${MONTHS[date.getMonth()]} ${date.getDate()}, ${date.getFullYear()}, ${time(at)}`;
}

/** A day such as 2026-11-15, in words. */
export function day(date: string): string {
  const [, m, d] = date.split("-").map(Number);
  const month = MONTHS[(m ?? 0) - 1];
  return month && d ? `${month} ${d}` : date;
}

/** The last part of a path. */
export function base(path: string | null | undefined): string {
  if (!path) return "";
  return path.replace(/[\\/]+$/, "").split(/[\\/]/).pop() || path;
}

/** claude-opus-4-5-20251101 is opus 4.5 to people. */
export function model(name: string | null | undefined): string {
  if (!name) return "";
  const plain = name.replace(/^.*\//, "").replace(/^claude-/, "").replace(/-\d{8}$/, "").replace(/\[.*\]$/, "");
  return plain.replace(/-(\d+)-(\d+)$/, " $1.$2").replace(/-(\d+)$/, " $1").replace(/^(\d+)-(\d+)-(\w+)$/, "$3 $1.$2");
}

/** The first line of a text, without the marks of Markdown. */
export function oneLine(text: string | null | undefined): string {
  if (!text) return "";
  return text
    .replace(/```[^\n]*\n?/g, " ")
    .replace(/^\s*(#{1,6}|[-*>]|\d+\.)\s+/gm, "")
    .replace(/(\*\*|__|`)/g, "")
    .replace(/\s+/g, " ")
    .trim();
}
