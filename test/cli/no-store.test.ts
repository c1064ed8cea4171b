import assert from 'node:assert/strict';
import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Command } from 'commander';
import { commandEntries } from '../../src/cli/command-host.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { createFolder, type Folder } from './support.ts';

const noStoreExit = 12;

/** A folder with files to apply, and with neither a configuration nor a store. */
const wrongFolder = (t: TestContext): Folder => {
  const folder = createFolder(t);
  rmSync(join(folder.path, 'service.yaml'));
  return folder;
};

const withScriptedModel = { Service__Providers__Scripted__demo__File: './scripts/demo.yaml' };

/** They set a store up, need none, or report that there is none. */
const needNoStore: readonly string[] = [
  ...['quickstart', 'serve', 'init', 'db migrate', 'db status', 'doctor', 'config'],
  ...['a2a card', 'a2a send', 'a2a stream', 'a2a get', 'a2a cancel'],
  ...['agents validate', 'replay', 'connect', 'openapi', 'completion', 'version', 'help'],
  // It asks for a terminal first.
  'tui',
  // It waits for a service to come.
  'wait',
];

/** Arguments of commands that check them before they look for a service. */
const given: Readonly<Record<string, readonly string[]>> = {
  'agents apply': ['-f', 'hello.yaml'],
  'agents rollback': ['x', '1'],
  'agents diff': ['x', '1', '2'],
  apply: ['-f', 'hello.yaml', '--dry-run'],
  get: ['agents'],
  'attachments move': ['--to', 'folder'],
  'skills apply': ['skill.yaml'],
  'quotas set': ['--period', 'Daily', '--max-runs', '1'],
  'webhooks listen': ['--secret-file', 'secret'],
  'policy test': ['--price', 'price.yaml'],
  'triggers send': ['x', '--data', '{}', '--secret-file', 'secret'],
  stop: ['--all'],
  resume: ['--all'],
  'db move': ['--to', 'other.db'],
};

const wordsFor = (name: string, command: Command): readonly string[] =>
  given[name] ?? [
    ...command.registeredArguments.flatMap(({ required }) => (required ? ['x'] : [])),
    ...command.options.flatMap(({ mandatory, long }) => (mandatory && long !== undefined ? [long, 'x'] : [])),
  ];

describe('a folder without a service, a service.yaml and a store', () => {
  test('every command that works on a store refuses with an exit code of its own, and makes none', async (t) => {
    const folder = wrongFolder(t);
    folder.write('skill.yaml', 'name: greet\ndescription: Greets.\ninstructions: Say hello.\n');
    folder.write('price.yaml', 'demo: { demo-1: { Input: 1, Output: 2 } }\n');
    folder.write('secret', 'whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n');
    const files = readdirSync(folder.path).sort();
    const wrong: string[] = [];
    for (const { name, command } of commandEntries(buildProgram())) {
      if (needNoStore.includes(name)) continue;
      const { code, stderr } = await folder.acp([...name.split(' '), ...wordsFor(name, command)]);
      if (code !== noStoreExit) wrong.push(`${name}: ${code} ${stderr}`);
    }
    assert.deepEqual(wrong, []);
    assert.deepEqual(readdirSync(folder.path).sort(), files);
  });

  test('the refusal names the next steps; settings in the environment do not stand for a service', async (t) => {
    const folder = wrongFolder(t);
    const env = { ...withScriptedModel, ACP_ULR: 'http://127.0.0.1:7070' };
    for (const args of [
      ['agents', 'apply', '-f', 'hello.yaml'],
      ['runs', 'list'],
      ['retention', 'run'],
    ]) {
      const { code, stdout, stderr } = await folder.acp(args, { env });
      assert.deepEqual([code, stdout], [noStoreExit, ''], stderr);
      assert.match(stderr, /neither a service\.yaml nor a store \(.*data\/acp\.db\)/);
      for (const way of [/--url or ACP_URL/, /`acp serve`/, /--config/]) assert.match(stderr, way);
    }
    const asJson = await folder.acp(['runs', 'list', '--json']);
    assert.equal((JSON.parse(asJson.stderr) as { code: string }).code, 'store-missing');
    const elsewhere = ['--set', 'Service:Persistence:Sqlite:ConnectionString=./other.db'];
    assert.equal((await folder.acp(['runs', 'list', ...elsewhere])).code, noStoreExit);
    assert.ok(!existsSync(join(folder.path, 'data')) && !existsSync(join(folder.path, 'other.db')));
  });

  test('definitions are validated there, and a line says that nothing was compared', async (t) => {
    const folder = wrongFolder(t);
    folder.write('plain.yaml', 'name: plain\nmodel: { provider: demo, model: demo-1 }\ninstructions: Be brief.\n');
    const { code, stdout, stderr } = await folder.acp(['agents', 'validate', '-f', 'plain.yaml'], {
      env: withScriptedModel,
      storeNote: true,
    });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^valid {4}plain/);
    assert.match(stderr, /^There is no store at \S+acp\.db yet: this command compares with an empty one\.\n$/);
    assert.ok(!existsSync(join(folder.path, 'data')));
  });

  test('what sets a store up makes one, and the other commands work on it', async (t) => {
    const folder = wrongFolder(t);
    const line = /^This command works on the store \S+acp\.db directly, not through a service\.\n/m;
    for (const args of [
      ['db', 'migrate'],
      ['db', 'compact'],
      ['attachments', 'move', '--to', 'folder'],
    ])
      assert.match((await folder.acp(args, { storeNote: true })).stderr, line, args.join(' '));
    assert.equal((await folder.acp(['db', 'migrate'])).code, 0);
    const { code, stderr } = await folder.acp(['agents', 'apply', '-f', 'hello.yaml'], {
      env: { ...withScriptedModel, Host__Modules: '["./modules/clock.mjs"]' },
    });
    assert.equal(code, 0, stderr);
  });
});

test('with a service.yaml and no store yet, applying works, and one line names the store', async (t) => {
  const folder = createFolder(t);
  const store = join(folder.path, 'data/acp.db');
  const shown = { storeNote: true };
  const apply = ['agents', 'apply', '-f', 'hello.yaml'];
  const preview = await folder.acp([...apply, '--dry-run'], shown);
  assert.equal(preview.code, 0, preview.stderr);
  assert.match(preview.stderr, /^There is no store at .* yet: this command compares with an empty one\.\n$/);
  assert.ok(!existsSync(store));
  const applied = await folder.acp(apply, shown);
  const line = `This command works on the store ${store} directly, not through a service.\n`;
  assert.deepEqual(applied, { code: 0, stdout: 'created    hello  version 1\n', stderr: line });
  const second = await folder.acp([...apply, '--dry-run'], shown);
  assert.equal(second.stderr, line.replace('works on', 'reads'));
  // A program that reads the standard error finds one object there, or nothing.
  assert.equal((await folder.acp(['agents', 'list', '--json'], shown)).stderr, '');
  const { url } = await folder.serve();
  for (const env of [{}, { ACP_URL: url }]) assert.equal((await folder.acp(apply, { env, ...shown })).stderr, '');
});

test('a configuration that is named stands for a service.yaml', async (t) => {
  const folder = createFolder(t);
  renameSync(join(folder.path, 'service.yaml'), join(folder.path, 'other.yaml'));
  assert.equal((await folder.acp(['agents', 'list'])).code, noStoreExit);
  assert.equal((await folder.acp(['agents', 'list', '--config', 'other.yaml'])).code, 0);
  assert.equal((await folder.acp(['agents', 'list'], { env: { ACP_CONFIG: 'other.yaml' } })).code, 0);
});
