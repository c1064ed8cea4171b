import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createFolder, helloAgent } from './support.ts';

interface Applied {
  readonly name: string | null;
  readonly action: string;
  readonly version: number | null;
  readonly file: string;
  readonly line: number | null;
  readonly errors?: readonly { readonly path: string; readonly message: string; readonly line: number }[];
}

const summary = (stdout: string): string[] =>
  (JSON.parse(stdout) as Applied[]).map(({ name, action, version }) => `${action} ${name} ${version ?? '-'}`);

const agent = (name: string, more = ''): string => `name: ${name}\nmodel: { provider: demo, model: m }\n${more}`;

describe('agents apply', () => {
  test('is idempotent: unchanged content appends no version, changed content appends one', async (t) => {
    const folder = createFolder(t);
    await folder.serve();
    const apply = () => folder.acp(['agents', 'apply', '-f', 'hello.yaml', '--json']);
    assert.deepEqual(summary((await apply()).stdout), ['created hello 1']);
    assert.deepEqual(summary((await apply()).stdout), ['unchanged hello 1']);
    folder.write('hello.yaml', `${helloAgent}displayName: Hello\n`);
    assert.deepEqual(summary((await apply()).stdout), ['updated hello 2']);
    // Another spelling of the same content, and what a definition was read as.
    folder.write('hello.yaml', `${helloAgent}displayName: Hello\nmetadata: {}\nskillNames: []\ndescription: null\n`);
    assert.deepEqual(summary((await apply()).stdout), ['unchanged hello 2']);
    const { stdout } = await folder.acp(['agents', 'get', 'hello', '--yaml']);
    folder.write('hello.yaml', stdout);
    assert.deepEqual(summary((await apply()).stdout), ['unchanged hello 2']);
    const versions = JSON.parse((await folder.acp(['agents', 'versions', 'hello', '--json'])).stdout) as unknown[];
    assert.equal(versions.length, 2);
  });

  test('is idempotent for a definition that uses every field', async (t) => {
    const folder = createFolder(t);
    folder.write(
      'full.yaml',
      `
name: base
model: { provider: demo, model: m }
instructions: "Shared {{city}}"
parameters: [{ name: city, kind: text, defaultValue: Wien }]
---
name: full
displayName: Full
description: Uses every field
instructions: "Own {{city}}"
instructionsByCulture: { de: "Eigene {{city}}" }
sharedInstructionsName: base
model:
  provider: demo
  model: m
  temperature: 0
  topP: 1
  maxOutputTokens: 100
  reasoningEffort: low
  providerSettings: { demo.seed: 1, demo.empty: [] }
  responseFormat: { kind: jsonschema, schema: { type: object, properties: {} } }
  fallbacks: [{ provider: demo, model: other }]
  allowConcurrentToolCalls: true
parameters:
  - { name: city, kind: TEXT, required: true, description: A city }
  - { name: count, kind: number, defaultValue: "3" }
toolNames: [clock_now]
callableAgentNames: [base]
subAgents: { childDeadlineMs: 1000 }
metadata: { owner: null, tags: [], nested: { flag: false } }
`,
    );
    const apply = () => folder.acp(['agents', 'apply', '-f', 'full.yaml', '--json']);
    const first = await apply();
    assert.deepEqual(summary(first.stdout), ['created base 1', 'created full 1'], first.stdout);
    assert.deepEqual(summary((await apply()).stdout), ['unchanged base 1', 'unchanged full 1']);
  });

  test('takes folders, files and stdin, many documents each, and what is called comes first', async (t) => {
    const folder = createFolder(t);
    folder.write('agents/a.yaml', agent('chief', 'callableAgentNames: [worker, clerk]'));
    folder.write('agents/deep/b.yml', `---\n${agent('worker')}\n---\n# nothing\n---\n${agent('clerk')}`);
    folder.write('agents/c.json', JSON.stringify({ name: 'json', model: { provider: 'demo', model: 'm' } }));
    folder.write('agents/readme.txt', 'not: [a definition');
    folder.write('agents/.hidden.yaml', 'not: [a definition');
    const args = ['agents', 'apply', '-f', 'agents', '--file', '-'];
    const { code, stdout, stderr } = await folder.acp(args, { input: agent('piped') });
    assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
    assert.deepEqual(stdout.trim().split('\n'), [
      'created    worker  version 1',
      'created    clerk   version 1',
      'created    chief   version 1',
      'created    json    version 1',
      'created    piped   version 1',
    ]);
  });

  test('goes on after a failure, names file, line and field, and ends with the code of the first one', async (t) => {
    const folder = createFolder(t);
    folder.write(
      'all.yaml',
      [
        agent('good'),
        agent('bad', 'toolNames:\n  - clock_now\n  - no_such_tool\ntemprature: 1\n'),
        agent('good'),
        'model: { provider: demo, model: m }\n',
        '- a list\n',
        'name: [broken\n',
      ].join('---\n'),
    );
    const { code, stdout, stderr } = await folder.acp(['agents', 'apply', '-f', 'all.yaml', '--json']);
    assert.equal(code, 2);
    assert.equal(stderr, '');
    const outcomes = JSON.parse(stdout) as Applied[];
    assert.deepEqual(outcomes.map(({ name, action }) => `${action} ${name}`).sort(), [
      'created good',
      'failed bad',
      'failed good',
      'failed null',
      'failed null',
      'failed null',
    ]);
    const bad = outcomes.find(({ name }) => name === 'bad');
    assert.deepEqual(bad?.errors?.map(({ path, line }) => `${path} ${line}`).sort(), [
      'temprature 9',
      'toolNames[1] 8',
    ]);
    const human = await folder.acp(['agents', 'apply', '-f', 'all.yaml']);
    assert.equal(human.code, 2);
    assert.match(human.stderr, /^error: all\.yaml:8: toolNames\[1\]: .*no_such_tool/m);
    assert.match(human.stdout, /^unchanged {2}good {2}version 1$/m);
  });

  test('--dry-run says what would happen, accepts references within the batch, and writes nothing', async (t) => {
    const folder = createFolder(t);
    folder.write('new.yaml', `${agent('chief', 'callableAgentNames: [worker]')}\n---\n${agent('worker')}`);
    const first = await folder.acp(['agents', 'apply', '-f', 'new.yaml', '--dry-run']);
    assert.equal(first.code, 0, first.stderr);
    assert.match(
      first.stdout,
      /^created {4}worker {2}version 1 {2}\(dry run\)\ncreated {4}chief {3}version 1 {2}\(dry run\)$/m,
    );
    folder.write('wrong.yaml', agent('chief', 'callableAgentNames: [nobody]'));
    const wrong = await folder.acp(['agents', 'apply', '-f', 'wrong.yaml', '--dry-run']);
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /wrong\.yaml:3: callableAgentNames\[0\]: .*nobody/);
    assert.equal((await folder.acp(['agents', 'list', '--json'])).stdout, '[]\n');
  });

  test('tells what cannot be read, and an unreachable service once', async (t) => {
    const folder = createFolder(t);
    const missing = await folder.acp(['agents', 'apply', '-f', 'nowhere.yaml']);
    assert.deepEqual(
      [missing.code, missing.stderr],
      [2, 'error: nowhere.yaml: It cannot be read: it does not exist.\n'],
    );
    assert.equal((await folder.acp(['agents', 'apply'])).code, 2);
    folder.write('two.yaml', `${agent('a')}---\n${agent('b')}`);
    const away = await folder.acp(['agents', 'apply', '-f', 'two.yaml', '--url', 'http://127.0.0.1:1']);
    assert.equal(away.code, 8);
    assert.equal(away.stderr.match(/cannot be reached/g)?.length, 1);
  });
});

describe('agents validate, diff and rollback', () => {
  test('work on what apply wrote', async (t) => {
    const folder = createFolder(t);
    await folder.serve();
    folder.write('a.yaml', agent('a', 'instructions: |\n  one\n  two\n'));
    await folder.acp(['agents', 'apply', '-f', 'a.yaml']);
    folder.write('a.yaml', agent('a', 'instructions: |\n  one\n  three\n'));
    await folder.acp(['agents', 'apply', '-f', 'a.yaml']);

    const diff = await folder.acp(['agents', 'diff', 'a', '1', '2']);
    assert.match(diff.stdout, /^--- a version 1\n\+\+\+ a version 2\n@@ /);
    assert.match(diff.stdout, /^- {2}two\n\+ {2}three$/m);
    const back = await folder.acp(['agents', 'rollback', 'a', '1']);
    assert.deepEqual([back.code, back.stdout], [0, 'a is now version 3, with the content of version 1.\n']);
    assert.equal((await folder.acp(['agents', 'diff', 'a', '1', '3'])).stdout, '');
    const unknown = await folder.acp(['agents', 'diff', 'a', '1', '9']);
    assert.equal(unknown.code, 4);
    assert.equal((await folder.acp(['agents', 'diff', 'a', '0', 'x'])).code, 2);
    const stale = await folder.acp(['agents', 'rollback', 'a', '1', '--expected-version', '2']);
    assert.equal(stale.code, 5);

    folder.write('bad.yaml', agent('bad', 'toolNames: [nope]'));
    const invalid = await folder.acp(['agents', 'validate', '-f', 'bad.yaml']);
    assert.equal(invalid.code, 2);
    assert.match(invalid.stderr, /^error: bad\.yaml:3: toolNames\[0\]: .*\(tool-not-found\)$/m);
    const report = await folder.acp(['agents', 'validate', '-f', 'a.yaml', '--json']);
    assert.equal((JSON.parse(report.stdout) as { valid: boolean }).valid, true);
    assert.equal((await folder.acp(['agents', 'delete', 'a'])).code, 0);
    assert.equal((await folder.acp(['agents', 'delete', 'a'])).code, 4);
  });
});
