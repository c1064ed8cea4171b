import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createFolder } from './support.ts';

describe('small doors', () => {
  test('help takes all words of a command, and says of a wrong one where it looked', async (t) => {
    const folder = createFolder(t);
    const asked = await folder.acp(['help', 'runs', 'tail']);
    assert.deepEqual([asked.code, asked.stdout], [0, (await folder.acp(['runs', 'tail', '--help'])).stdout]);
    const wrong = await folder.acp(['help', 'runs', 'nope']);
    assert.deepEqual([wrong.code, wrong.stdout], [2, '']);
    assert.match(wrong.stderr, /There is no command "nope" in `acp runs`/);
  });

  test('quickstart serves the address of --url, and takes it or --port', async (t) => {
    const folder = createFolder(t);
    const { code, stderr } = await folder.acp(['quickstart', '--once', '--url', 'http://localhost:0']);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /serves http:\/\/localhost:\d+/);
    assert.doesNotMatch(stderr, /:7070/);
    const both = await folder.acp(['quickstart', '--once', '--url', 'http://localhost:0', '--port', '7071']);
    assert.match(both.stderr, /give either --url or --port/);
    assert.equal(both.code, 2);
  });

  test('a body that is no YAML is told in our own words, with its line', async (t) => {
    const folder = createFolder(t);
    for (const [text, expected] of [
      [
        'name: a\nmodel: { provider: p\n',
        /Line 3: A line is indented too little, or a bracket or brace before it is not closed/,
      ],
      ['name: a\nname: b\n', /Line 2: A field is given twice/],
      ['name: a\nmodel: @p\n', /Line 2: A value begins with a character that YAML keeps for itself/],
      ['name: a\nmodel: !!other p\n', /Line 2: A tag is not known/],
      ['a: &a [*a]\n', /aliases repeat too much/],
    ] as const) {
      const file = folder.write('body.yaml', text);
      const { code, stderr } = await folder.acp(['agents', 'create', '-f', 'body.yaml']);
      assert.equal(code, 2, file);
      assert.match(stderr, expected);
    }
    const applied = await folder.acp(['agents', 'validate', '-f', 'body.yaml']);
    assert.match(applied.stderr, /aliases repeat too much/);
  });

  test('a stopped agent, a deleted one and switched-off diagnostics say what is so', async (t) => {
    const folder = createFolder(t);
    await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
    const { runId } = JSON.parse((await folder.acp(['run', 'hello', 'hi', '--json'])).stdout) as { runId: string };
    await folder.acp(['stop', '--agent', 'hello', '--reason', 'It misbehaves']);
    const stopped = await folder.acp(['run', 'hello', 'hi']);
    assert.equal(stopped.code, 8);
    assert.match(
      stopped.stderr,
      /^error: Agent "hello" is stopped by an operator.*\nhint: `acp emergency status` tells who.*`acp resume`/,
    );
    await folder.acp(['resume', '--agent', 'hello']);
    await folder.acp(['agents', 'delete', 'hello']);
    const exported = await folder.acp(['runs', 'export', runId, '-o', 'run.acp']);
    assert.equal(exported.code, 0, exported.stderr);
    assert.match(exported.stderr, new RegExp(`missing: run ${runId}: Version 1 of agent "hello" is gone\\.`));
    const off = await folder.acp(['diagnostics']);
    assert.equal(off.code, 4);
    assert.match(off.stderr, /The diagnostics are off; the setting Host:EnableDiagnosticsEndpoint turns them on/);
  });
});
