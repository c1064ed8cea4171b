import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createFolder, type Folder } from './support.ts';

const agent = (name: string, more = ''): string => `name: ${name}\nmodel: { provider: demo, model: m }\n${more}`;

interface Finding {
  readonly code?: string;
  readonly path: string;
  readonly message: string;
  readonly line: number | null;
}

interface Report {
  readonly name: string | null;
  readonly file: string;
  readonly line: number | null;
  readonly valid: boolean;
  readonly messages: readonly Finding[];
}

interface Applied {
  readonly name: string | null;
  readonly action: string;
  readonly file: string;
  readonly errors?: readonly Finding[];
  readonly warnings?: readonly Finding[];
}

/** Files with a fault of each kind, and one without. */
const writeFaults = (folder: Folder): void => {
  folder.write('agents/broken.yaml', 'name: broken\nmodel: { provider: demo\n');
  folder.write('agents/field.yaml', agent('field', 'temprature: 1\n'));
  folder.write('agents/good.yaml', agent('good', 'callableAgentNames: [later]\n'));
  folder.write('agents/later.yaml', `${agent('later')}---\n${agent('good')}`);
  folder.write('agents/tool.yaml', `${agent('tool', 'toolNames:\n  - clock_now\n  - nope\n')}---\nmodel: {}\n`);
  writeFileSync(join(folder.path, 'agents', 'bytes.yaml'), Buffer.from([0x6e, 0xff, 0xfe]));
};

/** All files below a folder, with what they hold. */
const contents = (path: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(path, { recursive: true, withFileTypes: true }).map((entry) => {
      const file = join(entry.parentPath, entry.name);
      const text = entry.isDirectory() ? 'folder' : createHash('sha256').update(readFileSync(file)).digest('hex');
      return [file, text];
    }),
  );

describe('agents validate', () => {
  test('gives file and line for every finding and looks at every file', async (t) => {
    const folder = createFolder(t);
    writeFaults(folder);
    const { code, stdout, stderr } = await folder.acp(['agents', 'validate', '-f', 'agents', '-f', 'gone.yaml']);
    assert.equal(code, 2);
    const lines = stderr.trim().split('\n');
    for (const line of lines) assert.match(line, /^error: (agents\/\w+\.yaml:\d+|agents\/bytes\.yaml|gone\.yaml): /);
    for (const wanted of [
      /^error: agents\/broken\.yaml:\d+: This is not valid YAML/,
      /^error: agents\/bytes\.yaml: It is not UTF-8 text/,
      /^error: gone\.yaml: It cannot be read: it does not exist/,
      /^error: agents\/field\.yaml:3: temprature: .*\(unknown-field\)/,
      /^error: agents\/tool\.yaml:5: toolNames\[1\]: .*\(tool-not-found\)/,
      /^error: agents\/tool\.yaml:7: name: is required/,
      /^error: agents\/later\.yaml:4: name: is also the name of the definition at agents\/good\.yaml:1/,
    ])
      assert.ok(
        lines.some((line) => wanted.test(line)),
        `${wanted} in\n${stderr}`,
      );
    assert.deepEqual(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/\s+/, 2).join(' '))
        .sort(),
      [
        'invalid -',
        'invalid -',
        'invalid -',
        'invalid -',
        'invalid field',
        'invalid good',
        'invalid tool',
        'valid good',
        'valid later',
      ],
    );
  });

  test('finds what apply --dry-run finds, and the other way round', async (t) => {
    const folder = createFolder(t);
    writeFaults(folder);
    folder.write('agents/warning.yaml', agent('warning', 'parameters: [{ name: unused }]\ninstructions: Hi\n'));
    folder.write(
      'agents/circle.yaml',
      ['a', 'b'].map((name) => agent(name, `callableAgentNames: [${name === 'a' ? 'b' : 'a'}]\n`)).join('---\n'),
    );
    const checked = await folder.acp(['agents', 'validate', '-f', 'agents', '--json']);
    const previewed = await folder.acp(['agents', 'apply', '-f', 'agents', '--dry-run', '--json']);
    assert.deepEqual([checked.code, previewed.code], [2, 2]);
    const found = (JSON.parse(checked.stdout) as Report[]).map(({ name, file, messages }) => ({
      name,
      file,
      findings: messages.map(({ path, message, line }) => `${path} ${line} ${message}`).sort(),
    }));
    const applied = (JSON.parse(previewed.stdout) as Applied[]).map(({ name, file, errors = [], warnings = [] }) => ({
      name,
      file,
      findings: [...errors, ...warnings].map(({ path, message, line }) => `${path} ${line} ${message}`).sort(),
    }));
    assert.deepEqual(found, applied);
    const texts = found.flatMap(({ findings }) => findings);
    assert.ok(
      texts.some((text) => text.startsWith('parameters')),
      'warnings are among them',
    );
    assert.ok(found.every(({ findings, name }) => findings.length > 0 || name === 'good' || name === 'later'));
  });

  test('takes the definitions of its files together, as applying them in order would', async (t) => {
    const folder = createFolder(t);
    await folder.serve();
    // Stored, a calls b; the files turn that around.
    folder.write('old.yaml', `${agent('b')}---\n${agent('a', 'callableAgentNames: [b]\n')}`);
    assert.equal((await folder.acp(['agents', 'apply', '-f', 'old.yaml'])).code, 0);
    folder.write('turned.yaml', `${agent('a')}---\n${agent('b', 'callableAgentNames: [a]\n')}`);
    assert.deepEqual((await folder.acp(['agents', 'validate', '-f', 'turned.yaml'])).code, 0);
    // Without the first file the service's own circle stands.
    folder.write('half.yaml', agent('b', 'callableAgentNames: [a]\n'));
    const half = await folder.acp(['agents', 'validate', '-f', 'half.yaml']);
    assert.match(half.stderr, /half\.yaml:3: callableAgentNames: .*circle.*\(call-cycle\)/);
    // A circle that only the files close: c calls the stored a, and a is to call c.
    folder.write('closed.yaml', `${agent('b')}---\n${agent('c', 'callableAgentNames: [a]\n')}---\n${agent('b', '')}`);
    folder.write(
      'closing.yaml',
      `${agent('c', 'callableAgentNames: [a]\n')}---\n${agent('b', 'callableAgentNames: [c]\n')}`,
    );
    const closing = await folder.acp(['agents', 'validate', '-f', 'closing.yaml']);
    assert.match(closing.stderr, /closing\.yaml:7: callableAgentNames: The agents call in a circle: b → c → a → b\./);
    const real = await folder.acp(['agents', 'apply', '-f', 'closing.yaml']);
    assert.match(real.stderr, /closing\.yaml:7: callableAgentNames: .*circle/);
    // What an agent of the same file fails with is missing for those that name it.
    folder.write(
      'chain.yaml',
      `${agent('top', 'callableAgentNames: [low]\n')}---\n${agent('low', 'toolNames: [nope]\n')}`,
    );
    const chain = await folder.acp(['agents', 'validate', '-f', 'chain.yaml']);
    assert.match(chain.stderr, /chain\.yaml:3: callableAgentNames\[0\]: There is no agent "low"/);
    // Instructions that are shared by a definition which has none.
    folder.write('shared.yaml', `${agent('mute')}---\n${agent('sharing', 'sharedInstructionsName: mute\n')}`);
    assert.match(
      (await folder.acp(['agents', 'validate', '-f', 'shared.yaml'])).stderr,
      /shared\.yaml:6: sharedInstructionsName/,
    );
  });
});

describe('a dry run writes nothing at all', () => {
  const commands = [
    ['agents', 'apply', '-f', 'agents', '--dry-run'],
    ['agents', 'validate', '-f', 'agents'],
    ['skills', 'apply', 'skill', '--dry-run'],
  ];
  const prepared = (folder: Folder): void => {
    folder.write('agents/one.yaml', agent('one'));
    folder.write('skill/SKILL.md', '---\nname: skill\ndescription: Does a thing.\n---\nDo it.\n');
  };
  const same = async (folder: Folder, args: readonly string[], expected: RegExp): Promise<void> => {
    const before = contents(folder.path);
    const { code, stdout, stderr } = await folder.acp(args);
    assert.deepEqual([code, stderr], [0, '']);
    assert.match(stdout, expected);
    assert.deepEqual(contents(folder.path), before, args.join(' '));
  };

  test('where there is no store, it makes none', async (t) => {
    const folder = createFolder(t);
    prepared(folder);
    for (const args of commands) await same(folder, args, /^(created|valid)\b/);
  });

  test('beside a store, which it reads as it is', async (t) => {
    const folder = createFolder(t);
    prepared(folder);
    await folder.acp(['agents', 'apply', '-f', 'agents']);
    await folder.acp(['skills', 'apply', 'skill']);
    for (const args of commands) await same(folder, args, /^(unchanged|valid)\b/);
  });

  test('beside the store of a process that was killed', async (t) => {
    const folder = createFolder(t);
    prepared(folder);
    const { running } = await folder.serve();
    await folder.acp(['agents', 'apply', '-f', 'agents']);
    await folder.acp(['skills', 'apply', 'skill']);
    running.child.kill('SIGKILL');
    await running.done;
    for (const args of commands) {
      const before = contents(folder.path);
      const { stdout } = await folder.acp(args);
      assert.match(stdout, /^(unchanged|valid)\b/);
      const after = contents(folder.path);
      // The index of the write-ahead log is memory that processes share; it holds nothing that is stored.
      const stored = (all: Record<string, string>) => Object.entries(all).filter(([file]) => !file.endsWith('-shm'));
      assert.deepEqual(stored(after), stored(before));
    }
  });

  test('so do the commands that only look at a store', async (t) => {
    const folder = createFolder(t);
    prepared(folder);
    await folder.acp(['agents', 'apply', '-f', 'agents']);
    for (const args of [['db', 'status'], ['db', 'reencrypt', '--dry-run'], ['doctor']]) {
      const before = contents(folder.path);
      await folder.acp(args);
      assert.deepEqual(contents(folder.path), before, args.join(' '));
    }
  });

  test('and says so where the store waits for migrations', async (t) => {
    const folder = createFolder(t);
    prepared(folder);
    folder.write('data/empty/keep', '');
    writeFileSync(join(folder.path, 'data', 'acp.db'), '');
    const before = contents(folder.path);
    const { code, stderr } = await folder.acp(['agents', 'apply', '-f', 'agents', '--dry-run']);
    assert.equal(code, 8);
    assert.match(stderr, /waits for migrations.*acp db migrate/s);
    assert.deepEqual(contents(folder.path), before);
  });
});

describe('documents that a command is not for, and those with several mistakes', () => {
  const agentFile = 'name: one\nmodle: { provider: demo, model: m }\ninstrctions: Hi\n';
  const others = [
    'kind: Agnet\nname: two\nmodel: { provider: demo, model: m }\n',
    'kind: Skill\nname: greet\ndescription: Greets.\ninstructions: Hi\n',
    'kind: agent\nname: good\nmodel: { provider: demo, model: m }\n',
  ].join('---\n');
  const kinds = /must be one of EgressPolicy, Skill, .*RetentionPolicy; did you mean (Agent|Skill)\?/;

  test('AGENT-11 every mistake of an agent has its file and line, and a wrong member its nearest name', async (t) => {
    const folder = createFolder(t);
    folder.write('d/one.yaml', agentFile);
    const wanted = [
      'error: d/one.yaml:1: model: is required',
      'error: d/one.yaml:2: modle: "modle" is not a known field. Did you mean model?',
      'error: d/one.yaml:3: instrctions: "instrctions" is not a known field. Did you mean instructions?',
    ];
    for (const args of [['agents', 'validate'], ['agents', 'apply'], ['apply', '--dry-run'], ['apply']]) {
      const { code, stderr } = await folder.acp([...args, '-f', 'd']);
      assert.equal(code, 2, args.join(' '));
      for (const line of wanted) assert.ok(stderr.includes(line), `${args.join(' ')}: ${line} in\n${stderr}`);
    }
  });

  test('agents validate and agents apply report the kind of each other document, and continue with the agents', async (t) => {
    const folder = createFolder(t);
    folder.write('d/others.yaml', others);
    for (const [command, done] of [
      ['validate', 'valid '],
      ['apply', 'created'],
    ] as const) {
      const { code, stdout, stderr } = await folder.acp(['agents', command, '-f', 'd']);
      assert.equal(code, 2, stderr);
      assert.match(stderr, /d\/others\.yaml:1: kind: must be one of /);
      assert.match(stderr, kinds);
      assert.match(stderr, /d\/others\.yaml:5: kind: is Skill, and this command is for agents; `acp apply`/);
      assert.doesNotMatch(stderr, /is required/);
      assert.ok(stdout.includes(`${done}  `) && /good/.test(stdout), stdout);
    }
    const applied = await folder.acp(['apply', '-f', 'd']);
    assert.match(applied.stderr, kinds);
  });

  test('skills apply gives the line of every mistake, and takes no document of another kind for a skill', async (t) => {
    const folder = createFolder(t);
    folder.write('skill.yaml', 'kind: Skill\nname: greet\ndescripton: x\ninstructions: 3\n');
    const wrong = await folder.acp(['skills', 'apply', 'skill.yaml']);
    assert.equal(wrong.code, 2);
    for (const line of [
      'description (line 1): is required',
      'descripton (line 3): is not a known field; did you mean description?',
      'instructions (line 4): must be string',
    ])
      assert.ok(wrong.stderr.includes(line), wrong.stderr);
    folder.write('others.yaml', 'kind: Agent\nname: a\n---\nkind: Skil\nname: b\n');
    const other = await folder.acp(['skills', 'apply', 'others.yaml']);
    assert.equal(other.code, 2);
    assert.match(other.stderr, /others\.yaml:1: kind is Agent, and this command is for skills/);
    assert.match(other.stderr, /others\.yaml:4: kind must be one of .*did you mean Skill\?/);
  });

  test('a hand-written command names the option or argument of each refused member', async (t) => {
    const folder = createFolder(t);
    folder.write('service.yaml', 'Host:\n  LogLevel: warn\n');
    for (const [words, hint] of [
      [
        ['quotas', 'set', '--period', 'Daily', '--max-runs', '-5', '--max-cost', '-1'],
        'maxRuns is --max-runs, maxCost is --max-cost',
      ],
      [['quotas', 'set', '--period', 'Daily', '--agent', 'a'.repeat(300), '--max-runs', '5'], 'agentName is --agent'],
      [['keys', 'create', '', '--scope', 'RunsWrite'], 'name is <name>'],
      [['keys', 'create', 'ci', '--scope', 'RunsWrite', '--expires', '2001-01-01'], 'expiresAt is --expires'],
    ] as const) {
      const { code, stderr } = await folder.acp([...words]);
      assert.equal(code, 2, stderr);
      assert.ok(stderr.includes(`\nhint: ${hint}.\n`), stderr);
    }
  });

  test('a generated command names the option of a missing member, or file and line of a wrong one', async (t) => {
    const folder = createFolder(t);
    const missing = await folder.acp(['runs', 'score', '00000000-0000-4000-8000-000000000000', '--name', 'x']);
    assert.equal(missing.code, 2);
    assert.match(missing.stderr, /kind is required/);
    assert.match(missing.stderr, /hint: kind is --kind; or a member of the file of -f\.\n/);
    folder.write('schedule.yaml', 'handlerKey: acp.agent-batch\ntargetname: hello\n');
    const inFile = await folder.acp(['schedules', 'save', 'nightly', '-f', 'schedule.yaml']);
    assert.equal(inFile.code, 2);
    assert.match(inFile.stderr, /schedule\.yaml:1: targetName: is required/);
    assert.match(inFile.stderr, /schedule\.yaml:2: targetname: is not a known field; did you mean targetName\?/);
    // The standard input has no lines that a reader could look up.
    const score = ['runs', 'score', '00000000-0000-4000-8000-000000000000', '-f', '-'];
    const piped = await folder.acp(score, { input: '{"name":"x"}' });
    assert.equal(piped.code, 2);
    assert.match(piped.stderr, /kind is required[\s\S]*hint: kind is --kind; or a member of the file of -f\.\n/);
    const asJson = await folder.acp(['schedules', 'save', 'nightly', '-f', 'schedule.yaml', '--json']);
    const { errors } = JSON.parse(asJson.stderr) as { errors: { path: string }[] };
    assert.deepEqual(
      errors.map(({ path }) => path),
      ['targetName', 'targetname'],
    );
  });
});
