// Server-sent events over `fetch`: `EventSource` cannot send the key.

export interface ServerEvent {
  /** The number to come back with. */
  id: string;
  name: string;
  data: string;
}

/**
 * Makes events of text, however it is cut into pieces. Lines end in `\n` or `\r\n`, as our server
 * writes them. A piece without the end of a line is only kept, so that a long line is not looked
 * through again with every piece.
 */
export class EventParser {
  #line: string[] = [];
  #id = "";
  #name = "";
  #data: string[] = [];

  *take(text: string): Generator<ServerEvent> {
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      this.#line.push(text.slice(from, end));
      from = end + 1;
      const line = this.#line.join("");
      this.#line = [];
      const event = this.#read(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (event) yield event;
    }
    if (from < text.length) this.#line.push(text.slice(from));
  }

  #read(line: string): ServerEvent | null {
    if (line === "") {
      const event = { id: this.#id, name: this.#name || "message", data: this.#data.join("\n") };
      const said = this.#data.length > 0;
      this.#name = "";
      this.#data = [];
      return said ? event : null;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "id") this.#id = value;
    else if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    // A comment, or something we do not need.
    return null;
  }
}

/** The events of an answer, as they come. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield* parser.take(decoder.decode(value, { stream: true }));
  }
}
