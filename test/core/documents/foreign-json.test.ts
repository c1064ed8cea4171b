import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ForeignJsonError, foreignJsonLimits, parseForeignJson } from '../../../src/core/documents/foreign-json.ts';
import { parsedArguments, parsedJson } from '../../../src/core/documents/json-depth.ts';
import { JsonShape, jsonShapeProblem } from '../../../src/core/documents/json-shape.ts';
import { parseArguments } from '../../../src/engine/tools/arguments.ts';
import { AnswerShape } from '../../../src/providers/models/transport/answer-shape.ts';

const small = { maxDepth: 4, maxValues: 10, maxMembers: 8 };

/** The texts that a check has to count rightly, each with what there is too much of. */
const texts: readonly (readonly [string, RegExp | null])[] = [
  ['[[[[]]]]', null],
  ['[[[[[', /nests deeper than 4/],
  ['{"a":{"b":{"c":{"d":{', /nests deeper than 4/],
  ['"[[[[[[[[["', null],
  ['["\\"[[[[[", "\\\\", "[[[[["]', null],
  ['["\\\\",[[[[[', /nests deeper than 4/],
  [`["${'\\\\'.repeat(80)}",[[[[[`, /nests deeper than 4/],
  [`["${'x'.repeat(90)}\\"[[[[[[${'\\"'.repeat(90)}"]`, null],
  [`["${'ä\\\\\\"'.repeat(40)}[[[[[["]`, null],
  ['[1,2,3,4,5,6,7,8,9]', null],
  ['[1,2,3,4,5,6,7,8,9,10]', /more than 10 values/],
  ['[[],[],[],[],[],[],[]]', null],
  ['[[],[],[],[],[],[],[],[]]', /more than 8 members/],
  ['{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7}', null],
  ['{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8}', /more than 8 members/],
];

test('MCP-26 depth, values and members of JSON are counted outside strings, wherever the bytes are cut', () => {
  for (const [text, expected] of texts) {
    const bytes = Buffer.from(text);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const shape = new JsonShape(small);
      const problem = shape.read(bytes.subarray(0, cut)) ?? shape.read(bytes.subarray(cut));
      if (expected === null) assert.equal(problem, null, `${text} cut at ${cut}`);
      else assert.match(problem ?? '', expected, `${text} cut at ${cut}`);
    }
  }
  assert.equal(jsonShapeProblem(Buffer.from(texts[0]?.[0] ?? ''), small), null);
});

test('MCP-26 JSON of another system that is too deep or too much is refused unparsed, and what servers send is taken', () => {
  const refused: readonly string[] = [
    '['.repeat(1_000_000),
    `[${new Array(300_000).fill('{}').join()}]`,
    `{${Array.from({ length: 300_000 }, (_, index) => `"k${index}":1`).join()}}`,
    `[${new Array(1_100_000).fill('1').join()}]`,
    `${'[['.repeat(251)}${']]'.repeat(251)}`,
  ];
  const parse = JSON.parse;
  let parsed = 0;
  JSON.parse = (text, reviver) => {
    parsed += 1;
    return parse(text, reviver) as unknown;
  };
  try {
    for (const text of refused) {
      for (const source of [text, Buffer.from(text)]) assert.throws(() => parseForeignJson(source), ForeignJsonError);
      // What models and callers write into a text: arguments that cannot be read stay the text that they are.
      assert.ok(parsedJson(text) === undefined);
      assert.ok(parsedArguments(text) === text);
    }
    for (const text of refused.slice(0, -1)) assert.ok(parseArguments(text) === undefined);
  } finally {
    JSON.parse = parse;
  }
  assert.equal(parsed, 0);
  // A denser one is refused: a mebibyte may have 100,000 properties, lists and objects.
  const rows = Array.from({ length: 15_000 }, (_, id) => ({ id, name: `row ${id}`, tags: ['a', 'b'], ok: true }));
  assert.deepEqual(parseForeignJson(JSON.stringify(rows)), rows);
  const vectors = Array.from({ length: 300 }, () => new Array(3072).fill(0.25));
  assert.deepEqual(parseForeignJson(Buffer.from(JSON.stringify(vectors))), vectors);
  const deep = `${'['.repeat(foreignJsonLimits.maxDepth)}${']'.repeat(foreignJsonLimits.maxDepth)}`;
  assert.equal(JSON.stringify(parseForeignJson(deep)), deep);
  assert.throws(() => parseForeignJson('{"half":'), SyntaxError);
});

const brackets = '['.repeat(300);

test('each event of an answer of a model is counted by itself, however its lines are cut and whatever stands between them', () => {
  const hostile = [
    `data: ${brackets}${brackets}\n\n`,
    `data: ${brackets}\ndata: ${brackets}\n\n`,
    `data:${brackets}\r\ndata:${brackets}\r\n\r\n`,
    `data:${brackets}\rdata:${brackets}\r\r`,
    `event: "\ndata: ${brackets}${brackets}\n\n`,
    `data: ${brackets}\nevent: ${']'.repeat(300)}\ndata: ${brackets}\n\n`,
    `data: "\ndata: ${brackets}${brackets}\n\n`,
    `\uFEFFdata: ${brackets}${brackets}\n\n`,
    `: hello\n\ndata: {}\n\ndata: ${brackets}${brackets}\n\n`,
    `{"half\n\ndata: ${brackets}${brackets}\n\n`,
    `  [${brackets}${brackets}`,
  ];
  const plain = [
    `data: ${brackets}\n\ndata: ${brackets}\n\n`,
    `data: ${brackets}\r\n\r\ndata: ${brackets}\r\n\r\n`,
    `: ${brackets}${brackets}\ndata: {}\n\n`,
    `event: ${brackets}${brackets}\ndata: {"a":"${brackets}${brackets}"}\n\n`,
    `<html>${brackets}${brackets}`,
  ];
  for (const [answers, isRefused] of [
    [hostile, true],
    [plain, false],
  ] as const)
    for (const answer of answers) {
      const bytes = Buffer.from(answer);
      for (let cut = 0; cut <= bytes.length; cut += 1) {
        const shape = new AnswerShape(foreignJsonLimits);
        const problem = shape.read(bytes.subarray(0, cut)) ?? shape.read(bytes.subarray(cut));
        assert.equal(problem !== null, isRefused, `${answer.replaceAll(brackets, '[…')} cut at ${cut}`);
      }
    }
});

test('different lists of member names are counted, and those of rows that look the same are not', () => {
  const limits = { maxDepth: 10, maxValues: 10_000, maxMembers: 10_000, maxShapes: 50 };
  const rows = (count: number, row: (at: number) => object): Buffer =>
    Buffer.from(JSON.stringify(Array.from({ length: count }, (_, at) => row(at))));
  const shared = 'x'.repeat(100);
  for (const [body, isRefused] of [
    [rows(1000, (at) => ({ id: at, name: `n${at}`, nested: { a: at } })), false],
    [rows(50, (at) => ({ [`k${at}`]: at })), false],
    [rows(51, (at) => ({ [`k${at}`]: at })), true],
    [rows(51, (at) => ({ [`${shared}${at}`]: at })), true],
    [rows(100, (at) => ({ [`a${at % 10}`]: 0, [`b${Math.floor(at / 10)}`]: 0 })), true],
    [rows(1, () => Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`k${at}`, 0]))), true],
  ] as const) {
    const problem = jsonShapeProblem(body, limits);
    assert.equal(problem, isRefused ? 'has more than 50 different member names or orders of them' : null);
  }
});
