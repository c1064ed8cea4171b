import assert from 'node:assert/strict';
import { test } from 'node:test';
import { questionFields, readField } from '../../src/cli/runs/question-fields.ts';
import type { Json } from '../../src/contract/schema.ts';
import { rawServer, tool, withTools } from '../features/mcp-servers/mcp-world.ts';
import { openTerminal, withoutTmux } from '../tui/terminal.ts';
import { createFolder } from './support.ts';

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Your name', description: 'As it is\u202e in the passport', minLength: 2 },
    age: { type: 'integer', minimum: 18, maximum: 120 },
    rate: { type: 'number' },
    member: { type: 'boolean', default: false },
    seat: {
      type: 'string',
      oneOf: [
        { const: 'w', title: 'Window' },
        { const: 'a', title: 'Aisle' },
      ],
      default: 'a',
    },
    meals: {
      type: 'array',
      minItems: 1,
      items: { type: 'string', enum: ['fish', 'none'], enumNames: ['Fish', 'None'] },
    },
  },
  required: ['name', 'seat'],
};

test('MCP-38 values of a question are read as its schema has them, and what does not fit is asked for again', () => {
  const fields = questionFields(schema) ?? assert.fail('each fits on a line');
  const read = (name: string, line: string) => {
    const answer = readField(line, fields.find((field) => field.name === name) ?? assert.fail(name));
    return 'value' in answer ? answer.value : 'again';
  };
  const lines: [string, string, Json | undefined][] = [
    ...(['', 'x'].map((line) => ['name', line, 'again']) as [string, string, Json][]),
    ['name', 'Zoe', 'Zoe'],
    ['name', '😀', 'again'],
    ...(['17', '121', '20.5', 'old', 'Infinity'].map((line) => ['age', line, 'again']) as [string, string, Json][]),
    ['age', '', undefined],
    ['age', '18', 18],
    ['rate', '-1.5', -1.5],
    ['member', '', false],
    ['member', 'Yes', true],
    ['member', '1', 'again'],
    ['seat', '', 'a'],
    ['seat', '1', 'w'],
    ['seat', 'Window', 'w'],
    ['seat', '3', 'again'],
    ['seat', '0', 'again'],
    ['meals', '2, fish,2', ['none', 'fish']],
    ['meals', 'soup', 'again'],
    ['meals', '', undefined],
  ];
  for (const [name, line, value] of lines) assert.deepEqual(read(name, line), value, `${name}: ${line}`);
});

test('MCP-38 a question for what no line can hold is answered as JSON', () => {
  for (const properties of [
    { a: { type: 'object' } },
    { a: { type: 'array', items: { type: 'string' } } },
    { a: { enum: [1, 2] } },
    { a: true },
    [],
  ])
    assert.equal(questionFields({ type: 'object', properties } as Json), null, JSON.stringify(properties));
  assert.equal(questionFields(null), null);
  assert.equal(questionFields({ type: 'object', required: ['a'] }), null, 'nobody would be asked for it');
  assert.deepEqual(questionFields({ type: 'object' }), []);
});

test('MCP-38 on a terminal a person is asked value by value, and may decline, or answer as JSON', {
  skip: withoutTmux,
}, async (t) => {
  const form = { method: 'elicitation/create', params: { message: 'Who flies?', requestedSchema: schema } };
  const server = await rawServer(t, (asked) => {
    if (asked.method !== 'tools/call') return withTools([tool('look')])(asked);
    const { inputResponses } = asked.params;
    if (inputResponses === undefined) return { resultType: 'input_required', inputRequests: { who: form, pays: form } };
    return { resultType: 'complete', content: [{ type: 'text', text: JSON.stringify(inputResponses) }] };
  });
  const folder = createFolder(t);
  folder.write(
    'service.yaml',
    'Service:\n  Providers: { Scripted: { demo: { File: ./script.yaml } } }\n  Egress: { AllowPrivateNetworkTargets: true }\nHost: { Url: "http://127.0.0.1:0", LogLevel: error }\n',
  );
  folder.write(
    'script.yaml',
    'rules:\n  - { when: { tool: weather_look }, reply: { text: "Told: {{last}}" } }\n  - reply: { toolCalls: [{ name: weather_look, arguments: { city: Ulm } }] }\n',
  );
  folder.write('helper.yaml', 'name: helper\nmodel: { provider: demo, model: m }\ntoolNames: [weather_look]\n');
  assert.equal(
    (await folder.acp(['mcp', 'save', 'weather', '--endpoint', server.endpoint, '--no-requires-approval'])).code,
    0,
  );
  assert.equal((await folder.acp(['agents', 'apply', '-f', 'helper.yaml'])).code, 0);
  const size = { columns: 100, rows: 60, env: { NO_COLOR: '1' } };
  const run = (session: string) =>
    openTerminal(t, folder.path, ['run', 'helper', 'Hi', '-s', session, '--no-stream'], size);

  const filled = await run('filled');
  const screen = await filled.until(/Answer\?\s*$/);
  assert.match(screen, /The server asks: Who flies\?/);
  assert.doesNotMatch(screen, /"properties"|"action"/);
  await filled.press('a', 'Enter');
  assert.match(await filled.until(/\(required\):\s*$/), /Your name\n {2}As it is\\u\{202e\} in the passport\n/);
  await filled.press('Z', 'Enter');
  await filled.until(/This takes text, at least 2 characters\.[\s\S]*\(required\):\s*$/);
  await filled.press('Zoe', 'Enter');
  await filled.until(/whole number, 18 to 120 \(Enter: none\):\s*$/);
  await filled.press('44', 'Enter');
  await filled.until(/number \(Enter: none\):\s*$/);
  await filled.press('Enter');
  await filled.until(/y or n \(Enter: n\):\s*$/);
  await filled.press('Enter');
  assert.match(await filled.until(/\(Enter: Aisle\):\s*$/), / {2}1 {2}Window\n {2}2 {2}Aisle\n/);
  await filled.press('1', 'Enter');
  await filled.until(/numbers of the list, with commas, at least 1 of them \(Enter: none\):\s*$/);
  await filled.press('1', 'Enter');
  await filled.until(/\(2 of 2\)[\s\S]*Answer\?\s*$/);
  await filled.press('j', 'Enter');
  await filled.until(/as JSON:\s*$/);
  await filled.press('[1]', 'Enter');
  await filled.until(/a JSON object on one line\.[\s\S]*as JSON:\s*$/);
  // What misfits is said, and only that is asked for again.
  await filled.press('{"name":"Ann","seat":"x"}', 'Enter');
  assert.match(
    await filled.until(/was not taken:[\s\S]*Answer\?\s*$/),
    /it does not fit what was asked for: seat [\s\S]*\(2 of 2\)[^\n]*weather_look/,
  );
  await filled.press('j', 'Enter');
  await filled.until(/Answer\? j\s+Content as JSON:\s*$/);
  await filled.press('{"name":"Ann","seat":"a"}', 'Enter');
  const content = '{"name":"Zoe","age":44,"member":false,"seat":"w","meals":["fish"]}';
  const told = `Told: {"who":{"action":"accept","content":${content}},"pays":{"action":"accept","content":{"name":"Ann","seat":"a"}}}`;
  assert.ok((await filled.until(/ended \d+/)).replaceAll('\n', '').includes(told));

  const stubborn = await run('stubborn');
  await stubborn.until(/Answer\?\s*$/);
  await stubborn.press('d', 'Enter');
  for (let round = 0; round < 6; round += 1) {
    await stubborn.until(
      new RegExp(`^(?:[\\s\\S]*was not taken){${round}}[\\s\\S]*\\(2 of 2\\)[\\s\\S]*Answer\\?\\s*$`),
    );
    await stubborn.press('j', 'Enter');
    await stubborn.until(/as JSON:\s*$/);
    await stubborn.press('{}', 'Enter');
  }
  assert.match(await stubborn.until(/ended \d+/), /ended 2/);

  const left = await run('left');
  await left.until(/Answer\?\s*$/);
  await left.press('d', 'Enter');
  await left.until(/\(2 of 2\)[\s\S]*Answer\?\s*$/);
  await left.press('q', 'Enter');
  assert.match(await left.until(/ended \d+/), /ended 10/);

  // Elsewhere than on a terminal it is told how the answer is written.
  const asked = await folder.acp(['run', 'helper', 'Hi', '-s', 'plain']);
  assert.match(asked.stderr, /"properties"[\s\S]*Answer: \{"action":"accept"/);
  const answers = [...asked.stderr.matchAll(/^call (\S+) waits/gm)].flatMap(([, callId], index) => [
    '--tool-result',
    `${callId}={"action":"${index === 0 ? 'cancel' : 'decline'}"}`,
  ]);
  const answered = await folder.acp(['run', 'helper', '-s', 'plain', ...answers]);
  assert.match(answered.stdout, /Told: \{"who":\{"action":"cancel"\},"pays":\{"action":"decline"\}\}/);
});
