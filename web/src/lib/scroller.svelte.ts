// A window over a list that may have a million rows of any height.
//
// Only rows near the window exist. What the reader looks at stays where it is when rows above
// turn out to be higher or lower than was guessed. Browsers cannot make boxes of any height, so
// beyond a limit the scroll bar moves in proportion while small movements stay exact.
import { Heights } from "./heights";

/** No browser has trouble with a box of this height. */
const LIMIT = 8_000_000;
/** Never more rows than this exist at once. */
const MOST = 72;
const BEFORE = 300;
const AFTER = 600;

export interface Pin {
  row: number;
  /** Pixels between the top of the window and the row. */
  gap: number;
}

export class Scroller {
  first = $state(0);
  last = $state(0);
  /** Height of the box, and where the rows begin in it. */
  box = $state(0);
  y = $state(0);
  atEnd = $state(true);
  /** The row at the top of the window. */
  here = $state(0);
  /** Whether the end stays in sight as the list grows. */
  follow = $state(false);

  heights = new Heights(0, () => 0);
  #element: HTMLElement | null = null;
  /** Before it is known, as high as can be: what fills it is then drawn in one go. */
  #height = innerHeight;
  /** Top of the window over the whole list. */
  #top = 0;
  /** What the browser was told last, to know its events from the reader's. */
  #told = -1;
  #seen = 0;
  #pin: Pin | null = null;
  #places = new Map<Element, number>();
  #settle: ReturnType<typeof setTimeout> | undefined;
  #watch = new ResizeObserver((entries) => this.#measured(entries));
  #frame = new ResizeObserver(() => this.#resized());

  /** Called when the reader scrolls, not we. */
  touched: () => void = () => {};
  moved: () => void = () => {};

  attach(element: HTMLElement): () => void {
    this.#element = element;
    this.#height = element.clientHeight;
    this.#frame.observe(element);
    const scrolled = () => this.#scrolled();
    element.addEventListener("scroll", scrolled, { passive: true });
    this.#keep();
    return () => {
      element.removeEventListener("scroll", scrolled);
      this.#frame.disconnect();
      this.#watch.disconnect();
      this.#places.clear();
      clearTimeout(this.#settle);
      this.#element = null;
    };
  }

  /** Watches the height of a row. */
  row = (element: HTMLElement, place: number) => {
    this.#places.set(element, place);
    this.#watch.observe(element);
    return {
      update: (place: number) => void this.#places.set(element, place),
      destroy: () => {
        this.#watch.unobserve(element);
        this.#places.delete(element);
      },
    };
  };

  /** A list of other rows. */
  reset(length: number, guess: (i: number) => number): void {
    this.heights = new Heights(length, guess);
    this.#top = 0;
    this.#pin = null;
    this.#keep();
  }

  /** Rows come and go; what is looked at stays. */
  splice(from: number, gone: number, come: number, guess: (i: number) => number): void {
    const anchor = this.#anchor();
    this.heights.splice(from, gone, come, guess);
    if (anchor.row >= from + gone) anchor.row += come - gone;
    else if (anchor.row >= from + come) anchor.row = Math.max(0, from - 1);
    if (this.#pin && this.#pin.row >= from + gone) this.#pin = { ...this.#pin, row: this.#pin.row + come - gone };
    this.#restore(anchor);
  }

  /** Better guesses. */
  guess(rows: Iterable<[number, number]>): void {
    const anchor = this.#anchor();
    let news = false;
    for (const [i, height] of rows) news = this.heights.guess(i, height) || news;
    if (news) this.#restore(anchor);
  }

  /** Brings a row to the top of the window, and keeps it there until the reader scrolls. */
  to(row: number, gap = 0): void {
    this.follow = false;
    this.#pin = { row, gap };
    this.#restore(this.#pin);
  }

  end(): void {
    this.#pin = null;
    this.follow = true;
    this.#keep();
  }

  /** Whether a row is wholly in the window. */
  shows(row: number): boolean {
    const top = this.heights.top(row);
    return top >= this.#top - 1 && top + Math.min(this.heights.height(row), 80) <= this.#top + this.#height;
  }

  page(direction: 1 | -1): void {
    this.#pin = null;
    this.follow = false;
    this.#go(this.#top + direction * this.#height * 0.9);
    this.touched();
  }

  get #bottom(): number {
    return Math.max(0, this.heights.total - this.#height);
  }

  #anchor(): Pin {
    if (this.#pin) return { ...this.#pin };
    const row = this.heights.length === 0 ? 0 : this.heights.at(this.#top);
    return { row, gap: this.heights.top(row) - this.#top };
  }

  #restore(anchor: Pin): void {
    if (this.follow) return this.#keep();
    this.#go(this.heights.top(anchor.row) - anchor.gap);
  }

  #keep(): void {
    this.#go(this.follow ? this.#bottom : this.#top);
  }

  /** Moves the window. */
  #go(top: number): void {
    this.#top = Math.max(0, Math.min(top, this.#bottom));
    this.#update();
    this.#place();
  }

  /** Puts the scroll bar where the window is. */
  #place(): void {
    const element = this.#element;
    if (!element) return;
    // The box must be high enough before the browser lets us scroll there.
    const box = element.firstElementChild as HTMLElement | null;
    if (box) box.style.height = `${this.box}px`;
    const wanted = this.#proportional();
    if (Math.abs(element.scrollTop - wanted) >= 1) element.scrollTop = wanted;
    this.#told = element.scrollTop;
    this.#seen = element.scrollTop;
    this.y = this.heights.top(this.first) - this.#top + this.#seen;
  }

  #proportional(): number {
    const total = this.heights.total;
    if (total <= LIMIT) return this.#top;
    return this.#bottom === 0 ? 0 : (this.#top / this.#bottom) * (LIMIT - this.#height);
  }

  #scrolled(): void {
    const element = this.#element;
    if (!element) return;
    const now = element.scrollTop;
    if (Math.abs(now - this.#told) < 1.5) {
      this.#told = now;
      return;
    }
    const by = now - this.#seen;
    this.#seen = now;
    this.#told = -1;
    const large = this.heights.total > LIMIT;
    if (!large) this.#top = now;
    else if (Math.abs(by) < this.#height * 2) this.#top += by;
    else this.#top = (now / (LIMIT - this.#height)) * this.#bottom;
    this.#top = Math.max(0, Math.min(this.#top, this.#bottom));
    this.#pin = null;
    this.follow = false;
    this.#update();
    this.y = this.heights.top(this.first) - this.#top + now;
    this.touched();
    if (large) {
      clearTimeout(this.#settle);
      this.#settle = setTimeout(() => this.#place(), 150);
    }
  }

  #resized(): void {
    const anchor = this.#anchor();
    this.#height = this.#element?.clientHeight ?? 0;
    this.#restore(anchor);
  }

  #measured(entries: ResizeObserverEntry[]): void {
    const anchor = this.#anchor();
    let news = false;
    for (const entry of entries) {
      const place = this.#places.get(entry.target);
      const height = entry.borderBoxSize[0]?.blockSize ?? 0;
      // A row that shows nothing has no height; one that is gone has no place.
      if (place !== undefined && entry.target.isConnected) news = this.heights.measure(place, height) || news;
    }
    if (news) this.#restore(anchor);
  }

  #update(): void {
    const { heights } = this;
    this.box = Math.min(LIMIT, heights.total);
    const end = this.#top + this.#height;
    if (heights.length === 0) {
      this.first = this.last = 0;
    } else {
      const top = heights.at(this.#top);
      const bottom = heights.at(end) + 1;
      // What is in sight comes first; what is near gets the rest.
      const room = Math.max(0, MOST - (bottom - top));
      this.last = Math.min(heights.length, Math.min(heights.at(end + AFTER) + 1, bottom + Math.ceil(room * 0.7)));
      this.first = Math.max(0, Math.max(heights.at(this.#top - BEFORE), top - Math.floor(room * 0.3)));
    }
    this.here = heights.length === 0 ? 0 : heights.at(this.#top + 24);
    this.atEnd = this.#top >= this.#bottom - 8;
    this.moved();
  }
}
