// What several rows cost together.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import ts from "typescript";

const source = readFileSync(new URL("../src/lib/format.ts", import.meta.url), "utf8");
const options = { compilerOptions: { target: "es2022", module: "esnext" } };
const script = ts.transpileModule(source, options).outputText;
const { cost, together, unpriced } = await import(`data:text/javascript,${encodeURIComponent(script)}`);

const row = (known, missing) => ({ cost_usd: missing ? null : known, cost_usd_known: known, unpriced_messages: missing });

test("one message without a price does not make a part look like the whole", () => {
  const sum = together([row(1.5, 0), row(2, 3)]);
  assert.equal(cost(sum), "≥ $3.50");
  assert.equal(unpriced(sum), "3 messages without a price");
});

test("what is priced to the last message is told as it is", () => {
  assert.equal(cost(together([row(1.5, 0), row(2, 0)])), "$3.50");
  assert.equal(cost(together([])), "$0");
});
