import assert from 'node:assert/strict';
import { type Answer, type Api, assertProblem, type Body, errorPaths, unique } from './api.ts';
import { eventually } from './eventually.ts';
import { approvalRulesInForce, inForce } from './in-force.ts';
import { rule } from './rule.ts';
import { cancel, ended, logOf, namesOf, open } from './run-calls.ts';

type Members = Record<string, unknown>;

const skillBody = (name: string, more: Members = {}): Members => ({
  name,
  description: `What ${name} does.`,
  instructions: `# ${name}\n\nDo it well.\n`,
  ...more,
});

const put = (api: Api, body: Members, path = body['name']): Promise<Answer> => api.put(`/api/skills/${path}`, body);

const save = async (api: Api, more: Members = {}): Promise<string> => {
  const name = unique('skill');
  const answer = await put(api, skillBody(name, more));
  assert.equal(answer.status, 201, answer.text);
  return name;
};

/** A tenant of its own: lists hold nothing of other tests. */
const ownTenant = (api: Api): Api => api.inTenant(unique('tenant'));

const sh = (content: string, parametersSchema: object | null = null, name = 'go'): Members => ({
  name,
  extension: 'sh',
  content,
  parametersSchema: parametersSchema === null ? null : JSON.stringify(parametersSchema),
});

const grant = async (api: Api, body: Members): Promise<Body> => {
  const answer = await api.post('/api/skill-script-grants', body);
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
};

const revoke = (api: Api, skillName: string, scriptName?: string): Promise<Answer> =>
  api.del(`/api/skill-script-grants/${skillName}${scriptName === undefined ? '' : `?scriptName=${scriptName}`}`);

const grants = async (api: Api): Promise<Body[]> => (await api.get('/api/skill-script-grants')).body;

/** One tool call that the model makes, and the answer, whose text is the result of the tool. */
const callTool = async (api: Api, agent: string, tool: string, args: Members): Promise<Body> => {
  const answer = await api.run(agent, `call ${tool} ${JSON.stringify(args)}`);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.body.status, 'Completed', answer.text);
  return answer.body;
};

const invocationsOf = async (api: Api, runId: string): Promise<Body[]> =>
  (await api.get(`/api/runs/${runId}/tools`)).body;

/** The only invocation of a run. */
const invocation = async (api: Api, runId: string): Promise<Body> => {
  const found = await invocationsOf(api, runId);
  assert.equal(found.length, 1);
  return found[0];
};

/** An agent that may run the scripts of its skills without asking. */
const trusted = async (api: Api, ...skillNames: string[]): Promise<string> => {
  const agent = await api.agent({ skillNames });
  const rule = await api.post('/api/approvals/rules', { agentName: agent, toolName: 'run_skill_script' });
  assert.equal(rule.status, 201, rule.text);
  await approvalRulesInForce(api);
  return agent;
};

/** A stored skill with one script, an agent that has it, and a grant. */
const scripted = async (api: Api, content: string, schema: object | null = null) => {
  const skillName = await save(api, { scripts: [sh(content, schema)] });
  const agent = await trusted(api, skillName);
  await grant(api, { skillName });
  const run = (args?: unknown, scriptName = 'go') =>
    callTool(api, agent, 'run_skill_script', {
      skillName,
      scriptName,
      ...(args === undefined ? {} : { arguments: args }),
    });
  return { skillName, agent, run };
};

const refusedText = 'The script could not be run.';

/** A call that a gate refused: one text for the model, the gate in the record. */
const assertRefused = async (api: Api, run: Body, gate: string): Promise<void> => {
  assert.equal(run.output, refusedText);
  const { succeeded, error } = await invocation(api, run.runId);
  assert.equal(succeeded, false);
  assert.match(error, new RegExp(`Gate "${gate}"`));
};

const findingsOf = async (api: Api, skillNames: readonly string[]): Promise<unknown[]> => {
  const model = { provider: 'demo', model: 'demo-1' };
  const { body } = await api.post('/api/agents/validate', { name: 'any', model, skillNames });
  return body.messages.map(({ severity, code }: Body) => [severity, code]);
};

rule('SKILL-1 SKILL-3 SKILL-17', 'a save replaces the skill, counts its version, and lists are whole', async (all) => {
  const api = ownTenant(all);
  const full = {
    compatibility: 'Needs a shell',
    license: 'MIT',
    allowedTools: 'Bash(git:*) Read',
    metadata: { author: 'Zoë' },
    resources: [
      { name: 'references/a.md', content: 'Grüezi 👋\r\n', description: 'A greeting', mediaType: 'text/markdown' },
    ],
    scripts: [{ ...sh('echo hi\n', { type: 'object' }), description: 'Says hi' }],
  };
  const first = await put(api, skillBody('zeta', full));
  assert.equal(first.status, 201, first.text);
  assert.match(first.headers.get('location') ?? '', /\/api\/skills\/zeta$/);
  const { id, tenantId, createdAt, updatedAt, ...rest } = first.body;
  assert.deepEqual(rest, { ...skillBody('zeta', full), enabled: true, version: 1 });
  assert.ok(id && tenantId && createdAt && updatedAt);
  const second = await put(api, skillBody('zeta', { enabled: false }));
  assert.deepEqual([second.status, second.headers.get('location')], [200, null]);
  const { version, enabled, resources, scripts, metadata, license } = second.body;
  assert.deepEqual([version, enabled, resources, scripts, metadata, license], [2, false, [], [], {}, null]);
  assert.deepEqual([second.body.id, second.body.createdAt], [id, createdAt]);
  assert.equal((await put(api, skillBody('alpha'))).status, 201);
  const listed = await api.get('/api/skills?take=1');
  assert.deepEqual(
    listed.body.map(({ name }: Body) => name),
    ['alpha', 'zeta'],
    'ordered by name, not paged',
  );
  assert.deepEqual(listed.body[1], second.body);
  assert.deepEqual((await api.get('/api/skills/zeta')).body, second.body);
});

rule('SKILL-3', 'concurrent saves have versions of their own, and the last one wins', async (api) => {
  const name = unique('skill');
  const saved = await Promise.all(
    ['one', 'two', 'three', 'four'].map((instructions) => put(api, skillBody(name, { instructions }))),
  );
  assert.deepEqual(saved.map(({ body }) => body.version).sort(), [1, 2, 3, 4]);
  assert.equal(saved.filter(({ status }) => status === 201).length, 1);
  const last = saved.find(({ body }) => body.version === 4);
  assert.deepEqual((await api.get(`/api/skills/${name}`)).body, last?.body);
});

rule('SKILL-2 SKILL-28', 'names are exact, and the skills of another tenant do not exist', async (all) => {
  const [mine, theirs] = [ownTenant(all), ownTenant(all)];
  await put(mine, skillBody('pdf'));
  const seen = (answer: Answer): Body => ({ ...assertProblem(answer, 404, 'skill-not-found'), requestId: '' });
  const [unknown, foreign, otherCase] = [
    seen(await theirs.get('/api/skills/nobody')),
    seen(await theirs.get('/api/skills/pdf')),
    seen(await mine.get('/api/skills/PDF')),
  ];
  const withoutPath = ({ instance: _instance, ...problem }: Body): Body => problem;
  assert.deepEqual(withoutPath(foreign), withoutPath(unknown));
  assert.deepEqual(withoutPath(otherCase), withoutPath(unknown));
  assertProblem(await theirs.del('/api/skills/pdf'), 404, 'skill-not-found');
  const same = await put(theirs, skillBody('pdf', { description: 'Another one.' }));
  assert.deepEqual([same.status, same.body.version], [201, 1]);
  assert.notEqual((await mine.get('/api/skills/pdf')).body.description, 'Another one.');
});

rule('SKILL-4', 'the path and the body name the same skill', async (api) => {
  const [path, name] = [unique('skill'), unique('skill')];
  assertProblem(await put(api, skillBody(name), path), 400, 'name-mismatch');
  for (const either of [path, name]) assert.equal((await api.get(`/api/skills/${either}`)).status, 404);
});

rule('SKILL-5 SKILL-8 SKILL-10', 'every fault is named, all in one answer, and nothing is written', async (api) => {
  const script = sh('echo');
  const faulty = skillBody('Two--Hyphens', {
    description: ' ',
    compatibility: 'x'.repeat(501),
    license: 'x'.repeat(257),
    metadata: { key: 'x'.repeat(1025) },
    resources: ['../up', '/root', 'a//b', 'a/../b', 'same', 'same'].map((name) => ({ name, content: '' })),
    scripts: [
      { ...script, name: '-first' },
      { ...script, name: 'same' },
      { ...script, name: 'same', parametersSchema: '{' },
      { ...script, name: 'list', parametersSchema: '{"type":"array"}' },
      { ...script, name: 'typo', parametersSchema: '{"type":"object","properties":{"a":{"type":"nubmer"}}}' },
      { ...script, name: 'loud', extension: 'SH' },
    ],
  });
  const problem = assertProblem(await put(api, faulty), 400, 'validation-failed');
  const paths = new Set(errorPaths(problem));
  const expected = ['name', 'description', 'compatibility', 'license', 'metadata.key'];
  for (const index of [0, 1, 2, 3, 5]) expected.push(`resources[${index}].name`);
  expected.push('scripts[0].name', 'scripts[2].name', 'scripts[5].extension');
  for (const index of [2, 3, 4]) expected.push(`scripts[${index}].parametersSchema`);
  assert.deepEqual([...paths].sort(), expected.sort());
  assert.equal((await api.get('/api/skills/Two--Hyphens')).status, 404);
  for (const name of ['', 'a'.repeat(65), '-a', 'a-', 'a b', 'ä']) {
    const answer = await put(api, skillBody(name), encodeURIComponent(name === '' ? 'x' : name));
    assert.equal(answer.status, 400, name);
  }
});

rule('SKILL-6', 'sizes are bytes; a limit is named with the size that was sent', async (api) => {
  const over = skillBody(unique('skill'), {
    instructions: 'ü'.repeat(32_769),
    resources: [{ name: 'big', content: 'x'.repeat(262_145) }],
    scripts: [sh('x'.repeat(65_537))],
  });
  const problem = assertProblem(await put(api, over), 400, 'validation-failed');
  const messages = problem.errors.map(({ path, message }: Body) => `${path}: ${message}`).join('\n');
  assert.match(messages, /^instructions: .*65536.*65538$/m);
  assert.match(messages, /^resources\[0\]\.content: .*262144.*262145$/m);
  assert.match(messages, /^scripts\[0\]\.content: .*65536.*65537$/m);
  const many = skillBody(unique('skill'), {
    resources: Array.from({ length: 21 }, (_, index) => ({ name: `r${index}`, content: '' })),
    scripts: Array.from({ length: 11 }, (_, index) => sh('x', null, `s${index}`)),
  });
  const counts = assertProblem(await put(api, many), 400, 'validation-failed');
  assert.deepEqual(errorPaths(counts), ['resources', 'scripts']);
  assert.match(counts.errors[0].message, /20.*21/);
  const name = await save(api, {
    description: '👋'.repeat(1024),
    instructions: 'ü'.repeat(32_768),
    resources: [{ name: 'full', content: 'x'.repeat(262_144) }],
    scripts: [sh('x'.repeat(65_536))],
  });
  assert.equal((await api.get(`/api/skills/${name}`)).body.instructions.length, 32_768);
});

rule('SKILL-7', 'a body over 16 MiB is refused as a whole', async (api) => {
  const raw = JSON.stringify(skillBody('big', { resources: [{ name: 'x', content: 'x'.repeat(16_777_216) }] }));
  const headers = { 'content-type': 'application/json' };
  assertProblem(await api.call('PUT', '/api/skills/big', undefined, { raw, headers }), 413, 'payload-too-large');
});

rule('SKILL-9', 'a script whose extension no interpreter has is refused', async (api) => {
  const scripts = [sh('echo'), { name: 'other', extension: 'py', content: 'print()' }];
  const problem = assertProblem(
    await put(api, skillBody(unique('skill'), { scripts })),
    400,
    'interpreter-not-registered',
  );
  assert.deepEqual(errorPaths(problem), ['scripts[1].extension']);
});

rule(
  'SKILL-12 SKILL-13',
  'a removed skill takes its grants, and its agents compile again once it is back',
  async (all) => {
    const api = ownTenant(all);
    const scripts = [sh('echo')];
    await put(api, skillBody('pdf', { scripts }));
    await grant(api, { skillName: 'pdf' });
    await grant(api, { skillName: 'pdf', scriptName: 'go' });
    const agent = await api.agent({ skillNames: ['pdf'] });
    assert.equal((await api.del('/api/skills/pdf')).status, 204);
    assertProblem(await api.del('/api/skills/pdf'), 404, 'skill-not-found');
    assert.deepEqual((await api.get(`/api/agents/${agent}`)).body.definition.skillNames, ['pdf']);
    await inForce(api, 'the skill is gone', async (process) => {
      const { body } = await process.run(agent, 'Hi');
      return body.code === 'agent-not-compilable';
    });
    const refused = await api.run(agent, 'Hi');
    assert.equal(refused.body.code, 'agent-not-compilable', refused.text);
    assert.match(refused.text, /skill-not-found|no skill/i);
    assert.match(refused.text, /pdf/);
    assert.ok((await grants(api)).every(({ revokedAt }) => revokedAt !== null));
    assert.equal((await put(api, skillBody('pdf', { scripts }))).body.version, 1);
    assert.equal((await api.run(agent, 'Hi')).status, 200);
    assert.equal((await grants(api)).filter(({ revokedAt }) => revokedAt === null).length, 0);
  },
);

rule('SKILL-14', 'an agent names at most ten skills, and only such that are there', async (api) => {
  const names = Array.from({ length: 11 }, (_, index) => `skill-${index}`);
  assert.ok(
    (await findingsOf(api, names)).some((finding) => JSON.stringify(finding) === '["Error","too-many-skills"]'),
  );
  assert.deepEqual(await findingsOf(api, ['nobody-has-it']), [['Error', 'skill-not-found']]);
  const model = { provider: 'demo', model: 'demo-1' };
  const created = await api.post('/api/agents', { name: unique('agent'), model, skillNames: ['nobody-has-it'] });
  const problem = assertProblem(created, 400, 'definition-invalid');
  assert.deepEqual(errorPaths(problem), ['skillNames[0]']);
  const many = await api.post('/api/agents', { name: unique('agent'), model, skillNames: names });
  assert.equal(many.status, 400);
});

rule('SKILL-15 SKILL-22 SKILL-23', 'a skill that is switched off is hidden from the model', async (api) => {
  const skillName = await save(api, { enabled: false, resources: [{ name: 'a', content: 'b' }] });
  assert.deepEqual(await findingsOf(api, [skillName]), [['Warning', 'skill-disabled']]);
  const [plain, agent] = [await api.agent(), await api.agent({ skillNames: [skillName] })];
  const tokens = async (name: string, process = api) =>
    (await process.post(`/api/agents/${name}/estimate`, { message: 'Hi' })).body.promptTokens as number;
  assert.equal(typeof (await tokens(plain)), 'number');
  assert.equal(await tokens(agent), await tokens(plain), 'neither listed nor with tools');
  const hidden = await callTool(api, agent, 'load_skill', { skillName });
  assert.match((await invocation(api, hidden.runId)).error, /no tool/i);
  await put(api, skillBody(skillName));
  const without = await tokens(plain);
  await inForce(api, 'the skill is shown', async (process) => (await tokens(agent, process)) > without);
});

rule('SKILL-16', 'an edit reaches the next run without saving the agent', async (api) => {
  const skillName = await save(api, { instructions: 'Old text.' });
  const agent = await api.agent({ skillNames: [skillName] });
  assert.equal((await callTool(api, agent, 'load_skill', { skillName })).output, 'Old text.');
  await put(api, skillBody(skillName, { instructions: 'New text.' }));
  await inForce(api, 'the edited skill is loaded', async (process) => {
    const { output } = await callTool(process, agent, 'load_skill', { skillName });
    return output === 'New text.';
  });
  assert.equal((await callTool(api, agent, 'load_skill', { skillName })).output, 'New text.');
});

rule('SKILL-11 SKILL-18 SKILL-19 SKILL-21', 'skills of the host serve every tenant, and only agents', async (all) => {
  for (const api of [all, ownTenant(all)]) {
    assert.deepEqual(await findingsOf(api, ['letters', 'house-style']), [], 'of a folder and of a module');
    assert.deepEqual(await findingsOf(api, ['too-deep']), [['Error', 'skill-not-found']]);
    assert.deepEqual(await findingsOf(api, ['another-name']), [['Error', 'skill-not-found']]);
    for (const name of ['letters', 'house-style']) {
      assertProblem(await api.get(`/api/skills/${name}`), 404, 'skill-not-found');
      assertProblem(await put(api, skillBody(name)), 409, 'skill-code-defined');
      assertProblem(await api.del(`/api/skills/${name}`), 409, 'skill-code-defined');
    }
    const names = (await api.get('/api/skills')).body.map(({ name }: Body) => name);
    assert.ok(!names.includes('letters') && !names.includes('house-style'));
    const agent = await api.agent({ skillNames: ['letters', 'house-style'] });
    const { output } = await callTool(api, agent, 'load_skill', { skillName: 'letters' });
    assert.match(output, /^Read references\/form\.md first\.\n/);
    assert.match(output, /references\/form\.md/);
    assert.match(output, /\bsay\b/);
    const form = { skillName: 'letters', resourceName: 'references/form.md' };
    assert.equal((await callTool(api, agent, 'read_skill_resource', form)).output, 'A letter has a date.\n');
    const { output: style } = await callTool(api, agent, 'load_skill', { skillName: 'house-style' });
    assert.equal(style, 'Short sentences.');
  }
});

rule(
  'SKILL-23 SKILL-24 SKILL-27',
  'tools reach the skills of the agent, and a mistake is told to the model',
  async (api) => {
    const mine = await save(api, { instructions: 'Mine.', resources: [{ name: 'a.txt', content: 'Grüezi' }] });
    const foreign = await save(api);
    const agent = await api.agent({ skillNames: [mine] });
    const loaded = await callTool(api, agent, 'load_skill', { skillName: mine });
    assert.match(loaded.output, /^Mine\.[\s\S]*a\.txt/);
    const { toolName, source, succeeded } = await invocation(api, loaded.runId);
    assert.deepEqual([toolName, source, succeeded], ['load_skill', `skill:${mine}`, true]);
    const read = await callTool(api, agent, 'read_skill_resource', { skillName: mine, resourceName: 'a.txt' });
    assert.equal(read.output, 'Grüezi');
    for (const [tool, args] of [
      ['load_skill', { skillName: foreign }],
      ['load_skill', { skillName: mine.toUpperCase() }],
      ['read_skill_resource', { skillName: mine, resourceName: 'b.txt' }],
      ['read_skill_resource', { skillName: foreign, resourceName: 'a.txt' }],
    ] as const) {
      const { runId, output } = await callTool(api, agent, tool, args);
      const failed = await invocation(api, runId);
      assert.equal(failed.succeeded, false);
      assert.equal(failed.error, output, 'the model reads what is wrong');
      assert.match(output, new RegExp(tool === 'load_skill' || args.skillName === foreign ? mine : 'a\\.txt'));
    }
    const without = await callTool(api, agent, 'run_skill_script', { skillName: mine, scriptName: 'go' });
    assert.match(without.output, /no tool/i, 'no skill has a script');
    const bare = await api.agent({ skillNames: [foreign] });
    const none = await callTool(api, bare, 'read_skill_resource', { skillName: foreign, resourceName: 'a.txt' });
    assert.match(none.output, /no tool/i, 'no skill has a resource');
  },
);

rule('SKILL-25 SCRIPT-12', 'a script asks first, and not when a gate would refuse it anyway', async (api) => {
  const skillName = await save(api, { scripts: [sh('cat', { type: 'object' })] });
  const agent = await api.agent({ skillNames: [skillName] });
  const sessionId = unique('session');
  const message = `call run_skill_script ${JSON.stringify({ skillName, scriptName: 'go', arguments: { n: 1 } })}`;
  const refused = await api.run(agent, { message, sessionId });
  assert.equal(refused.body.status, 'Completed');
  await assertRefused(api, refused.body, 'grant');
  assert.ok(!namesOf(await logOf(api, refused.body.runId)).includes('approval.requested'));
  await grant(api, { skillName });
  const asked = await api.run(agent, { message, sessionId });
  assert.equal(asked.body.status, 'AwaitingApproval', asked.text);
  assert.equal(asked.body.approvals[0].toolName, 'run_skill_script');
  assert.deepEqual(await invocationsOf(api, asked.body.runId), []);
  const approvals = [{ requestId: asked.body.approvals[0].requestId, approved: true }];
  const done = await api.run(agent, { sessionId, approvals });
  assert.equal(done.body.output, 'exit_code: 0\nstdout:\n{"n":1}\nstderr:');
  assert.equal((await invocation(api, done.body.runId)).source, `skill:${skillName}`);
  const again = await api.run(agent, { message, sessionId });
  assert.equal((await revoke(api, skillName)).status, 204);
  const late = [{ requestId: again.body.approvals[0].requestId, approved: true }];
  await assertRefused(api, (await api.run(agent, { sessionId, approvals: late })).body, 'grant');
});

rule('GRANT-2 GRANT-7 GRANT-8 GRANT-9', 'a grant covers what it names, and is revoked as it was given', async (api) => {
  const { skillName, run } = await scripted(api, 'echo one');
  const two = [sh('echo one changed'), sh('echo two', null, 'later')];
  await put(api, skillBody(skillName, { scripts: two }));
  assert.match((await run()).output, /one changed/, 'tied to the name, not to the content');
  assert.match((await run({}, 'later')).output, /two/, 'a script that came later');
  await grant(api, { skillName, scriptName: 'later' });
  assert.equal((await revoke(api, skillName, 'later')).status, 204);
  assertProblem(await revoke(api, skillName, 'later'), 404, 'not-found');
  assert.match((await run({}, 'later')).output, /two/, 'that of the skill is still there');
  await grant(api, { skillName, scriptName: 'later' });
  assertProblem(await revoke(ownTenant(api), skillName), 404, 'not-found');
  assert.equal((await revoke(api, skillName)).status, 204);
  assertProblem(await revoke(api, skillName), 404, 'not-found');
  await assertRefused(api, await run(), 'grant');
  assert.match((await run({}, 'later')).output, /two/, 'that of the script alone is still there');
});

rule('GRANT-3 GRANT-4', 'a grant ends in the future and names what is there', async (api) => {
  const skillName = await save(api, { scripts: [sh('echo')] });
  const refused = async (body: Members, code: string, path: string) => {
    const problem = assertProblem(await api.post('/api/skill-script-grants', body), 400, code);
    assert.deepEqual(errorPaths(problem), [path]);
  };
  await refused({ skillName, expiresAt: '2001-01-01T00:00:00Z' }, 'expires-at-not-in-future', 'expiresAt');
  await refused({ skillName: 'nobody-has-it' }, 'validation-failed', 'skillName');
  await refused({ skillName, scriptName: 'gone' }, 'validation-failed', 'scriptName');
  const open = await grant(api, { skillName, expiresAt: null, scriptName: null });
  assert.deepEqual([open.expiresAt, open.scriptName, open.revokedAt], [null, null, null]);
  assert.equal((await grant(api, { skillName: 'letters', scriptName: 'say' })).skillName, 'letters');
});

rule(
  'GRANT-5 GRANT-6 SKILL-28',
  'one active grant for a scope; the list keeps all of the tenant, newest first',
  async (all) => {
    const api = ownTenant(all);
    await put(api, skillBody('pdf', { scripts: [sh('echo')] }));
    const first = await grant(api, { skillName: 'pdf' });
    const script = await grant(api, { skillName: 'pdf', scriptName: 'go' });
    const second = await grant(api, { skillName: 'pdf', expiresAt: '2999-01-01T00:00:00Z' });
    assert.equal(new Date(second.expiresAt).getUTCFullYear(), 2999);
    const listed = (await grants(api)).map(({ id, revokedAt }) => [id, revokedAt === null]);
    assert.deepEqual(listed, [
      [second.id, true],
      [script.id, true],
      [first.id, false],
    ]);
    assert.deepEqual(await grants(ownTenant(all)), []);
  },
);

rule('GRANT-7', 'a grant authorizes nothing once it has expired', async (api) => {
  const { skillName, run } = await scripted(api, 'echo');
  await grant(api, { skillName, expiresAt: new Date(Date.now() + 400).toISOString() });
  const ended = await eventually('the grant has expired', async () => {
    const answer = await run();
    return answer.output === refusedText ? answer : null;
  });
  await assertRefused(api, ended, 'grant');
});

rule('SKILL-28 SCRIPT-7', 'a script of the host needs a grant in each tenant', async (all) => {
  const [mine, theirs] = [ownTenant(all), ownTenant(all)];
  const say = { skillName: 'letters', scriptName: 'say' };
  await grant(mine, { skillName: 'letters' });
  for (const api of [mine, theirs]) {
    const run = await callTool(api, await trusted(api, 'letters'), 'run_skill_script', say);
    if (api === mine) assert.equal(run.output, 'exit_code: 0\nstdout:\n{}\nstderr:');
    else await assertRefused(api, run, 'grant');
  }
});

rule(
  'SCRIPT-6 SCRIPT-8 SCRIPT-9',
  'a closed gate has one text for the model and its reason in the record',
  async (all) => {
    const api = ownTenant(all);
    await grant(api, { skillName: 'letters' });
    const agent = await trusted(api, 'letters');
    const foreign = { skillName: 'letters', scriptName: 'foreign' };
    await assertRefused(api, await callTool(api, agent, 'run_skill_script', foreign), 'interpreter');
    const schema = {
      type: 'object',
      properties: { n: { type: 'integer' } },
      required: ['n'],
      additionalProperties: false,
    };
    const strict = await scripted(api, 'cat', schema);
    assert.match((await strict.run({ n: 7 })).output, /^\{"n":7\}$/m);
    for (const args of [undefined, null, {}, { n: 'x' }, { n: 1, more: 2 }])
      await assertRefused(api, await strict.run(args), 'arguments');
    const none = await scripted(api, 'cat');
    for (const args of [undefined, null, {}]) assert.match((await none.run(args)).output, /^\{\}$/m);
    await assertRefused(api, await none.run({ n: 1 }), 'arguments');
    const long = await scripted(api, 'cat', { type: 'object' });
    await assertRefused(api, await long.run({ text: 'x'.repeat(200) }), 'arguments');
    await put(api, skillBody(long.skillName, { scripts: [{ name: 'go', extension: 'gone', content: 'x' }] }));
    await assertRefused(api, await long.run(), 'interpreter');
    const missing = await long.run({}, 'nothing');
    assert.match(missing.output, /no such script/i);
  },
);

rule('SCRIPT-13 SCRIPT-14 SCRIPT-15 SCRIPT-16 SCRIPT-17', 'what a script gets, and what comes back', async (api) => {
  const source = [
    'cat; echo',
    'cat data/in.txt; echo',
    'ls -A . scripts',
    'stat -c %a .',
    '[ "$PWD" -ef "$ACP_SKILL_TEMP" ] && echo same folder',
    'echo left > left.txt',
    'env | cut -d= -f1 | sort | tr "\\n" " "; echo',
    'echo "[$0] [$#] [$ACP_SKILL_NAME]"',
    'echo problem >&2',
    'exit 3',
  ].join('\n');
  const skillName = await save(api, {
    resources: [{ name: 'data/in.txt', content: 'ä resource' }],
    scripts: [sh(source, { type: 'object' })],
  });
  await grant(api, { skillName });
  const agent = await trusted(api, skillName);
  for (const _ of [1, 2]) {
    const run = await callTool(api, agent, 'run_skill_script', {
      skillName,
      scriptName: 'go',
      arguments: { b: 'ü; $(id)', a: [1] },
    });
    assert.match(run.output, /^exit_code: 3\nstdout:\n/);
    assert.match(run.output, /\nstderr:\nproblem$/);
    const lines: string[] = run.output.split('\n');
    assert.deepEqual(JSON.parse(lines[2] ?? ''), { a: [1], b: 'ü; $(id)' });
    assert.equal(lines[3], 'ä resource');
    assert.ok(!lines.includes('left.txt'), 'the folder is fresh each time');
    assert.ok(lines.includes('go.sh') && lines.includes('700') && lines.includes('same folder'));
    const variables =
      lines
        .find((line) => line.includes('ACP_SKILL_NAME '))
        ?.trim()
        .split(' ') ?? [];
    const ofShell = ['PWD', 'OLDPWD', 'SHLVL', '_'];
    assert.deepEqual(
      variables.filter((name) => !ofShell.includes(name) && name !== 'HOME'),
      ['ACP_SKILL_NAME', 'ACP_SKILL_TEMP', 'PATH'],
      'no secret of the service, though the list names one',
    );
    assert.match(run.output, new RegExp(`^\\[.*scripts/go\\.sh\\] \\[0\\] \\[${skillName}\\]$`, 'm'));
    const { succeeded, error } = await invocation(api, run.runId);
    assert.deepEqual([succeeded, error], [true, null], 'another exit code is an ordinary result');
  }
});

rule(
  'SCRIPT-16 SCRIPT-19 SCRIPT-20',
  'input that nobody reads, too much output, and bytes that are no text',
  async (api) => {
    const { run } = await scripted(api, "exec 0<&-; printf 'a\\377b\\n'", { type: 'object' });
    assert.equal((await run({ text: 'x'.repeat(100) })).output, 'exit_code: 0\nstdout:\na\uFFFDb\nstderr:');
    const source = "head -c 300000 /dev/zero | tr '\\0' x; head -c 1000 /dev/zero | tr '\\0' y >&2; exit 7";
    const { output } = await (await scripted(api, source)).run();
    assert.match(output, /^exit_code: 7\n/);
    assert.match(output, /\[output truncated: 299000 bytes omitted\]/);
    assert.equal((output.match(/^[xy]+$/gm) ?? []).join('').length, 2000, 'both streams together');
  },
);

rule('SCRIPT-18', 'a script past its time is ended, and says so; so it is with its run', async (api) => {
  const { agent, skillName, run } = await scripted(api, 'echo started; sleep 600');
  const late = await run();
  assert.match(late.output, /timed out after 3000 ms/);
  assert.ok(!late.output.includes('started'), 'the result says only that');
  const { timedOut, succeeded } = await invocation(api, late.runId);
  assert.deepEqual([timedOut, succeeded], [true, false]);
  const message = `call run_skill_script ${JSON.stringify({ skillName, scriptName: 'go' })}`;
  const going = await open(api, agent, { message });
  assert.equal((await cancel(api, going.runId)).status, 202);
  await going.rest();
  assert.equal((await ended(api, going.runId)).status, 'Canceled');
});

rule(
  'SCRIPT-11',
  'more scripts than places wait for their turn, and none is refused',
  async (all) => {
    const api = ownTenant(all);
    const place = `/tmp/acp-${unique('place')}`;
    const { run } = await scripted(api, `mkdir ${place} || exit 1; sleep 0.3; rmdir ${place}`);
    const runs = await Promise.all([run(), run(), run()]);
    for (const { output } of runs) assert.match(output, /^exit_code: 0\n/, 'one at a time');
  },
  { perProcess: 'SCRIPT-11: so many scripts at a time per process of the service' },
);

rule('SCRIPT-4', 'no operation changes a setting of scripts', async (api) => {
  const document = (await api.get('/openapi.json')).body;
  const writes = Object.entries(document.paths as Record<string, Members>).filter(
    ([path, methods]) => /script|setting|config/i.test(path) && Object.keys(methods).some((name) => name !== 'get'),
  );
  assert.deepEqual(
    writes.map(([path]) => path),
    ['/api/skill-script-grants', '/api/skill-script-grants/{skillName}'],
  );
  for (const member of ['Enabled', 'allowStoredScripts', 'interpreters', 'timeout'])
    assertProblem(await put(api, skillBody(unique('skill'), { [member]: true })), 400, 'validation-failed');
});

const settings = { 'Host:SkillScripts:Register': 'false', 'Service:Skills:Scripts:Enabled': 'true' };

rule(
  'SCRIPT-1 SCRIPT-3 GRANT-1 SKILL-9 SKILL-23',
  'without the registration nothing runs, whatever the settings say',
  async (api) => {
    const refused = await api.post('/api/skill-script-grants', {
      skillName: 'nobody',
      expiresAt: '2001-01-01T00:00:00Z',
    });
    assertProblem(refused, 409, 'script-execution-disabled');
    const skillName = await save(api, { scripts: [sh('echo')] });
    const agent = await trusted(api, skillName);
    const { output } = await callTool(api, agent, 'run_skill_script', { skillName, scriptName: 'go' });
    assert.match(output, /no tool/i);
    assert.match((await callTool(api, agent, 'load_skill', { skillName })).output, /Do it well/);
  },
  { settings },
);

rule(
  'SCRIPT-6',
  'a script of a stored skill does not run unless the host allows it; one of the host does',
  async (api) => {
    const { run } = await scripted(api, 'echo');
    await assertRefused(api, await run(), 'switched on');
    await grant(api, { skillName: 'letters' });
    const say = { skillName: 'letters', scriptName: 'say' };
    const agent = await trusted(api, 'letters');
    assert.match((await callTool(api, agent, 'run_skill_script', say)).output, /^exit_code: 0\n/);
  },
  { settings: { 'Service:Skills:Scripts:AllowStoredScripts': 'false' } },
);
