// What this browser keeps of the reader's choices.

export type Level = "turns" | "replies" | "all";

/** How much of a conversation is listed. */
export const LEVELS: readonly [Level, ...Level[]] = ["turns", "replies", "all"];

/** What was chosen before, if it is still a choice; else the first. */
export function kept<T extends string>(key: string, choices: readonly [T, ...T[]]): T {
  try {
    const value = localStorage.getItem(`unspool.${key}`);
    return choices.find((choice) => choice === value) ?? choices[0];
  } catch {
    return choices[0];
  }
}
