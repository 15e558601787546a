// The parser of server-sent events, fed in every way that a network can cut a text.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import ts from "typescript";

const source = readFileSync(new URL("../src/lib/event_stream.ts", import.meta.url), "utf8");
const options = { compilerOptions: { target: "es2022", module: "esnext" } };
const script = ts.transpileModule(source, options).outputText;
const { EventParser, eventsOf } = await import(`data:text/javascript,${encodeURIComponent(script)}`);

const TEXT = 'retry: 1000\n\nid: 7\nevent: snapshot\ndata: [{"a":"b: c\u00e9\u{1f9f5}"}]\n\n: still here\n\nid: 8\nevent: session\r\ndata: one\r\ndata:two\r\n\r\nevent: empty\n\ndata\n\nid: 9\ndata: never ended';
const EVENTS = [
  { id: "7", name: "snapshot", data: '[{"a":"b: c\u00e9\u{1f9f5}"}]' },
  { id: "8", name: "session", data: "one\ntwo" },
  { id: "8", name: "message", data: "" },
];

test("however the text is cut, the events are the same", () => {
  for (let size = 1; size <= TEXT.length; size++) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < TEXT.length; at += size) events.push(...parser.take(TEXT.slice(at, at + size)));
    assert.deepEqual(events, EVENTS, `pieces of ${size}`);
  }
});

test("letters that are cut in the middle are put together", async () => {
  const bytes = new TextEncoder().encode(TEXT);
  for (const size of [1, 2, 3, 5, 1000]) {
    const body = new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    const events = [];
    for await (const event of eventsOf(body)) events.push(event);
    assert.deepEqual(events, EVENTS, `pieces of ${size}`);
  }
});
