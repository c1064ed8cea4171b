import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, definition, openWorld, refusal, save, validate, withModel } from './agent-world.ts';

type Expected = readonly [severity: 'Error' | 'Warning', code: string, path: string];

const long = (length: number) => 'x'.repeat(length);
const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);
const parameters = (...list: object[]) => ({
  parameters: list,
  instructions: list.map((p) => `{{${(p as { name: string }).name}}}`).join(),
});

/** Definition, and every finding that it gets. */
const cases: Readonly<Record<string, readonly [rule: string, body: Record<string, unknown>, ...Expected[]]>> = {
  'a sound definition': ['AGENT-20', definition('a', { toolNames: ['weather'], instructions: 'Hi' })],
  'a name with a space': ['AGENT-2', definition('a b'), ['Error', 'invalid-name', 'name']],
  'a name that starts with a dot': ['AGENT-2', definition('.a'), ['Error', 'invalid-name', 'name']],
  'a name of 129 characters': ['AGENT-2', definition(long(129)), ['Error', 'invalid-name', 'name']],
  'an empty name': ['AGENT-2', definition(''), ['Error', 'invalid-name', 'name']],
  'texts over their limits': [
    'AGENT-20',
    definition('a', { displayName: long(129), description: long(1025) }),
    ['Error', 'too-long', 'displayName'],
    ['Error', 'too-long', 'description'],
  ],
  'texts of astral characters at their limit': ['AGENT-20', definition('a', { displayName: '😀'.repeat(128) })],
  'instructions counted in bytes': [
    'AGENT-20',
    definition('a', { instructions: 'é'.repeat(131_073), instructionsByCulture: { de: 'é'.repeat(131_073) } }),
    ['Error', 'too-long', 'instructions'],
    ['Error', 'too-long', 'instructionsByCulture.de'],
  ],
  'instructions at the limit': ['AGENT-20', definition('a', { instructions: 'é'.repeat(131_072) })],
  'metadata over 16384 bytes': [
    'AGENT-20',
    definition('a', { metadata: { a: long(16_384) } }),
    ['Error', 'too-long', 'metadata'],
  ],
  'too many parameters': [
    'AGENT-20',
    definition('a', parameters(...names(65).map((name) => ({ name, kind: 'Text' })))),
    ['Error', 'too-long', 'parameters'],
  ],
  'too many cultures': [
    'AGENT-20',
    definition('a', {
      instructionsByCulture: Object.fromEntries(names(33).map((_, index) => [`en-${100 + index}`, 'x'])),
    }),
    ['Error', 'too-long', 'instructionsByCulture'],
  ],
  'a tool twice': [
    'AGENT-20',
    definition('a', { toolNames: ['weather', 'weather'] }),
    ['Error', 'duplicate-entry', 'toolNames[1]'],
  ],
  'unknown fields at every level': [
    'AGENT-11',
    definition('a', {
      nmae: 'x',
      model: {
        provider: 'open',
        model: 'm',
        temprature: 1,
        fallbacks: [{ provider: 'open', model: 'n', key: 1 }],
        responseFormat: { kind: 'Text', strict: true },
      },
      parameters: [{ name: 'p', kind: 'Text', type: 'x' }],
      instructions: '{{p}}',
      subAgents: { deadline: 1 },
    }),
    ['Error', 'unknown-field', 'model.temprature'],
    ['Error', 'unknown-field', 'model.fallbacks[0].key'],
    ['Error', 'unknown-field', 'model.responseFormat.strict'],
    ['Error', 'unknown-field', 'nmae'],
    ['Error', 'unknown-field', 'parameters[0].type'],
    ['Error', 'unknown-field', 'subAgents.deadline'],
  ],
  'an unregistered provider': [
    'AGENT-21',
    withModel('a', { provider: 'nobody' }),
    ['Error', 'provider-not-registered', 'model.provider'],
  ],
  'an unregistered fallback provider': [
    'AGENT-24',
    withModel('a', { fallbacks: [{ provider: 'nobody', model: 'm' }] }),
    ['Error', 'provider-not-registered', 'model.fallbacks[0].provider'],
  ],
  'a model that the catalog lacks': [
    'AGENT-21',
    withModel('a', { model: 'demo-9' }),
    ['Warning', 'model-not-in-catalog', 'model.model'],
  ],
  'a provider without a catalog': ['AGENT-21', withModel('a', { provider: 'open', model: 'anything' })],
  'sampling out of range': [
    'AGENT-23',
    withModel('a', { temperature: 2.1, topP: -0.1, maxOutputTokens: 0, reasoningEffort: long(33) }),
    ['Error', 'value-out-of-range', 'model.temperature'],
    ['Error', 'value-out-of-range', 'model.topP'],
    ['Error', 'value-out-of-range', 'model.maxOutputTokens'],
    ['Error', 'too-long', 'model.reasoningEffort'],
  ],
  'names of provider and model that are too long': [
    'AGENT-20',
    withModel('a', { provider: 'open', model: long(129) }),
    ['Error', 'too-long', 'model.model'],
  ],
  'provider settings of the service': [
    'AGENT-25',
    withModel('a', {
      providerSettings: {
        'demo.seed': 1,
        'other.anything': {},
        seed: 1,
        'demo.': 1,
        'demo.Tool_Choice': 'none',
        'demo.headers': {},
        'demo.generationConfig': { responseSchema: {} },
      },
    }),
    ['Error', 'invalid-provider-setting', 'model.providerSettings.seed'],
    ['Error', 'invalid-provider-setting', 'model.providerSettings.demo.'],
    ['Error', 'invalid-provider-setting', 'model.providerSettings.demo.Tool_Choice'],
    ['Error', 'invalid-provider-setting', 'model.providerSettings.demo.headers'],
    ['Error', 'invalid-provider-setting', 'model.providerSettings.demo.generationConfig'],
  ],
  'a fallback that repeats a model': [
    'AGENT-24',
    withModel('a', {
      fallbacks: [
        { provider: 'demo', model: 'demo-1' },
        { provider: 'open', model: 'x' },
        { provider: 'open', model: 'x' },
      ],
    }),
    ['Error', 'duplicate-entry', 'model.fallbacks[0]'],
    ['Error', 'duplicate-entry', 'model.fallbacks[2]'],
  ],
  'too many fallbacks': [
    'AGENT-24',
    withModel('a', { fallbacks: names(6).map((model) => ({ provider: 'open', model })) }),
    ['Error', 'too-long', 'model.fallbacks'],
  ],
  'a response format of an unknown kind': [
    'AGENT-30',
    withModel('a', { responseFormat: { kind: 'Xml' } }),
    ['Error', 'invalid-response-format', 'model.responseFormat.kind'],
  ],
  'a response format in another case': ['AGENT-28', withModel('a', { responseFormat: { kind: 'json' } })],
  'JsonSchema without a schema': [
    'AGENT-30',
    withModel('a', { responseFormat: { kind: 'JsonSchema' } }),
    ['Error', 'invalid-response-format', 'model.responseFormat.schema'],
  ],
  'a JsonSchema that cannot be compiled': [
    'AGENT-30',
    withModel('a', {
      responseFormat: {
        kind: 'JsonSchema',
        schema: {
          $schema: 'http://json-schema.org/draft-07/schema#',
          type: 'object',
          properties: { city: { type: 'strin' }, zip: { type: 'string', pattern: '[' }, at: { $ref: '#/$defs/at' } },
          required: 'city',
        },
      },
    }),
    ['Error', 'invalid-response-format', 'model.responseFormat.schema.properties.city.type'],
    ['Error', 'invalid-response-format', 'model.responseFormat.schema.properties.zip.pattern'],
    ['Error', 'invalid-response-format', 'model.responseFormat.schema.required'],
    ['Error', 'invalid-response-format', 'model.responseFormat.schema.properties.at.$ref'],
  ],
  'JsonSchema with another root': [
    'AGENT-30',
    withModel('a', { responseFormat: { kind: 'JsonSchema', schema: { type: 'array' }, schemaName: 'a b' } }),
    ['Error', 'invalid-response-format', 'model.responseFormat.schema'],
    ['Error', 'invalid-response-format', 'model.responseFormat.schemaName'],
  ],
  'a schema with another kind': [
    'AGENT-30',
    withModel('a', { responseFormat: { kind: 'Json', schema: { type: 'object' } } }),
    ['Error', 'invalid-response-format', 'model.responseFormat.schema'],
  ],
  'a model that cannot answer in JSON': [
    'AGENT-20',
    withModel('a', { model: 'demo-plain', responseFormat: { kind: 'Json' } }),
    ['Error', 'structured-output-unsupported', 'model.responseFormat'],
  ],
  'a model that cannot answer in JSON and need not': [
    'AGENT-20',
    withModel('a', { model: 'demo-plain', responseFormat: { kind: 'Text' } }),
  ],
  'references that do not resolve': [
    'AGENT-20',
    definition('a', {
      toolNames: ['gone', 'todo_list'],
      callableAgentNames: ['nobody', '../x'],
      sharedInstructionsName: 'nobody',
    }),
    ['Error', 'tool-not-found', 'toolNames[0]'],
    ['Error', 'tool-not-found', 'toolNames[1]'],
    ['Error', 'agent-not-found', 'callableAgentNames[0]'],
    ['Error', 'agent-not-found', 'callableAgentNames[1]'],
    ['Error', 'shared-instructions-not-found', 'sharedInstructionsName'],
  ],
  'an agent that calls itself': [
    'AGENT-20',
    definition('a', { callableAgentNames: ['a'] }),
    ['Error', 'call-cycle', 'callableAgentNames'],
  ],
  'waits that are out of order': [
    'AGENT-48',
    definition('a', { subAgents: { childDeadlineMs: 1000, waitTimeoutMs: 1000 } }),
    ['Error', 'value-out-of-range', 'subAgents.waitTimeoutMs'],
  ],
  'waits out of range': [
    'AGENT-48',
    definition('a', { subAgents: { childDeadlineMs: 0, waitTimeoutMs: 86_400_001 } }),
    ['Error', 'value-out-of-range', 'subAgents.childDeadlineMs'],
    ['Error', 'value-out-of-range', 'subAgents.waitTimeoutMs'],
  ],
  'cultures that are no tags, or the same tag': [
    'AGENT-32',
    definition('a', { instructionsByCulture: { 'de-': 'x', de_DE: 'x', 'pt-BR': 'x', 'pt-br': 'x' } }),
    ['Error', 'invalid-culture', 'instructionsByCulture.de-'],
    ['Error', 'invalid-culture', 'instructionsByCulture.de_DE'],
    ['Error', 'duplicate-entry', 'instructionsByCulture.pt-br'],
  ],
  'placeholders that are not declared': [
    'AGENT-33',
    definition('a', {
      instructions: 'Hi {{name}}, {{name}} {{ spaced }} {{1x}}',
      instructionsByCulture: { de: '{{wer}}' },
    }),
    ['Error', 'undeclared-placeholder', 'instructions'],
    ['Error', 'undeclared-placeholder', 'instructionsByCulture.de'],
  ],
  'a parameter that no text uses': [
    'AGENT-33',
    definition('a', { instructions: 'Hi', parameters: [{ name: 'who', kind: 'Text' }] }),
    ['Warning', 'unused-parameter', 'parameters[0]'],
  ],
  'parameters that are wrong in every way': [
    'AGENT-34',
    definition('a', {
      instructions: '{{n}}{{b}}{{t}}{{k}}',
      parameters: [
        { name: 'n', kind: 'Number', defaultValue: '01' },
        { name: 'b', kind: 'boolean', defaultValue: 'True' },
        { name: 't', kind: 'Text', defaultValue: '', description: long(513) },
        { name: 't', kind: 'Text' },
        { name: 'k', kind: 'Date' },
        { name: '9x', kind: 'Text' },
      ],
    }),
    ['Error', 'invalid-parameter', 'parameters[0].defaultValue'],
    ['Error', 'invalid-parameter', 'parameters[1].defaultValue'],
    ['Error', 'too-long', 'parameters[2].description'],
    ['Error', 'invalid-parameter', 'parameters[3].name'],
    ['Error', 'invalid-parameter', 'parameters[4].kind'],
    ['Error', 'invalid-parameter', 'parameters[5].name'],
    ['Warning', 'unused-parameter', 'parameters[5]'],
  ],
  'resources of remote servers': [
    'AGENT-20',
    definition('a', {
      mcpResourceUris: [
        'docs:file:///x',
        'docs:no-uri',
        'file:///x',
        'docs:a://b\n',
        'other:file:///x',
        'docs:file:///x',
        ...Array.from({ length: 27 }, (_, index) => `docs:a://${index}`),
      ],
    }),
    ['Error', 'too-long', 'mcpResourceUris'],
    ['Error', 'duplicate-entry', 'mcpResourceUris[5]'],
    ['Error', 'invalid-mcp-resource', 'mcpResourceUris[1]'],
    ['Error', 'invalid-mcp-resource', 'mcpResourceUris[2]'],
    ['Error', 'invalid-mcp-resource', 'mcpResourceUris[3]'],
    ['Error', 'mcp-server-not-found', 'mcpResourceUris[4]'],
  ],
  'as many of them as there may be': [
    'AGENT-20',
    definition('a', { mcpResourceUris: Array.from({ length: 32 }, (_, index) => `docs:a://${index}`) }),
  ],
  'fields that are given as they are without them': [
    'AGENT-20',
    definition('a', {
      model: { provider: 'demo', model: 'demo-1', responseCache: null },
      skillNames: [],
      mcpResourceUris: [],
      harness: null,
      compaction: null,
      memory: null,
    }),
  ],
};

test('AGENT-18 AGENT-20 AGENT-30 AGENT-34 validate answers 200 with every finding and saves nothing', async (context) => {
  const world = await openWorld(context);
  for (const [what, [rule, body, ...expected]] of Object.entries(cases))
    await context.test(`${rule} ${what}`, async () => {
      const report = await validate(world, body);
      const found = report.messages.map(({ severity, code, path }) => [severity, code, path]);
      assert.deepEqual(found, expected);
      assert.equal(report.valid, !expected.some(([severity]) => severity === 'Error'));
      assert.equal(report.inconclusive, false);
      for (const { message } of report.messages) assert.match(message, /^\S.*\.$|\?$/su);
    });
  assert.deepEqual((await world.call('list', {})).body, []);
});

test('AGENT-18 only an unreadable body, or one without name or model, is 400; a taken name is no finding', async (context) => {
  const world = await openWorld(context);
  await create(world, definition('taken'));
  assert.equal((await validate(world, definition('taken'))).valid, true);
  for (const body of [
    {},
    { name: 'a' },
    { name: 'a', model: { provider: 'demo' } },
    { ...definition('a'), parameters: {} },
    'x',
  ])
    assert.equal((await refusal(world.call('validate', {}, body))).code, 'validation-failed');
});

test('AGENT-11 a body that lacks a member and has an unknown one is refused for both, with their paths', async (context) => {
  const world = await openWorld(context);
  const errorsOf = async (operation: 'validate' | 'create', body: unknown) =>
    ((await refusal(world.call(operation, {}, body))).details.errors ?? []).map(({ path, message }) => [path, message]);
  const body = { name: 'a', modle: { provider: 'demo' }, parameters: [{ nam: 'p', kind: 'Text' }], version: 3 };
  for (const operation of ['validate', 'create'] as const)
    assert.deepEqual(await errorsOf(operation, body), [
      ['model', 'is required'],
      ['parameters[0].name', 'is required'],
      ['modle', '"modle" is not a known field. Did you mean model?'],
      ['parameters[0].nam', '"nam" is not a known field. Did you mean name?'],
    ]);
  const many = { name: 'a', parameters: Array.from({ length: 2000 }, () => ({ x: 1 })) };
  assert.ok((await errorsOf('validate', many)).length <= 60, 'what a caller repeats is not repeated to the caller');
});

test('AGENT-20 an unknown field that looks like a typo gets a suggestion', async (context) => {
  const world = await openWorld(context);
  const { messages } = await validate(world, definition('a', { toolName: [] }));
  assert.match(messages[0]?.message ?? '', /Did you mean toolNames\?/);
});

test('AGENT-20 the call graph with this definition in it: cycles, depth, approval of children', async (context) => {
  const world = await openWorld(context);
  await create(world, definition('d', { toolNames: ['pay'] }));
  await create(world, definition('c', { callableAgentNames: ['d'] }));
  await create(world, definition('b', { callableAgentNames: ['c'] }));
  await create(world, definition('a', { callableAgentNames: ['b'] }));
  const found = async (body: Record<string, unknown>) =>
    (await validate(world, body)).messages.map(({ code, path }) => [code, path]);
  assert.deepEqual(await found(definition('c', { callableAgentNames: ['d'] })), [
    ['child-needs-approval', 'callableAgentNames[0]'],
  ]);
  assert.deepEqual(await found(definition('top', { callableAgentNames: ['a'] })), [
    ['graph-too-deep', 'callableAgentNames'],
  ]);
  assert.deepEqual(await found(definition('top', { callableAgentNames: ['b', 'c'] })), []);
  const cycle = await validate(world, definition('d', { callableAgentNames: ['b'] }));
  assert.deepEqual(
    cycle.messages.map(({ code }) => code),
    ['call-cycle'],
  );
  assert.match(cycle.messages[0]?.message ?? '', /d → b → c → d/);
  const error = await refusal(world.call('save', { name: 'd' }, definition('d', { callableAgentNames: ['a'] })));
  assert.equal(error.code, 'definition-invalid');
});

test('AGENT-46 two agents whose tools would have one name collide', async (context) => {
  const world = await openWorld(context);
  await create(world, definition('a.b'));
  await create(world, definition('a_b'));
  const { messages } = await validate(world, definition('c', { callableAgentNames: ['a.b', 'a_b'] }));
  assert.deepEqual(
    messages.map(({ code, path }) => [code, path]),
    [['tool-name-collision', 'callableAgentNames[1]']],
  );
});

test("AGENT-33 shared instructions use this agent's parameters, and must be readable", async (context) => {
  const world = await openWorld(context);
  await create(
    world,
    definition('house', { instructions: 'We are {{firm}}.', parameters: [{ name: 'firm', kind: 'Text' }] }),
  );
  await create(world, definition('silent'));
  const found = async (more: Record<string, unknown>) =>
    (await validate(world, definition('a', more))).messages.map(({ code, path }) => [code, path]);
  assert.deepEqual(await found({ sharedInstructionsName: 'house' }), [
    ['undeclared-placeholder', 'sharedInstructionsName'],
  ]);
  assert.deepEqual(await found({ sharedInstructionsName: 'house', parameters: [{ name: 'firm', kind: 'Text' }] }), []);
  assert.deepEqual(await found({ sharedInstructionsName: 'silent' }), [
    ['shared-instructions-not-found', 'sharedInstructionsName'],
  ]);
  assert.deepEqual(await found({ sharedInstructionsName: 'a' }), [
    ['shared-instructions-not-found', 'sharedInstructionsName'],
  ]);
});

test('hostile definitions get findings, not failures', async (context) => {
  const world = await openWorld(context);
  const deep = (levels: number): unknown => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`);
  const bodies = [
    definition('a', { metadata: deep(50_000) }),
    withModel('a', { providerSettings: { 'demo.x': deep(50_000) } }),
    withModel('a', { responseFormat: { kind: 'JsonSchema', schema: { type: 'object', properties: deep(50_000) } } }),
    definition('a', { harness: deep(50_000) }),
    definition('a', { callableAgentNames: names(1000) }),
    definition('a', { toolNames: names(1000) }),
    definition('a', Object.fromEntries(names(40_000).map((name) => [name, 1]))),
    definition('a', {
      instructions: names(30_000)
        .map((name) => `{{${name}}}`)
        .join(''),
    }),
    definition('a', { callableAgentNames: ['\u0000', "'; drop table agents; --", '__proto__'] }),
    JSON.parse('{"name":"a","model":{"provider":"demo","model":"demo-1"},"__proto__":{"x":1}}'),
    definition('\ud800'),
  ];
  for (const body of bodies) {
    const report = await validate(world, body);
    assert.equal(report.valid, false);
    assert.ok(report.messages.length <= 1000);
    assert.equal((await refusal(world.call('create', {}, body))).code, 'definition-invalid');
  }
});

test('lists and names that no definition can have are refused unread, with the limit', async (context) => {
  const world = await openWorld(context);
  for (const [list, problem] of [
    [names(1001), 'must not have more than 1000 items'],
    [['a'.repeat(257)], 'must not have more than 256 characters'],
  ] as const)
    for (const property of ['callableAgentNames', 'toolNames', 'skillNames'])
      for (const verb of ['validate', 'create'] as const) {
        const { code, message } = await refusal(world.call(verb, {}, definition('a', { [property]: list })));
        assert.equal(code, 'validation-failed');
        assert.equal(message, `${property}${list.length === 1 ? '[0]' : ''} ${problem}.`);
      }
});

test('AGENT-11 what is saved is read back unchanged, whatever the characters', async (context) => {
  const world = await openWorld(context);
  const odd = {
    instructions: 'a\u0000b\u2028 \ud800 é 😀 $& $1',
    metadata: { 'naïve key': [1.5, null, { b: true }], big: 1e21 },
  };
  const created = await create(world, definition('odd', odd));
  const { body } = await world.call('get', { name: 'odd' });
  assert.deepEqual((body as { definition: unknown }).definition, created);
  // What no store holds has been replaced before anything was done with it.
  const stored = 'a\ufffdb\u2028 \ufffd é 😀 $& $1';
  assert.equal(created.instructions, stored);
  assert.equal((await save(world, { ...created })).instructions, stored);
});
