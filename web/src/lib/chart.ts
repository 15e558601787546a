// Scales for charts: round numbers on the axes.

/** Ticks from nothing to at least the largest value, each a round number. */
export function ticks(most: number, about = 4): number[] {
  if (!(most > 0)) return [0, 1];
  const rough = most / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? power * 10;
  const all = [0];
  while ((all.at(-1) ?? 0) < most) all.push(Number((all.length * step).toPrecision(12)));
  return all;
}

/** All days from the first to the last, those without anything included. */
export function daysBetween(first: string, last: string): string[] {
  const days: string[] = [];
  const end = Date.parse(last + "T00:00:00Z");
  for (let at = Date.parse(first + "T00:00:00Z"); at <= end && days.length < 4000; at += 86_400_000) {
    days.push(new Date(at).toISOString().slice(0, 10));
  }
  return days;
}
