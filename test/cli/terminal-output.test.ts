import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import process from 'node:process';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { guardTerminal, jsonForTerminal } from '../../src/text/terminal-guard.ts';
import { program, programEnvironment } from '../support/program.ts';
import { createFolder, type Folder } from './support.ts';

// The `script` of util-linux runs a command on a terminal of its own and hands over every byte that this one gets.
const noTerminal = spawnSync('script', ['--version']).stdout?.toString().includes('util-linux')
  ? false
  : 'the script command of util-linux is not on this machine';

/** What a command writes to a terminal, stdout and stderr together. */
const onTerminal = async (folder: Folder, args: readonly string[]): Promise<string> => {
  const command = [...program, ...args].map((word) => `'${word}'`).join(' ');
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: folder.path,
    env: {
      PATH: process.env['PATH'],
      HOME: folder.path,
      TZ: 'UTC',
      TERM: 'xterm',
      COLUMNS: '200',
      ...programEnvironment,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  await once(child, 'close');
  return text.replaceAll('\r\n', '\n');
};

const hostile = 'a\u001b]0;owned\u0007\u009b2J\u202egnp\u2066x\u061c\u007f\u{e0041}z 👩‍👩‍👧';
// biome-ignore lint/suspicious/noControlCharactersInRegex: it begins a mark of the program's own.
const steering = /(?!\n|\u001b\[\d+m)[\p{Cc}\p{Bidi_Control}]/u;

const withAgent = async (folder: Folder): Promise<void> => {
  folder.write(
    'agent.yaml',
    JSON.stringify({
      name: 'sly',
      displayName: hostile,
      description: hostile,
      instructions: `${hostile}\nsecond line`,
      metadata: { [hostile]: hostile },
      model: { provider: 'demo', model: 'm' },
    }),
  );
  assert.equal((await folder.acp(['agents', 'apply', '-f', 'agent.yaml'])).code, 0);
};

describe('on a terminal', { skip: noTerminal }, () => {
  test('--json escapes what would steer it and stays the same JSON; piped, the bytes are as they are', async (t) => {
    const folder = createFolder(t);
    await withAgent(folder);
    const piped = (await folder.acp(['agents', 'get', 'sly', '--json'])).stdout;
    assert.ok(
      piped.includes('\u202e') && piped.includes('\u009b'),
      'nothing is changed for a reader that is a program',
    );
    const shown = await onTerminal(folder, ['agents', 'get', 'sly', '--json']);
    assert.doesNotMatch(shown, /(?!\n)[\p{Cc}\p{Bidi_Control}\u{e0041}]/u);
    assert.match(shown, /\\u202e.*\\udb40\\udc41/);
    assert.deepEqual(JSON.parse(shown), JSON.parse(piped));
    assert.ok(shown.includes('👩‍👩‍👧'), 'what only looks composed is shown');
  });

  test('YAML is the same YAML, with escapes', async (t) => {
    const folder = createFolder(t);
    await withAgent(folder);
    const piped = (await folder.acp(['agents', 'get', 'sly', '--yaml'])).stdout;
    const all = await onTerminal(folder, ['agents', 'get', 'sly', '--yaml']);
    // The line of the standard error that names the store comes first.
    const shown = all.replace(/^This command works on the store .*\n/, '');
    assert.doesNotMatch(shown, /(?!\n)[\p{Cc}\p{Bidi_Control}\u{e0041}]/u);
    assert.deepEqual(parse(shown), parse(piped));
    assert.equal(parse(shown).displayName, hostile);
  });

  test('every other door shows marks instead: records, tables, diffs, errors, refusals in JSON', async (t) => {
    const folder = createFolder(t);
    await withAgent(folder);
    folder.write(
      'again.yaml',
      JSON.stringify({ name: 'sly', description: 'b', model: { provider: 'demo', model: 'm' } }),
    );
    await folder.acp(['agents', 'apply', '-f', 'again.yaml']);
    folder.write(
      'wrong.yaml',
      JSON.stringify({ name: hostile, [hostile]: 1, model: { provider: hostile, model: 'm' } }),
    );
    for (const args of [
      ['agents', 'get', 'sly'],
      ['agents', 'versions', 'sly'],
      ['agents', 'diff', 'sly', '1', '2'],
      ['agents', 'validate', '-f', 'wrong.yaml'],
      ['agents', 'create', '-f', 'wrong.yaml'],
      ['agents', 'create', '-f', 'wrong.yaml', '--json'],
      ['agents', 'get', hostile],
      ['agents', 'get', hostile, '--json'],
      ['run', 'sly', 'weird'],
      ['run', 'sly', 'weird', '--json', '--stream'],
      ['doctor', '--set', `Service:Providers:Scripted:${hostile}:File=x`],
    ]) {
      const shown = await onTerminal(folder, args);
      assert.notEqual(shown, '', args.join(' '));
      assert.doesNotMatch(shown, steering, JSON.stringify(args));
    }
  });

  test('OBS-27 a line of the log stays one JSON object, with escapes', async (t) => {
    const folder = createFolder(t);
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(async () => {
      server.close();
      await once(server, 'close');
    });
    folder.write('host.yaml', JSON.stringify({ name: 'sly', model: { provider: 'local', model: hostile } }));
    const { port } = server.address() as AddressInfo;
    const sets = {
      'Host:Agents': '["./host.yaml"]',
      'Host:LogLevel': 'info',
      // Taken: the service ends by itself.
      'Host:Url': `http://127.0.0.1:${port}`,
      'Service:Providers:Compatible:local:Endpoint': 'http://127.0.0.1:1/v1',
      'Service:Providers:Compatible:local:Models': '[{"Name":"m"}]',
    };
    const args = Object.entries(sets).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
    const shown = await onTerminal(folder, ['serve', ...args]);
    assert.doesNotMatch(shown, steering);
    const line = shown.split('\n').find((each) => each.includes('has a warning')) ?? '';
    assert.ok(line.includes('\\u202e'), line);
    const { message, detail } = JSON.parse(line) as Record<string, string>;
    assert.equal(message, 'An agent of the host has a warning');
    assert.ok(detail?.includes('\u202e'), 'what the warning says is there beside the sentence of the log');
  });
});

test('escapes and marks leave everything else alone', () => {
  const json = JSON.stringify({ text: hostile, list: [1, 'ü', '\u2028'] }, null, 2);
  assert.deepEqual(JSON.parse(jsonForTerminal(json)), JSON.parse(json));
  assert.equal(guardTerminal('\u001b[31mred\u001b[39m\tx\r\ny'), '\u001b[31mred\u001b[39m\tx\ny');
  assert.equal(guardTerminal('\u001b[8mhidden\u001b[2Jx\u202e'), '\ufffd[8mhidden\ufffd[2Jx\ufffd');
});

describe('OBS-27 standard output of a serving process', () => {
  const objects = (text: string): Record<string, unknown>[] =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  test('is one JSON object per line, with time, level and message, and nothing else', async (t) => {
    const folder = createFolder(t);
    folder.write('modules/loud.mjs', `console.log('a module prints');\nexport default {};\n`);
    const modules = [
      '--set',
      'Host:Modules=["./modules/clock.mjs","./modules/loud.mjs"]',
      '--set',
      'Host:LogLevel=debug',
    ];
    for (const json of [[], ['--json']]) {
      const running = folder.start(['serve', ...json, ...modules]);
      await running.until('listens');
      running.child.kill('SIGTERM');
      const { stdout, stderr } = await running.done;
      const lines = objects(stdout);
      assert.ok(lines.length >= 2, stdout);
      for (const { time, level, message } of lines) {
        assert.equal(new Date(String(time)).toISOString(), time);
        assert.match(String(level), /^(debug|info|warn|error)$/);
        assert.equal(typeof message, 'string');
      }
      assert.equal(lines.filter(({ url }) => typeof url === 'string').length, 1, 'the address is told once');
      assert.match(stderr, /a module prints/);
      assert.equal(/^acp \S+ serves http/m.test(stderr), json.length === 0, 'the banner is for people');
    }
  });

  test('quickstart --json writes only JSON there', async (t) => {
    const folder = createFolder(t);
    const { code, stdout } = await folder.acp(['quickstart', '--once', '--json']);
    assert.equal(code, 0);
    assert.ok(objects(stdout).length > 0);
  });
});
