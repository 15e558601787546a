// Whether what somebody came for is on the screen: everything else waits for it, since painting
// needs the processors as well.
import { afterPaint } from "./paint";

/** Who came for something that takes longer than this is not kept waiting for the rest. */
const PATIENCE = 1500;

class Painted {
  done = $state(false);

  constructor() {
    setTimeout(() => (this.done = true), PATIENCE);
  }

  /** What somebody came for is drawn now. */
  soon(): void {
    if (!this.done) afterPaint(() => (this.done = true));
  }
}

export const painted = new Painted();
