// Heights of very many rows: where a row begins and which row is at a place, both quickly.

/** A binary indexed tree over the heights. */
export class Heights {
  #heights: Float64Array;
  #tree: Float64Array;
  #measured: Uint8Array;
  length: number;

  constructor(length: number, guess: (i: number) => number) {
    this.length = length;
    this.#heights = new Float64Array(length);
    this.#measured = new Uint8Array(length);
    for (let i = 0; i < length; i++) this.#heights[i] = guess(i);
    this.#tree = tree(this.#heights);
  }

  get total(): number {
    return this.top(this.length);
  }

  height(i: number): number {
    return this.#heights[i] ?? 0;
  }

  isMeasured(i: number): boolean {
    return this.#measured[i] === 1;
  }

  /** Where row `i` begins. */
  top(i: number): number {
    let sum = 0;
    for (let at = Math.min(i, this.length); at > 0; at -= at & -at) sum += this.#tree[at] ?? 0;
    return sum;
  }

  /** The row at a place, the last one for places beyond the end. */
  at(y: number): number {
    let at = 0;
    let rest = y;
    let step = 1;
    while (step * 2 <= this.length) step *= 2;
    for (; step > 0; step >>= 1) {
      const next = at + step;
      const sum = this.#tree[next];
      if (next <= this.length && sum !== undefined && sum <= rest) {
        at = next;
        rest -= sum;
      }
    }
    return Math.max(0, Math.min(at, this.length - 1));
  }

  /** Notes a height that was seen; says whether it is news. */
  measure(i: number, height: number): boolean {
    if (i < 0 || i >= this.length) return false;
    this.#measured[i] = 1;
    return this.#put(i, height);
  }

  /** Notes a better guess, unless the height was seen. */
  guess(i: number, height: number): boolean {
    if (i < 0 || i >= this.length || this.#measured[i] === 1) return false;
    return this.#put(i, height);
  }

  /** Puts rows in the place of others. */
  splice(from: number, gone: number, come: number, guess: (i: number) => number): void {
    const length = this.length - gone + come;
    const heights = new Float64Array(length);
    const measured = new Uint8Array(length);
    heights.set(this.#heights.subarray(0, from));
    measured.set(this.#measured.subarray(0, from));
    for (let i = 0; i < come; i++) heights[from + i] = guess(from + i);
    heights.set(this.#heights.subarray(from + gone), from + come);
    measured.set(this.#measured.subarray(from + gone), from + come);
    this.#heights = heights;
    this.#measured = measured;
    this.#tree = tree(heights);
    this.length = length;
  }

  #put(i: number, height: number): boolean {
    const change = height - (this.#heights[i] ?? 0);
    if (Math.abs(change) < 0.5) return false;
    this.#heights[i] = height;
    for (let at = i + 1; at <= this.length; at += at & -at) {
      this.#tree[at] = (this.#tree[at] ?? 0) + change;
    }
    return true;
  }
}

function tree(heights: Float64Array): Float64Array {
  const sums = new Float64Array(heights.length + 1);
  for (let i = 1; i <= heights.length; i++) {
    sums[i] = (sums[i] ?? 0) + (heights[i - 1] ?? 0);
    const parent = i + (i & -i);
    if (parent <= heights.length) sums[parent] = (sums[parent] ?? 0) + (sums[i] ?? 0);
  }
  return sums;
}
