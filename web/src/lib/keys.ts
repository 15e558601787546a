// Keys that do something, unless somebody is writing.

export type Keys = Record<string, (event: KeyboardEvent) => void>;

export function press(event: KeyboardEvent, keys: Keys): void {
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
  const at = event.target as HTMLElement;
  if (at.closest("input, textarea, select, dialog[open], [contenteditable]")) return;
  // Enter and space belong to whatever has the focus, if that can be pressed.
  if ((event.key === "Enter" || event.key === " ") && at.closest("a, button, summary, [role=slider]")) return;
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act(event);
}
