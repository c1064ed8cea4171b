import assert from 'node:assert/strict';
import { forEachService } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { refusal } from '../runs/run-calls.ts';
import { hashOf, save, skill } from './skill-bodies.ts';

const interpreters = { Skills: { Scripts: { Interpreters: { sh: '/bin/sh' } } } };

forEachService('SKILL-1 SKILL-3 SKILL-17 a save replaces the whole skill and counts its version', async (open) => {
  const app = await open({ service: interpreters, host: { Prefix: '/base' } });
  const full = skill('pdf', {
    compatibility: 'Needs a shell',
    license: 'MIT',
    allowedTools: 'Bash(git:*) Read',
    metadata: { author: 'Ada', version: '1.0' },
    resources: [
      { name: 'references/zürich.md'.replace('ü', 'ue'), content: 'Grüezi 👋\r\n', description: 'A greeting' },
      { name: 'a.json', content: '{}', mediaType: 'application/json' },
    ],
    scripts: [{ name: 'go', extension: 'sh', content: 'echo hi\n', parametersSchema: '{"type":"object"}' }],
  });
  const first = await save(app, full);
  assert.equal(first.status, 201);
  assert.equal(first.headers['location'], '/base/api/skills/pdf');
  assert.equal(first.version, 1);
  assert.equal(first.enabled, true);
  assert.equal(first.allowedTools, 'Bash(git:*) Read');
  assert.deepEqual(first.metadata, { author: 'Ada', version: '1.0' });
  assert.deepEqual(first.resources, [
    { name: 'references/zuerich.md', content: 'Grüezi 👋\r\n', description: 'A greeting', mediaType: 'text/plain' },
    { name: 'a.json', content: '{}', description: null, mediaType: 'application/json' },
  ]);
  const second = await save(app, skill('pdf', { enabled: false }));
  assert.deepEqual([second.status, second.version, second.enabled], [200, 2, false]);
  assert.equal(second.headers['location'], undefined);
  assert.deepEqual([second.resources, second.scripts, second.metadata], [[], [], {}]);
  assert.equal(second.id, first.id);
  assert.equal(second.createdAt, first.createdAt);
  await save(app, skill('abc'));
  const listed = (await app.client.skills.list({})).body;
  assert.deepEqual(
    listed.map(({ name, enabled }) => [name, enabled]),
    [
      ['abc', true],
      ['pdf', false],
    ],
  );
  const { status: _status, headers: _headers, ...definition } = second;
  assert.deepEqual((await app.client.skills.get({ params: { name: 'pdf' } })).body, definition);
});

forEachService('SKILL-2 SKILL-12 an unknown skill is 404, a removed one too', async (open) => {
  const app = await open({});
  const unknown = await refusal(app.client.skills.get({ params: { name: 'No such!' } }));
  assert.deepEqual([unknown.status, unknown.code], [404, 'skill-not-found']);
  await save(app, skill('pdf'));
  const otherCase = await refusal(app.client.skills.get({ params: { name: 'PDF' } }));
  assert.equal(otherCase.detail, unknown.detail, 'one body for every unknown name');
  await app.client.skills.remove({ params: { name: 'pdf' } });
  assert.equal((await refusal(app.client.skills.remove({ params: { name: 'pdf' } }))).status, 404);
  assert.equal((await save(app, skill('pdf'))).version, 1, 'a skill saved again begins anew');
});

forEachService('SKILL-28 skills belong to their tenant', async (open) => {
  const app = await open({
    token: 'a-long-enough-shared-token',
    host: { AuthToken: 'a-long-enough-shared-token', Tenancy: { Enabled: true } },
  });
  await save({ client: app.inTenant('other') }, skill('pdf'));
  assert.equal((await refusal(app.client.skills.get({ params: { name: 'pdf' } }))).status, 404);
  assert.deepEqual((await app.client.skills.list({})).body, []);
  assert.equal((await save(app, skill('pdf'))).status, 201);
});

forEachService('SKILL-4 SKILL-11 the names in path and body are one', async (open) => {
  const app = await open({});
  const problem = await refusal(app.client.skills.save({ params: { name: 'other' }, body: skill('pdf') }));
  assert.deepEqual([problem.status, problem.code], [400, 'name-mismatch']);
  assert.deepEqual((await app.client.skills.list({})).body, []);
});

forEachService('SKILL-5 SKILL-6 SKILL-8 SKILL-10 every fault is named, all in one answer', async (open) => {
  const app = await open({ service: interpreters });
  const faulty = skill('Pdf--x', {
    description: ' ',
    instructions: 'ü'.repeat(32_769),
    compatibility: '',
    license: 'x'.repeat(257),
    allowedTools: 'x'.repeat(1025),
    metadata: { key: 'x'.repeat(1025) },
    resources: [
      { name: '../up', content: '' },
      { name: '/root', content: '' },
      { name: 'a//b', content: '' },
      { name: 'a/./b', content: '' },
      { name: 'fine', content: 'x'.repeat(262_145) },
      { name: 'fine', content: '' },
      { name: 'fine/below', content: '' },
      { name: 'image', content: '', mediaType: 'image/png' },
      { name: 'back\\slash', content: '' },
    ],
    scripts: [
      { name: '-x', extension: 'sh', content: 'x' },
      { name: 'a', extension: 'SH', content: 'x' },
      { name: 'b', extension: 'sh', content: '' },
      { name: 'b', extension: 'sh', content: 'x', parametersSchema: '{' },
      { name: 'c', extension: 'sh', content: 'x'.repeat(65_537), parametersSchema: '{"type":"array"}' },
      { name: 'c.sh', extension: 'sh', content: 'x' },
    ],
  });
  const problem = await refusal(app.client.skills.save({ params: { name: 'Pdf--x' }, body: faulty }));
  assert.deepEqual([problem.status, problem.code], [400, 'validation-failed']);
  assert.deepEqual(
    problem.errors?.map(({ path }) => path),
    [
      'name',
      'description',
      'instructions',
      'compatibility',
      'license',
      'allowedTools',
      'metadata.key',
      'resources[0].name',
      'resources[1].name',
      'resources[2].name',
      'resources[3].name',
      'resources[4].content',
      'resources[5].name',
      'resources[7].mediaType',
      'resources[8].name',
      'resources[6].name',
      'scripts[0].name',
      'scripts[1].extension',
      'scripts[2].content',
      'scripts[3].name',
      'scripts[3].parametersSchema',
      'scripts[4].content',
      'scripts[4].parametersSchema',
      'scripts[5].name',
    ],
  );
  const instructions = problem.errors?.find(({ path }) => path === 'instructions');
  assert.equal(
    instructions?.message,
    'must have at most 65536 bytes (Service:Skills:MaxInstructionsLength), and has 65538',
  );
  assert.deepEqual((await app.client.skills.list({})).body, []);
});

forEachService('SKILL-6 twenty-one resources and eleven scripts are too many', async (open) => {
  const app = await open({ service: interpreters });
  const body = skill('many', {
    resources: Array.from({ length: 21 }, (_, index) => ({ name: `r${index}`, content: '' })),
    scripts: Array.from({ length: 11 }, (_, index) => ({ name: `s${index}`, extension: 'sh', content: 'x' })),
  });
  const problem = await refusal(app.client.skills.save({ params: { name: 'many' }, body }));
  assert.deepEqual(problem.errors, [
    { path: 'resources', message: 'must have at most 20 entries (Service:Skills:MaxResourcesPerSkill), and has 21' },
    {
      path: 'scripts',
      message: 'must have at most 10 entries (Service:Skills:Scripts:MaxScriptsPerSkill), and has 11',
    },
  ]);
});

forEachService(
  'SKILL-5 SKILL-6 a resource that is no text counts by its bytes and comes back as it was',
  async (open) => {
    const resource = (size: number) => ({
      name: 'logo.png',
      mediaType: 'image/png',
      content: Buffer.alloc(size, 0xff).toString('base64'),
      encoding: 'base64' as const,
    });
    const app = await open();
    assert.equal((await save(app, skill('fits', { resources: [resource(262_144)] }))).status, 201);
    const { body } = await app.client.skills.get({ params: { name: 'fits' } });
    assert.deepEqual(body.resources, [{ ...resource(262_144), description: null }]);
    const over = await refusal(save(app, skill('over', { resources: [resource(262_145)] })));
    assert.match(over.errors?.[0]?.message ?? '', /at most 262144 bytes .*, and has 262145/);
    const broken = await refusal(save(app, skill('broken', { resources: [{ ...resource(3), content: 'no base64' }] })));
    assert.deepEqual(
      broken.errors?.map(({ path }) => path),
      ['resources[0].content'],
    );
  },
);

forEachService('SKILL-6 what is exactly at its limit is saved', async (open) => {
  const app = await open({ service: interpreters });
  const full = skill('a'.repeat(64), {
    description: '👋'.repeat(1024),
    instructions: 'x'.repeat(65_536),
    resources: Array.from({ length: 20 }, (_, index) => ({ name: `r/${index}.txt`, content: 'y'.repeat(262_144) })),
    scripts: [{ name: 'x'.repeat(128), extension: 'sh', content: 'z'.repeat(65_536) }],
  });
  assert.equal((await save(app, full)).status, 201);
});

forEachService('SKILL-7 a body over 16 MiB is 413', async (open, _t, transport) => {
  const app = await open({});
  if (transport === 'in process') return;
  const body = skill('big', { resources: [{ name: 'x', content: 'x'.repeat(16_777_216) }] });
  const problem = await refusal(app.client.skills.save({ params: { name: 'big' }, body }));
  assert.deepEqual([problem.status, problem.code], [413, 'payload-too-large']);
});

forEachService(
  'SKILL-9 a script without interpreter is refused; with one it is saved while execution is off',
  async (open) => {
    const app = await open({ service: interpreters });
    const scripts = [
      { name: 'one', extension: 'sh', content: 'echo' },
      { name: 'two', extension: 'py', content: 'print()' },
    ];
    const body = skill('pdf', { scripts });
    const problem = await refusal(app.client.skills.save({ params: { name: 'pdf' }, body }));
    assert.deepEqual([problem.status, problem.code], [400, 'interpreter-not-registered']);
    assert.deepEqual(problem.errors, [
      {
        path: 'scripts[1].extension',
        message:
          'is py, which no program of the host runs: Service:Skills:Scripts:Interpreters:py must be the absolute path of one',
      },
    ]);
    assert.equal((await save(app, skill('pdf', { scripts: scripts.slice(0, 1) }))).status, 201);
  },
);

forEachService('SKILL-3 concurrent saves get versions of their own, the last one wins', async (open) => {
  const app = await open({});
  const saved = await Promise.all(
    Array.from({ length: 8 }, (_, index) => save(app, skill('pdf', { instructions: `text ${index}` }))),
  );
  assert.deepEqual(
    saved.map(({ version }) => version).sort((a, b) => a - b),
    [1, 2, 3, 4, 5, 6, 7, 8],
  );
  const last = saved.find(({ version }) => version === 8);
  assert.equal((await app.client.skills.get({ params: { name: 'pdf' } })).body.instructions, last?.instructions);
});

forEachService('AUDIT-12 saves and removals are audited with contents as size and hash', async (open) => {
  const app = await open({ service: interpreters });
  const scripts = [{ name: 'go', extension: 'sh', content: 'echo secret-of-script' }];
  const resources = [{ name: 'r.txt', content: 'secret-of-resource' }];
  await save(app, skill('pdf', { scripts, resources, instructions: 'secret-of-text' }));
  await save(app, skill('pdf'));
  await app.client.skills.remove({ params: { name: 'pdf' } });
  const entries = await trail(app);
  assert.deepEqual(
    entries.map(({ action, entity, before, after }) => [action, entity, before?.version, after?.version]),
    [
      ['skill.save', 'skill:pdf', undefined, 1],
      ['skill.save', 'skill:pdf', 1, 2],
      ['skill.delete', 'skill:pdf', 2, undefined],
    ],
  );
  assert.deepEqual(entries[0]?.after.instructions, hashOf('secret-of-text'));
  assert.deepEqual(entries[0]?.after.scripts[0].content, hashOf('echo secret-of-script'));
  assert.deepEqual(entries[0]?.after.resources[0].content, hashOf('secret-of-resource'));
  assert.ok(!JSON.stringify(entries).includes('secret-of'));
});
