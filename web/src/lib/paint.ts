// When something is on the screen.

/** Calls once when what was changed just now has been painted; returns how to stop. */
export function afterPaint(then: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = () => {
    cancelAnimationFrame(frame);
    clearTimeout(timer);
    clearTimeout(late);
  };
  const done = () => {
    stop();
    then();
  };
  // What stands behind a frame comes after it was painted.
  const frame = requestAnimationFrame(() => {
    timer = setTimeout(done);
  });
  // A page that nobody looks at paints nothing.
  const late = setTimeout(done, 300);
  return stop;
}
