// What stands around a transcript and is drawn after it.
export { default as Analysis } from "./Analysis.svelte";
export { default as Sessions } from "./Sessions.svelte";
export { default as Timeline } from "./Timeline.svelte";
export { default as Trim } from "./Trim.svelte";
