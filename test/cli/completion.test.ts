import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { describe, type TestContext, test } from 'node:test';
import { completions } from '../../src/cli/completion/complete.ts';
import { completionScript, type Shell, shells } from '../../src/cli/completion/completion-script.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { program as acp, programEnvironment } from '../support/program.ts';
import { createFolder, type Folder } from './support.ts';

const repository = dirname(dirname(import.meta.dirname));

const isInstalled = (shell: Shell): boolean => spawnSync(shell, ['-c', 'exit 0']).status === 0;
const absent = (shell: Shell): string | false => (isInstalled(shell) ? false : `${shell} is not installed here`);

/** A folder in which `acp` is a command, as it is for whoever completes it. */
const shellFolder = (t: TestContext): Folder => {
  const folder = createFolder(t);
  const [command, file] = acp;
  chmodSync(folder.write('bin/acp', `#!/bin/sh\nexec '${command}' '${file}' "$@"\n`), 0o755);
  return folder;
};

interface Completing {
  readonly env?: Readonly<Record<string, string>>;
  readonly words?: readonly string[];
}

const runShell = async (folder: Folder, shell: Shell, args: readonly string[], env: Completing['env']) => {
  const child = spawn(shell, args, {
    cwd: folder.path,
    // bash takes an input that is a socket for a remote shell, and would read the machine's bashrc.
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: `${join(folder.path, 'bin')}:${process.env['PATH']}`,
      HOME: folder.path,
      TZ: 'UTC',
      ...programEnvironment,
      ...env,
    },
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) child[name].on('data', (data) => (output[name] += String(data)));
  const [code] = (await once(child, 'close')) as [number];
  assert.deepEqual({ stderr: output.stderr, code }, { stderr: '', code: 0 });
  return output.stdout.split('\n').filter((line) => line !== '');
};

/** As bash breaks a line: at spaces, and around `=` and `:`. */
const brokenWords = (line: string): string[] => {
  const words = line
    .split(/\s+/)
    .flatMap((word) => (word === '' ? [''] : word.split(/([=:]+)/).filter((part) => part !== '')));
  return words;
};

const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** What bash offers for a line whose last word is being typed. */
const inBash = (
  folder: Folder,
  line: string,
  { env, words = brokenWords(line) }: Completing = {},
): Promise<string[]> => {
  const current = words.at(-1) ?? '';
  const script = [
    completionScript('bash'),
    `COMP_LINE=${quote(line)}; COMP_POINT=${line.length}`,
    `COMP_WORDS=(${words.map(quote).join(' ')}); COMP_CWORD=${words.length - 1}`,
    `_acp acp ${quote(/^[=:]+$/.test(current) ? '' : current)} ${quote(words.at(-2) ?? '')}`,
    // Each on a line of its own, whatever it is.
    `for word in \${COMPREPLY[@]+"\${COMPREPLY[@]}"}; do printf '%s\\n' "$word"; done`,
  ].join('\n');
  return runShell(folder, 'bash', ['--norc', '-u', '-c', script], env);
};

/** The same of fish, which has a command for it. */
const inFish = async (folder: Folder, line: string, env: Completing['env'] = {}): Promise<string[]> => {
  const lines = await runShell(
    folder,
    'fish',
    ['--no-config', '-c', `${completionScript('fish')}\ncomplete -C ${quote(line)}`],
    env,
  );
  return lines.map((each) => each.split('\t', 1)[0] ?? '');
};

/** What zsh hands to its line editor: its own commands for that work in a terminal only and are replaced. */
const inZsh = (folder: Folder, words: readonly string[], env: Completing['env'] = {}): Promise<string[]> => {
  const script = [
    'compdef() { : }; compset() { : }; _files() { print -r -- FILES }',
    `compadd() { local name="\${@[-1]}"; print -rl -- "\${(@P)name}" }`,
    completionScript('zsh'),
    `complete_line() { local -a words=(${words.map(quote).join(' ')}); local CURRENT=${words.length} PREFIX="\${words[-1]}"; _acp }`,
    'complete_line',
  ].join('\n');
  return runShell(folder, 'zsh', ['-f', '-c', script], env);
};

/** A folder with a service that holds two agents and a run; `env` is what a caller from elsewhere needs. */
const serving = async (t: TestContext) => {
  const folder = shellFolder(t);
  folder.write('other.yaml', 'name: helper\nmodel: { provider: demo, model: demo-1 }\ninstructions: Help.\n');
  const { url } = await folder.serve();
  const applied = await folder.acp(['agents', 'apply', '-f', 'hello.yaml', '-f', 'other.yaml']);
  assert.equal(applied.code, 0, applied.stderr);
  const run = await folder.acp(['run', 'hello', 'Hi', '--json', '--session', 'talk-1']);
  assert.equal(run.code, 0, run.stderr);
  const { runId } = JSON.parse(run.stdout) as { runId: string };
  return { folder, url, runId };
};

const program = buildProgram();

/** The same without a shell and a process, for lines whose words are parted by single spaces. */
const offered = async (
  line: string,
  cwd = import.meta.dirname,
  environment: Completing['env'] = {},
): Promise<(string | undefined)[]> => {
  const lines = await completions(program, line.split(' ').slice(1), { environment, cwd });
  return lines.map((each) => each.split('\t', 1)[0]);
};

const filesBelow = (path: string): string[] => readdirSync(path, { recursive: true }).map(String).sort();

describe('completion', () => {
  test('bash is offered commands, their commands and their options', async (t) => {
    const folder = shellFolder(t);
    const inShell = (line: string) => inBash(folder, line);
    assert.deepEqual(await inShell('acp qui'), ['quickstart']);
    assert.deepEqual(await inShell('acp approvals rules '), ['list', 'add', 'remove']);
    assert.deepEqual(await inShell('acp --url http://runs:1 runs list --json --stat'), ['--status']);
    assert.deepEqual(await offered('acp agents ap'), ['apply']);
    assert.deepEqual(await offered('acp agents apply --dr'), ['--dry-run']);
    assert.deepEqual(await offered('acp --url http://runs:1 runs ta'), ['tail']);
    assert.deepEqual(await offered('acp runs list --json --stat'), ['--status']);
    assert.deepEqual(await offered('acp help runs ta'), ['tail']);
    const all = await inShell('acp ');
    assert.ok(all.includes('serve') && !all.includes('__complete'));
    // Words that lead nowhere, and arguments that no list knows.
    assert.deepEqual(await inShell('acp nothing --'), []);
    for (const line of ['acp nothing ', 'acp nothing --', 'acp version ', 'acp data-subjects erase '])
      assert.deepEqual(await offered(line), [], line);
  });

  test('get is offered the kinds, and the names that are stored of one', async (t) => {
    const { folder } = await serving(t);
    assert.deepEqual(await inBash(folder, 'acp get Agent '), ['hello', 'helper']);
    assert.deepEqual(await offered('acp get Quo', folder.path), ['QuotaRule']);
    assert.deepEqual(await offered('acp get agent helpe', folder.path), ['helper']);
    assert.deepEqual(await offered('acp get agents helpe', folder.path), ['helper']);
    assert.deepEqual(await offered('acp get Nothing ', folder.path), []);
  });

  test('values of options come from the schemas, in each way to write an option', async (t) => {
    const folder = shellFolder(t);
    const throughBash = (line: string) => inBash(folder, line);
    assert.deepEqual(await offered('acp runs list --status Awaiting'), ['AwaitingInput', 'AwaitingApproval']);
    assert.deepEqual(await throughBash('acp runs list --status=Fa'), ['Failed']);
    assert.deepEqual(await throughBash('acp runs list --status='), await offered('acp runs list --status '));
    assert.deepEqual(await offered('acp runs list --kind '), ['Agent', 'Workflow', 'Eval', 'External']);
    assert.deepEqual(await offered('acp keys create ci --role '), ['Reader', 'Operator', 'Admin']);
    assert.deepEqual(await offered('acp keys create ci --scope Audit'), ['AuditRead']);
    assert.deepEqual(await offered('acp keys create ci --scope RunsRead --scope RunsW'), ['RunsWrite']);
    assert.deepEqual(await offered('acp runs replay x --tools Live'), ['LiveTools']);
    assert.deepEqual(await offered('acp run hello --concurrency E'), ['Enqueue']);
    assert.deepEqual(await offered('acp quotas set --period '), ['Daily', 'Monthly']);
    assert.deepEqual(await offered('acp completion '), ['bash', 'zsh', 'fish']);
    // The value is none, once `--` has ended the options; nor is what looks like one.
    assert.deepEqual(await offered('acp runs list -- --status Fa'), []);
    assert.deepEqual(await offered('acp run hello -- --str'), []);
    assert.deepEqual(await offered('acp run hello --str'), ['--stream']);
  });

  test('agents, runs and sessions come from the service that owns the store', async (t) => {
    const { folder, runId } = await serving(t);
    const inShell = (line: string, words?: readonly string[]) =>
      inBash(folder, line, words === undefined ? {} : { words });
    const there = (line: string) => offered(line, folder.path);
    assert.deepEqual(await inShell('acp run '), ['hello', 'helper']);
    assert.deepEqual(await there('acp run helper '), []);
    assert.deepEqual(await there('acp agents get helpe'), ['helper']);
    assert.deepEqual(await there('acp agents rollback hello '), ['1']);
    assert.deepEqual(await inShell('acp runs list --agent-name=hello'), ['hello']);
    assert.deepEqual(await there('acp runs get '), [runId]);
    assert.deepEqual(await inShell('acp runs trace -- '), [runId]);
    assert.deepEqual(await there(`acp runs compare ${runId} ${runId.slice(0, 9)}`), [runId]);
    assert.deepEqual(await there('acp run hello --session '), ['talk-1']);
    assert.deepEqual(await there('acp run helper --session '), []);
    assert.deepEqual(await there('acp agents save x --tool-names clock'), ['clock_now']);
    assert.deepEqual(await there('acp models provider-health '), ['demo']);
    // A quoted word is one word, and the quote of the last one may still be open.
    assert.deepEqual(await inShell(`acp run 'helpe`, ['acp', 'run', `'helpe`]), ['helper']);
    assert.deepEqual(
      await inShell(`acp run hello 'a message' --sess`, ['acp', 'run', 'hello', `'a message'`, '--sess']),
      ['--session'],
    );
  });

  test('a service elsewhere answers whoever has a key for it', async (t) => {
    const { folder, url } = await serving(t);
    const made = await folder.acp(['keys', 'create', 'reader', '--scope', 'AgentsRead', '--json']);
    assert.equal(made.code, 0, made.stderr);
    const { plaintextKey: key } = JSON.parse(made.stdout) as { plaintextKey: string };
    assert.match(key, /^\S{20,}$/);
    const away = shellFolder(t);
    away.write('key', `${key}\n`);
    const there = (line: string, environment: Completing['env']) => offered(line, away.path, environment);
    assert.deepEqual(await there('acp run hello', {}), []);
    assert.deepEqual(await inBash(away, 'acp run helpe', { env: { ACP_URL: url, ACP_TOKEN: key } }), ['helper']);
    assert.deepEqual(await inBash(away, `acp --url ${url} --token-file ~/key agents get helpe`), ['helper']);
    // What the key may not read, a key that is none, and a file that is missing are silence.
    assert.deepEqual(await there('acp run ', { ACP_URL: url, ACP_TOKEN: key }), ['hello', 'helper']);
    assert.deepEqual(await there('acp runs get ', { ACP_URL: url, ACP_TOKEN: key }), []);
    assert.deepEqual(await there('acp run ', { ACP_URL: url, ACP_TOKEN: 'wrong' }), []);
    assert.deepEqual(await inBash(away, `acp --url ${url} --token-file none run `), []);
  });

  test('without a service there is no answer, no error and no new file', async (t) => {
    const folder = shellFolder(t);
    const before = filesBelow(folder.path);
    for (const line of ['acp run ', 'acp runs get ', 'acp agents get x', 'acp --url http://127.0.0.1:1 run '])
      assert.deepEqual(await offered(line, folder.path), [], line);
    assert.deepEqual(await inBash(folder, 'acp run '), []);
    folder.write('broken.yaml', 'Service: [');
    assert.deepEqual(await inBash(folder, 'acp --config broken.yaml run '), []);
    assert.deepEqual(filesBelow(folder.path), [...before, 'broken.yaml'].sort());
    const { code, stdout, stderr } = await folder.acp(['__complete', '--', 'run', '']);
    assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: '', stderr: '' });
    for (const words of [[], ['--'], ['--', ''], ['run']])
      assert.deepEqual([(await folder.acp(['__complete', ...words])).code, words], [0, words]);
  });

  test('a service that does not answer is not waited for', async (t) => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    t.after(() => {
      silent.closeAllConnections();
      silent.close();
    });
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    assert.deepEqual(await inBash(shellFolder(t), 'acp run ', { env: { ACP_URL: url } }), []);
  });

  test('foreign words steer neither the shell nor the terminal', async (t) => {
    const words = [
      '$(touch owned)',
      'two words',
      '`id`',
      "it's",
      '\u001b[31mred',
      '-rf',
      'a;b',
      'plain',
      '~root',
      'a\nb',
    ];
    const agents = words.map((name) => ({ name, displayName: 'one\u001b[2J\ttwo\nthree' }));
    const service = createServer((_request, response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(agents));
    }).listen(0, '127.0.0.1');
    await once(service, 'listening');
    t.after(() => service.close());
    const folder = shellFolder(t);
    const env = { ACP_URL: `http://127.0.0.1:${(service.address() as AddressInfo).port}` };
    assert.deepEqual(await inBash(folder, 'acp run ', { env }), ['plain']);
    const { stdout } = await folder.acp(['__complete', '--', 'run', ''], { env });
    assert.equal(stdout, 'plain\tone\ufffd[2J two three\n');
  });

  test('a clone that has to be built first is not built for it', (t) => {
    const folder = createFolder(t);
    const launcher = folder.write('clone/bin/acp', readFileSync(join(repository, 'bin', 'acp'), 'utf8'));
    const { status, stdout, stderr } = spawnSync('sh', [launcher, '__complete', '--', ''], { encoding: 'utf8' });
    assert.deepEqual([status, stdout, stderr], [0, '', '']);
    assert.deepEqual(filesBelow(join(folder.path, 'clone')), ['bin', 'bin/acp']);
  });

  test('where a file belongs the shell completes files', async (t) => {
    for (const line of ['agents apply -f ', 'replay ', '--config=', 'run hello --attach ', 'skills apply a '])
      assert.deepEqual(await offered(`acp ${line}`), [':files'], line);
    const { stdout } = await shellFolder(t).acp(['__complete', '--', 'replay', '']);
    assert.equal(stdout, ':files\n');
  });

  test('fish offers the same', { skip: absent('fish') }, async (t) => {
    const { folder, runId } = await serving(t);
    assert.deepEqual(await inFish(folder, 'acp agents ap'), ['apply']);
    assert.deepEqual(await inFish(folder, 'acp runs list --status=Fa'), ['--status=Failed']);
    assert.deepEqual(await inFish(folder, 'acp runs list --stat'), ['--status']);
    assert.deepEqual(await inFish(folder, 'acp run '), ['hello', 'helper']);
    assert.deepEqual(await inFish(folder, 'acp runs get '), [runId]);
    assert.deepEqual(await inFish(folder, 'acp agents apply -f hello.y'), ['hello.yaml']);
    assert.deepEqual(await inFish(folder, 'acp --url http://127.0.0.1:1 run '), []);
  });

  test('zsh offers the same', { skip: absent('zsh') }, async (t) => {
    const { folder, runId } = await serving(t);
    assert.ok((await inZsh(folder, ['acp', ''])).includes('serve'));
    assert.deepEqual(await inZsh(folder, ['acp', 'agents', 'ap']), ['apply']);
    assert.deepEqual(await inZsh(folder, ['acp', 'runs', 'list', '--status=Fa']), ['--status=Failed']);
    assert.deepEqual(await inZsh(folder, ['acp', 'run', '']), ['hello', 'helper']);
    assert.deepEqual(await inZsh(folder, ['acp', 'runs', 'get', '']), [runId]);
    assert.deepEqual(await inZsh(folder, ['acp', 'agents', 'apply', '-f', '']), ['FILES']);
    assert.deepEqual(await inZsh(folder, ['acp', '--url', 'http://127.0.0.1:1', 'run', '']), []);
  });

  test('every shell that is installed takes its script', (t) => {
    const folder = createFolder(t);
    for (const shell of shells) {
      const script = folder.write(`acp.${shell}`, completionScript(shell));
      const { error, status, stderr } = spawnSync(shell, ['-n', script], { encoding: 'utf8' });
      if (error === undefined) assert.equal(status, 0, stderr);
      else t.diagnostic(`${shell} is not installed here; its script was only made`);
    }
  });

  test('another shell is told what there is', async (t) => {
    const { code, stderr } = await createFolder(t).acp(['completion', 'tcsh']);
    assert.deepEqual([code, stderr], [2, 'error: There is completion for bash, zsh, fish, not for "tcsh".\n']);
  });
});
