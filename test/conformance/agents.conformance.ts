import assert from 'node:assert/strict';
import { type Api, assertProblem, type Body, errorPaths, unique } from './api.ts';
import { agentGone, agentInForce } from './in-force.ts';
import { rule } from './rule.ts';
import { getRun } from './run-calls.ts';

const model = { provider: 'demo', model: 'demo-1' };
const codesOf = (report: Body): string[] => report.messages.map(({ code }: Body) => code);

const create = (api: Api, body: object) => api.post('/api/agents', { model, ...body });
const validate = async (api: Api, body: object): Promise<Body> => {
  const answer = await api.post('/api/agents/validate', { name: 'candidate', model, ...body });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

rule(
  'AGENT-1 AGENT-3 AGENT-4 AGENT-5',
  'code and stored agents are one list; code agents cannot be changed',
  async (all) => {
    const api = all.inTenant(unique('tenant'));
    for (const name of ['zeta', 'Alpha', 'alpha']) assert.equal((await create(api, { name })).status, 201);
    const { body } = await api.get('/api/agents');
    assert.deepEqual(
      body.map(({ name, origin, version }: Body) => [name, origin, version]),
      [
        ['Alpha', 'database', 1],
        ['alpha', 'database', 1],
        ['code-agent', 'code', 1],
        ['zeta', 'database', 1],
      ],
    );
    const code = (await api.get('/api/agents/code-agent')).body;
    assert.deepEqual([code.definition, code.isEditable, code.descriptor.updatedAt], [null, false, null]);
    const stored = (await api.get('/api/agents/zeta')).body;
    assert.deepEqual([stored.definition.name, stored.isEditable, stored.descriptor.origin], ['zeta', true, 'database']);
    for (const path of ['versions', 'versions/1/diff/1'])
      assertProblem(await api.get(`/api/agents/code-agent/${path}`), 404, 'agent-not-found');
    assertProblem(await api.put('/api/agents/code-agent', { name: 'code-agent', model }), 409, 'agent-code-defined');
    assertProblem(await api.del('/api/agents/code-agent'), 409, 'agent-code-defined');
    assertProblem(await api.post('/api/agents/code-agent/rollback', { version: 1 }), 409, 'agent-code-defined');
    assertProblem(await create(api, { name: 'code-agent' }), 409, 'agent-name-taken');
    const other = all.inTenant(unique('tenant'));
    assertProblem(await other.get('/api/agents/zeta'), 404, 'agent-not-found');
    assert.equal((await create(other, { name: 'zeta' })).status, 201, 'two tenants may use one name');
    assert.equal((await other.run('code-agent', 'Hi')).body.agentVersion, 1);
  },
);

rule(
  'AGENT-2 AGENT-8 AGENT-11',
  'a definition is created whole or not at all, with every mistake named',
  async (api) => {
    const name = unique('agent');
    const created = await create(api, { name, instructions: 'Be brief.', expectedVersion: 7 });
    assert.equal(created.status, 201, created.text);
    assert.equal(created.headers.get('location'), `/api/agents/${name}`);
    assert.deepEqual([created.body.version, created.body.origin, created.body.restoredFrom], [1, 'database', null]);
    assertProblem(await create(api, { name }), 409, 'agent-name-taken');
    const wrong = { name: unique('agent'), toolNames: ['gone'], tempo: 1, callableAgentNames: ['nobody'] };
    const problem = assertProblem(await create(api, wrong), 400, 'definition-invalid');
    assert.deepEqual(errorPaths(problem).sort(), ['callableAgentNames[0]', 'tempo', 'toolNames[0]']);
    assertProblem(await api.get(`/api/agents/${wrong.name}`), 404, 'agent-not-found');
    for (const bad of ['a b', '.a', '', 'x'.repeat(129), 'ä'])
      assertProblem(await create(api, { name: bad }), 400, 'definition-invalid');
    for (const body of [
      { name: unique('agent'), toolNames: 'add' },
      { name: unique('agent'), toolNames: null },
      { name: 7 },
      {},
    ])
      assertProblem(await create(api, body), 400, 'validation-failed');
    const large = await create(api, { name: unique('agent'), metadata: { a: 'x'.repeat(1024 * 1024) } });
    assertProblem(large, 413, 'payload-too-large');
    const again = await api.put(`/api/agents/${name}`, created.body);
    assert.equal(again.status, 200, 'a definition that was read can be sent back');
  },
);

rule('AGENT-9 AGENT-10 AGENT-14', 'every save appends a version and replaces the whole definition', async (api) => {
  const name = await api.agent({ instructions: 'One.', metadata: { a: 1 } });
  const save = (body: object) => api.put(`/api/agents/${name}`, { name, model, ...body });
  assert.equal((await save({ instructions: 'Two.' })).body.version, 2);
  const same = await save({ instructions: 'Two.' });
  assert.deepEqual([same.body.version, same.body.metadata], [3, {}]);
  assertProblem(await save({ expectedVersion: 2 }), 409, 'version-conflict');
  assert.equal((await save({ expectedVersion: 3 })).body.version, 4);
  assertProblem(await api.put(`/api/agents/${name}`, { name: 'other', model }), 400, 'name-mismatch');
  assertProblem(await save({ toolNames: ['gone'] }), 400, 'definition-invalid');
  const missing = unique('agent');
  assertProblem(await api.put(`/api/agents/${missing}`, { name: missing, model }), 404, 'agent-not-found');
  const saves = await Promise.all([1, 2, 3].map((n) => save({ instructions: `Save ${n}.` })));
  assert.deepEqual(saves.map(({ body }) => body.version).sort(), [5, 6, 7]);
  const versions = (await api.get(`/api/agents/${name}/versions`)).body;
  assert.deepEqual(
    versions.map(({ version }: Body) => version),
    [7, 6, 5, 4, 3, 2, 1],
  );
  assert.deepEqual([versions.at(-1).instructions, versions.at(-1).metadata], ['One.', { a: 1 }]);
  assertProblem(await api.get(`/api/agents/${missing}/versions`), 404, 'agent-not-found');
});

rule('AGENT-12 AGENT-46', 'delete takes all versions; what names the agent stays and says so', async (api) => {
  const child = await api.agent();
  const parent = await api.agent({ callableAgentNames: [child] });
  const { runId } = (await api.run(child, 'Hi')).body;
  assert.equal((await api.del(`/api/agents/${child}`)).status, 204);
  await agentGone(api, child);
  assertProblem(await api.del(`/api/agents/${child}`), 404, 'agent-not-found');
  assertProblem(await api.run(child, 'Hi'), 404, 'agent-not-found');
  assert.equal((await getRun(api, runId)).agentName, child);
  assertProblem(await api.run(parent, 'Hi'), 400, 'agent-not-compilable');
  const save = await api.put(`/api/agents/${parent}`, { name: parent, model, callableAgentNames: [child] });
  assertProblem(save, 400, 'definition-invalid');
  assert.equal((await create(api, { name: child })).body.version, 1);
  assert.equal((await api.run(parent, 'Hi')).status, 200);
});

rule(
  'AGENT-7 AGENT-15 AGENT-16',
  'rollback appends the old content; diff shows two versions and judges nothing',
  async (api) => {
    const name = await api.agent({ instructions: 'One.' });
    await api.put(`/api/agents/${name}`, { name, model: { ...model, model: 'demo-2' }, instructions: 'Two.' });
    await agentInForce(api, name, 2);
    assert.equal((await api.run(name, 'Hi')).body.agentVersion, 2);
    const back = await api.post(`/api/agents/${name}/rollback`, { version: 1 });
    assert.deepEqual(
      [back.status, back.body.version, back.body.restoredFrom, back.body.instructions],
      [200, 3, 1, 'One.'],
    );
    await agentInForce(api, name, 3);
    const run = (await api.run(name, 'Hi')).body;
    assert.deepEqual([run.agentVersion, run.modelId], [3, 'demo-1']);
    const missing = await api.post(`/api/agents/${name}/rollback`, { version: 9 });
    assert.equal(assertProblem(missing, 404, 'version-not-found').missingVersion, 9);
    assertProblem(
      await api.post(`/api/agents/${name}/rollback`, { version: 1, expectedVersion: 1 }),
      409,
      'version-conflict',
    );
    for (const version of [0, 1.5, '1', 2 ** 31])
      assertProblem(await api.post(`/api/agents/${name}/rollback`, { version }), 400, 'validation-failed');
    const diff = (a: number | string, b: number | string) => api.get(`/api/agents/${name}/versions/${a}/diff/${b}`);
    const { left, right } = (await diff(2, 1)).body;
    assert.deepEqual([left.version, left.instructions, right.version, right.instructions], [2, 'Two.', 1, 'One.']);
    assert.equal((await diff(1, 1)).status, 200);
    const gone = assertProblem(await diff(9, 8), 404, 'version-not-found');
    assert.deepEqual([gone.missingVersion, /9/.test(gone.detail)], [9, true]);
    for (const bad of [0, 'x', 2 ** 31]) assertProblem(await diff(bad, 1), 400, 'validation-failed');
  },
);

rule('AGENT-17 AGENT-18', 'validate finds everything, saves nothing and calls no provider', async (api) => {
  const name = unique('agent');
  const report = await validate(api, {
    name,
    toolNames: ['gone', 'add', 'add'],
    skillNames: ['nothing'],
    callableAgentNames: [name],
    instructions: '{{who}}',
    parameters: [{ name: 'used', kind: 'Text' }],
    mystery: 1,
  });
  assert.deepEqual([report.valid, report.inconclusive], [false, false]);
  for (const code of [
    'tool-not-found',
    'duplicate-entry',
    'skill-not-found',
    'call-cycle',
    'undeclared-placeholder',
    'unused-parameter',
    'unknown-field',
  ])
    assert.ok(codesOf(report).includes(code), `${code} among ${codesOf(report).join(', ')}`);
  assertProblem(await api.get(`/api/agents/${name}`), 404, 'agent-not-found');
  const unreachable = await validate(api, { model: { provider: 'catalog', model: 'large' } });
  assert.deepEqual([unreachable.valid, unreachable.messages], [true, []]);
  assert.equal((await validate(api, { name: 'code-agent' })).valid, true, 'a name that is taken is no finding');
  const unreadable = [{ name: 'a' }, { model }, { name: 'a', model: { provider: 'demo' } }, { name: 'a', model: [] }];
  for (const body of unreadable) assertProblem(await api.post('/api/agents/validate', body), 400, 'validation-failed');
});

const binding = (more: object) => ({ model: { ...model, ...more } });
const findings: readonly [what: string, definition: object, severity: string, code: string, path: string][] = [
  ['AGENT-21 provider', binding({ provider: 'nobody' }), 'Error', 'provider-not-registered', 'model.provider'],
  ['AGENT-21 catalog', binding({ provider: 'catalog', model: 'x' }), 'Warning', 'model-not-in-catalog', 'model.model'],
  ['AGENT-23', binding({ temperature: 2.1 }), 'Error', 'value-out-of-range', 'model.temperature'],
  ['AGENT-24', binding({ fallbacks: [model] }), 'Error', 'duplicate-entry', 'model.fallbacks[0]'],
  [
    'AGENT-25 key',
    binding({ providerSettings: { seed: 1 } }),
    'Error',
    'invalid-provider-setting',
    'model.providerSettings.seed',
  ],
  [
    'AGENT-25 owned',
    binding({ providerSettings: { 'demo.stream': true } }),
    'Error',
    'invalid-provider-setting',
    'model.providerSettings.demo.stream',
  ],
  [
    'AGENT-30 schema',
    binding({ responseFormat: { kind: 'JsonSchema' } }),
    'Error',
    'invalid-response-format',
    'model.responseFormat.schema',
  ],
  [
    'AGENT-30 root',
    binding({ responseFormat: { kind: 'JsonSchema', schema: { type: 'array' } } }),
    'Error',
    'invalid-response-format',
    'model.responseFormat.schema',
  ],
  [
    'AGENT-30 other kind',
    binding({ responseFormat: { kind: 'Json', schema: { type: 'object' } } }),
    'Error',
    'invalid-response-format',
    'model.responseFormat.schema',
  ],
  [
    'AGENT-30 name',
    binding({ responseFormat: { kind: 'JsonSchema', schema: { type: 'object' }, schemaName: 'a b' } }),
    'Error',
    'invalid-response-format',
    'model.responseFormat.schemaName',
  ],
  [
    'AGENT-29',
    binding({ provider: 'catalog', model: 'small', responseFormat: { kind: 'Json' } }),
    'Error',
    'structured-output-unsupported',
    'model.responseFormat',
  ],
  [
    'AGENT-26',
    binding({ responseCache: { enabled: true, lifetimeMs: 999 } }),
    'Error',
    'value-out-of-range',
    'model.responseCache.lifetimeMs',
  ],
  ['AGENT-32', { instructionsByCulture: { 'de-': 'x' } }, 'Error', 'invalid-culture', 'instructionsByCulture.de-'],
  ['AGENT-33', { instructions: '{{x}}' }, 'Error', 'undeclared-placeholder', 'instructions'],
  [
    'AGENT-34 name',
    {
      instructions: '{{a}}',
      parameters: [
        { name: 'a', kind: 'Text' },
        { name: 'a', kind: 'Text' },
      ],
    },
    'Error',
    'invalid-parameter',
    'parameters[1].name',
  ],
  [
    'AGENT-34 default',
    { instructions: '{{n}}', parameters: [{ name: 'n', kind: 'Number', defaultValue: '01' }] },
    'Error',
    'invalid-parameter',
    'parameters[0].defaultValue',
  ],
  ['AGENT-38 trigger', { compaction: { strategy: 'Truncation' } }, 'Error', 'invalid-compaction', 'compaction'],
  ['AGENT-38 window', { compaction: { strategy: 'ContextWindow' } }, 'Error', 'invalid-compaction', 'compaction'],
  ['AGENT-42 todo', { harness: {}, memory: { enableTodo: true } }, 'Error', 'feature-conflict', 'memory'],
  ['AGENT-42 search', { memory: { enableTextSearch: true } }, 'Error', 'feature-conflict', 'memory'],
  [
    'AGENT-42 compaction',
    { harness: {}, compaction: { strategy: 'SlidingWindow', triggerTurns: 4 } },
    'Error',
    'feature-conflict',
    'compaction',
  ],
  [
    'AGENT-44',
    { harness: { loop: { criteria: [{ kind: 'moonPhase' }] } } },
    'Error',
    'loop-criterion-not-found',
    'harness.loop',
  ],
  [
    'AGENT-48',
    { subAgents: { childDeadlineMs: 1000, waitTimeoutMs: 1000 } },
    'Error',
    'value-out-of-range',
    'subAgents.waitTimeoutMs',
  ],
];

rule(
  'AGENT-20 AGENT-21 AGENT-23 AGENT-24 AGENT-25 AGENT-26 AGENT-29 AGENT-30 AGENT-32 AGENT-33 AGENT-34 AGENT-38 AGENT-42 AGENT-44 AGENT-48',
  'each mistake has its finding, at its place',
  async (api) => {
    for (const [what, definition, severity, code, path] of findings) {
      const { messages, valid } = await validate(api, definition);
      const found = messages.filter((message: Body) => message.code === code && message.severity === severity);
      assert.ok(
        found.some((message: Body) => message.path?.startsWith(path)),
        `${what}: ${JSON.stringify(messages)}`,
      );
      assert.equal(valid, severity === 'Warning', what);
    }
  },
);

rule('AGENT-22 AGENT-54', 'providers are listed by name with their catalog, without a credential', async (api) => {
  const answer = await api.get('/api/models');
  const names = answer.body.map(({ name }: Body) => name);
  assert.deepEqual(names, names.toSorted());
  const catalog = answer.body.find(({ name }: Body) => name === 'catalog');
  assert.deepEqual([catalog.displayName, catalog.allowed], ['Catalog', true]);
  assert.ok(['Unknown', 'Healthy', 'Degraded', 'Unhealthy'].includes(catalog.status));
  assert.deepEqual(
    catalog.models.map((entry: Body) => [entry.name, entry.contextWindowTokens, entry.supportsStructuredOutput]),
    [
      ['small', 200, false],
      ['large', 100_000, null],
    ],
  );
  assert.equal(catalog.models[0].inputCostPerMillionTokens, 2);
  assert.deepEqual(answer.body.find(({ name }: Body) => name === 'demo').models, []);
  assert.doesNotMatch(answer.text, /apiKey|127\.0\.0\.1/i);
});

rule('AGENT-26', 'an equal call is answered from the store: no usage, no cost, tools still run', async (all) => {
  const api = all.inTenant(unique('tenant'));
  const cached = { model: { ...model, responseCache: { enabled: true } }, toolNames: ['context'] };
  const agent = await api.agent(cached);
  const first = (await api.run(agent, 'say cached')).body;
  const second = (await api.run(agent, 'say cached')).body;
  assert.deepEqual([second.output, first.usage === null], ['cached', false]);
  assert.ok(second.usage === null || second.usage.totalTokens === null, JSON.stringify(second.usage));
  const other = (await api.run(agent, 'say else')).body;
  assert.equal(other.usage.outputTokens > 0, true);
  const calls = [(await api.run(agent, 'call context')).body, (await api.run(agent, 'call context')).body];
  for (const { runId } of calls) assert.equal((await api.get(`/api/runs/${runId}/tools`)).body.length, 1);
  const foreign = all.inTenant(unique('tenant'));
  const fresh = (await foreign.run(await foreign.agent(cached), 'say cached')).body;
  assert.equal(fresh.usage.outputTokens > 0, true, 'another tenant has its own');
});

rule('AGENT-28 AGENT-29', 'an answer that is JSON is given as such when the format asks for it', async (api) => {
  const json = await api.agent(binding({ responseFormat: { kind: 'Json' } }));
  const body = (await api.run(json, 'say {"a":[1]}')).body;
  assert.deepEqual([body.output, body.structuredOutput], ['{"a":[1]}', { a: [1] }]);
  assert.equal((await api.run(json, 'say no JSON')).body.structuredOutput, null);
  const text = await api.agent(binding({ responseFormat: { kind: 'Text' } }));
  assert.equal((await api.run(text, 'say {"a":[1]}')).body.structuredOutput, null);
  const { definition } = (await api.get(`/api/agents/${text}`)).body;
  assert.deepEqual(definition.model.responseFormat.kind, 'Text');
  const none = (await api.get(`/api/agents/${await api.agent()}`)).body.definition;
  assert.equal(none.model.responseFormat, null);
});

rule(
  'AGENT-31 AGENT-33',
  'shared instructions stand before the own ones, with the parameters of the agent',
  async (api) => {
    const parameters = [{ name: 'city', kind: 'Text', defaultValue: 'Graz' }];
    const shared = await api.agent({ instructions: `${'x'.repeat(400)}{{city}}`, parameters });
    const estimate = async (definition: Record<string, unknown>): Promise<number> => {
      const name = await api.agent(definition);
      return (await api.post(`/api/agents/${name}/estimate`, { message: 'Hi' })).body.promptTokens;
    };
    const own = await estimate({ instructions: 'Be brief.' });
    assert.ok((await estimate({ instructions: 'Be brief.', sharedInstructionsName: shared, parameters })) > own);
    const undeclared = await create(api, { name: unique('agent'), sharedInstructionsName: shared });
    assertProblem(undeclared, 400, 'definition-invalid');
    const missing = await create(api, { name: unique('agent'), sharedInstructionsName: 'nobody' });
    assert.equal(assertProblem(missing, 400, 'definition-invalid').errors[0].path, 'sharedInstructionsName');
  },
);

rule('AGENT-36 AGENT-37', 'compaction shortens what is sent and says so; what is stored stays whole', async (api) => {
  const agent = await api.agent({
    compaction: { strategy: 'SlidingWindow', triggerTurns: 3, minimumPreservedTurns: 1 },
  });
  const sessionId = unique('session');
  const runs: Body[] = [];
  for (const text of ['one', 'two', 'three', 'four', 'five'])
    runs.push((await api.run(agent, { message: `say ${text.repeat(50)}`, sessionId })).body);
  const logs = await Promise.all(runs.map(({ runId }) => api.frames('GET', `/api/runs/${runId}/events`)));
  const compacted = logs.flat().filter(({ event }) => event === 'history.compacted');
  assert.ok(compacted.length > 0);
  const { strategy, messagesBefore, messagesAfter, tokensBefore, tokensAfter } = compacted[0]?.data ?? {};
  assert.equal(strategy, 'SlidingWindow');
  assert.ok(messagesAfter < messagesBefore && tokensAfter < tokensBefore);
  assert.equal((await api.get(`/api/sessions/${sessionId}`)).body.messages.length, 10);
});

rule('AGENT-41 TOOL-9', 'a harness adds tools, and each flag takes some away', async (api) => {
  const uses = async (harness: object, tool: string, args = '{}') => {
    const agent = await api.agent({ harness: { maxContextWindowTokens: 100_000, ...harness } });
    const { body } = await api.run(agent, `use ${tool} ${args}`);
    return (await api.get(`/api/runs/${body.runId}/tools`)).body[0].succeeded;
  };
  assert.equal(await uses({}, 'todo_list'), true);
  assert.equal(await uses({ disableTodo: true }, 'todo_list'), false);
  assert.equal(await uses({}, 'file_list'), true);
  assert.equal(await uses({ disableFileMemory: true }, 'file_list'), false);
  assert.equal(await uses({}, 'set_mode', '{"mode":"act"}'), true);
  assert.equal(await uses({ disableModes: true }, 'set_mode', '{"mode":"act"}'), false);
});

rule(
  'AGENT-43 AGENT-44 AGENT-45',
  'a loop goes on until its criteria are met or its ceiling is reached',
  async (api) => {
    const looping = (marker: string) => ({
      harness: {
        maxContextWindowTokens: 100_000,
        loop: { maxIterations: 3, criteria: [{ kind: 'completionMarker', marker }] },
      },
    });
    const events = async (marker: string) => {
      const { body } = await api.run(await api.agent(looping(marker)), 'say DONE');
      assert.equal(body.status, 'Completed');
      const log = await api.frames('GET', `/api/runs/${body.runId}/events`);
      return log.filter(({ event }) => event === 'loop.iteration-completed').map(({ data }) => data);
    };
    const met = await events('DONE');
    assert.deepEqual([met.length, met[0]?.continued, met[0]?.ceilingReached], [1, false, false]);
    const never = await events('NEVER SAID');
    assert.deepEqual(
      never.map(({ continued, ceilingReached }) => [continued, ceilingReached]),
      [
        [true, false],
        [true, false],
        [false, true],
      ],
    );
    assert.equal(never[0]?.hasFeedback, true);
  },
);

rule('AGENT-50 AGENT-51 AGENT-52', 'an estimate counts the prompt without a run', async (all) => {
  const api = all.inTenant(unique('tenant'));
  const agent = await api.agent({ model: { provider: 'catalog', model: 'small' }, instructions: 'Be brief.' });
  const estimate = (body: object, name = agent) => api.post(`/api/agents/${name}/estimate`, body);
  const { body } = await estimate({ message: 'Hello there' });
  assert.deepEqual([body.contextWindowTokens, body.allowedPromptTokens, body.wouldBeRejected], [200, 160, false]);
  const more = (await estimate({ message: 'Hello there', documents: [{ name: 'a', content: 'word '.repeat(500) }] }))
    .body;
  assert.ok(more.promptTokens > body.promptTokens + 400);
  assert.equal(more.wouldBeRejected, true);
  const withTools = await api.agent({
    model: { provider: 'catalog', model: 'small' },
    instructions: 'Be brief.',
    toolNames: ['add'],
  });
  assert.ok((await estimate({ message: 'Hello there' }, withTools)).body.promptTokens > body.promptTokens);
  const unknown = (await estimate({ message: 'Hi' }, await api.agent())).body;
  assert.deepEqual(
    [unknown.contextWindowTokens, unknown.allowedPromptTokens, unknown.wouldBeRejected],
    [null, null, false],
  );
  assertProblem(await estimate({ mesage: 'Hi' }), 400, 'validation-failed');
  assertProblem(await estimate({ message: 'Hi' }, 'nobody'), 404, 'agent-not-found');
  assert.deepEqual((await api.get('/api/runs')).body, []);
});

rule(
  'AGENT-20 AGENT-46',
  'tools and called agents must not share a name for the model; cycles are named',
  async (all) => {
    const api = all.inTenant(unique('tenant'));
    for (const name of ['a.b', 'a_b']) assert.equal((await create(api, { name })).status, 201);
    const collision = await validate(api, { callableAgentNames: ['a.b', 'a_b'] });
    assert.ok(codesOf(collision).includes('tool-name-collision'));
    assert.equal((await create(api, { name: 'top', callableAgentNames: ['a.b'] })).status, 201);
    const cycle = await api.put('/api/agents/a.b', { name: 'a.b', model, callableAgentNames: ['top'] });
    assertProblem(cycle, 400, 'definition-invalid');
    const deep = ['l1', 'l2', 'l3', 'l4'];
    for (const [index, name] of deep.entries())
      await create(api, { name, callableAgentNames: index === 0 ? [] : [deep[index - 1]] });
    assert.ok(codesOf(await validate(api, { callableAgentNames: ['l4'] })).includes('graph-too-deep'));
  },
);

rule('AGENT-48', 'a child that takes too long is ended, and the caller goes on', async (all) => {
  const api = all.inTenant(unique('tenant'));
  await create(api, { name: 'conformance.child' });
  const agent = await api.agent({ callableAgentNames: ['conformance.child'], subAgents: { childDeadlineMs: 100 } });
  const { body } = await api.run(agent, 'call the child: wait');
  assert.equal(body.status, 'Completed');
  const log = await api.frames('GET', `/api/runs/${body.runId}/events`);
  const timedOut = log.find(({ event }) => event === 'child.timed-out')?.data;
  assert.deepEqual([timedOut.agentName, timedOut.stage, timedOut.limitMs], ['conformance.child', 'Deadline', 100]);
});
