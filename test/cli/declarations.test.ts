import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { declarationKinds } from '../../src/cli/declarations/declaration-kinds.ts';
import { createFolder, type Folder } from './support.ts';

const everyKind = `
kind: trigger
name: ticket
targetName: support
scheme: github
secretConfigurationKey: Service:TriggerSecrets:crm
payloadMode: Path
payloadPath: issue.title
flow: { debounce: { window: 30s, key: /issue/id } }
labels: { owner: team-a }
---
kind: Schedule
name: morning
handlerKey: acp.agent-batch
targetName: support
cron: 30 6 * * 1-5
timeZone: Europe/Vienna
payload: [{ message: Good morning }, { message: "yes" }]
enabled: false
labels: { owner: team-a, tier: "1" }
---
kind: Agent
name: support
model: { provider: demo, model: m }
instructions: |
  Be brief.
  Be kind.
skillNames: [refunds]
flow:
  concurrency: { limit: 3, key: /parameters/customer }
  priority: { key: /parameters/plan, values: { "yes": 10, "12:30": -10 }, default: 1 }
metadata: { owner: team-a }
---
kind: Skill
name: refunds
description: How refunds go
instructions: Ask for the number of the order.
metadata: { owner: team-a }
resources: [{ name: references/limits.md, content: "100 EUR\\n" }]
---
kind: Webhook
name: chat
url: https://chat.example.com/hooks
events: [run.failed, job.failed]
secretConfigurationKey: Service:WebhookSecrets:chat
headers: { x-room: "42" }
labels: { owner: team-a }
---
kind: McpServer
name: weather
endpoint: https://mcp.example.com/
description: The weather of cities
headers: { x-team: blue }
tools: { include: [look, book], exclude: null }
effects: { book: Destructive }
pinning: block
oauthEnabled: true
oauthScopes: read write
labels: { owner: team-a }
---
kind: quotaRule
period: daily
agentName: support
maxRuns: 100
maxCost: 2.5
labels: { owner: team-a }
---
kind: ApprovalRule
agentName: support
toolName: clock_now
argumentConditions: [{ path: timeZone, operator: In, value: [UTC, Europe/Vienna] }]
labels: { owner: team-a }
---
kind: RetentionPolicy
target: Spans
maxAgeDays: 14
labels: { owner: team-a }
---
kind: EgressPolicy
tenantId: default
allowedProviders: [demo]
labels: { owner: team-a }
`;

interface Told {
  readonly kind: string | null;
  readonly name: string | null;
  readonly action: string;
  readonly file: string | null;
  readonly line: number | null;
  readonly errors?: readonly { readonly path: string; readonly message: string; readonly line: number }[];
  readonly diff?: readonly string[];
}

const apply = async (folder: Folder, ...args: string[]) => {
  const { code, stdout, stderr } = await folder.acp(['apply', ...args, '--json']);
  const told = stdout === '' ? [] : (JSON.parse(stdout) as Told[]);
  return { code, stderr, told, actions: told.map(({ action, kind, name }) => `${action} ${kind} ${name}`) };
};

const webhook = (name: string, more: string) =>
  `kind: Webhook\nname: ${name}\nurl: https://chat.example.com/\nevents: [run.failed]\nsecretConfigurationKey: Service:WebhookSecrets:chat\n${more}`;
const agent = (name: string, more = '') => `name: ${name}\nmodel: { provider: demo, model: m }\n${more}`;

describe('declarations', () => {
  test('every kind is applied in the order of what needs what, printed, and applied again unchanged', async (t) => {
    const folder = createFolder(t);
    await folder.serve();
    folder.write('all.yaml', everyKind);
    const planned = await apply(folder, '-f', 'all.yaml', '--dry-run');
    const created = [
      'created EgressPolicy default',
      'created Skill refunds',
      'created McpServer weather',
      'created Webhook chat',
      'created RetentionPolicy Spans',
      'created Agent support',
      'created Schedule morning',
      'created Trigger ticket',
      'created QuotaRule Daily/support',
      'created ApprovalRule clock_now/support timeZone In ["UTC","Europe/Vienna"]',
    ];
    assert.deepEqual([planned.code, planned.actions], [0, created]);
    assert.deepEqual((await folder.acp(['agents', 'list', '--json'])).stdout.trim(), '[]');
    const first = await apply(folder, '-f', 'all.yaml');
    assert.deepEqual([first.code, first.actions, first.stderr], [0, created, '']);

    const printed: string[] = [];
    for (const { kind } of declarationKinds) {
      const { code, stdout } = await folder.acp(['get', kind, '-o', 'yaml']);
      assert.equal(code, 0, kind);
      const documents = parseAllDocuments(stdout);
      assert.ok(Array.isArray(documents) && documents.length === 1, kind);
      const [{ name }] = first.told.filter((one) => one.kind === kind) as [Told];
      assert.equal((await folder.acp(['get', kind.toLowerCase(), name ?? ''])).stdout, stdout, kind);
      const asJson = await folder.acp(['get', kind, name ?? '', '-o', 'json']);
      assert.deepEqual(JSON.parse(asJson.stdout), documents[0]?.toJS(), kind);
      const [older] = parseAllDocuments(stdout, { version: '1.1' });
      assert.deepEqual(older?.toJS(), documents[0]?.toJS(), `${kind}, to who reads YAML 1.1`);
      printed.push(stdout);
    }
    for (const [plural, name] of [
      ['agents', 'name: support'],
      ['Skills', 'name: refunds'],
      ['mcp-servers', 'name: weather'],
      ['quotarules', 'period: Daily'],
      ['retention-policies', 'target: Spans'],
      ['EgressPolicies', 'tenantId: default'],
    ] as const)
      assert.match((await folder.acp(['get', plural])).stdout, new RegExp(`^${name}$`, 'm'), plural);
    for (const word of ['agentss', 'policies', '']) {
      const { code, stderr } = await folder.acp(['get', word]);
      assert.equal(code, 2, word);
      assert.match(stderr, /it is one of EgressPolicy, Skill, McpServer, Agent, /);
    }
    folder.write('again.yaml', printed.join('---\n'));
    const unchanged = created.map((line) => line.replace('created', 'unchanged'));
    const before = await folder.acp(['audit', 'list', '--json']);
    for (const args of [['--dry-run'], []]) {
      const again = await apply(folder, '-f', 'again.yaml', ...args);
      assert.deepEqual([again.code, again.actions], [0, unchanged], args.join());
    }
    // Nothing was saved again.
    assert.equal((await folder.acp(['audit', 'list', '--json'])).stdout, before.stdout);
    // Values of headers and secrets are in nothing that is printed.
    assert.match(printed.join(), /x-room: "?\*\*\*/);
    assert.ok(!printed.join().includes('"42"'));
  });

  test('what is printed makes the same in an empty service', async (t) => {
    const [source, target] = [createFolder(t), createFolder(t)];
    source.write('all.yaml', everyKind.replace('headers: { x-room: "42" }\n', ''));
    assert.equal((await apply(source, '-f', 'all.yaml')).code, 0);
    const printed = async (folder: Folder) => {
      const texts: string[] = [];
      for (const { kind } of declarationKinds) texts.push((await folder.acp(['get', kind])).stdout);
      return texts.join('---\n');
    };
    const text = await printed(source);
    target.write('copy.yaml', text);
    assert.equal((await apply(target, '-f', 'copy.yaml')).code, 0);
    assert.equal(await printed(target), text);
  });

  test('agents need no kind, and agents apply takes those that have one', async (t) => {
    const folder = createFolder(t);
    folder.write('a.yaml', `${agent('plain')}---\nkind: Agent\n${agent('named', 'callableAgentNames: [plain]\n')}`);
    assert.deepEqual((await apply(folder, '-f', 'a.yaml')).actions, ['created Agent plain', 'created Agent named']);
    const { stdout } = await folder.acp(['agents', 'apply', '-f', 'a.yaml']);
    assert.match(stdout, /unchanged {2}plain .*\nunchanged {2}named /);
  });

  test('bad documents are told by file, line and field with what is allowed, and nothing is applied', async (t) => {
    const folder = createFolder(t);
    folder.write(
      'bad.yaml',
      [
        agent('good'),
        'kind: Cronjob\nname: x\n',
        'kind: QuotaRule\nperiod: Weekly\nmaxRuns: many\n',
        webhook('w', 'retries: 3\n'),
        webhook('twice', ''),
        webhook('twice', ''),
        'kind: RetentionPolicy\ntarget: Everything\n',
        'kind: QuotaRule\nperiod: Daily\nmaxRuns: 1\nlabels: { owner: [me] }\n',
        'kind: QuotaRule\nperiod: monthly\nagentName: good\nmaxRuns: 1\nlabels: { cost center: me }\n',
        'kind: EgressPolicy\ntenantId: acme\nallowedProviders: [1]\n',
        'kind: ApprovalRule\ntoolName: clock_now\nwhen: never\n',
      ].join('---\n'),
    );
    const { code, told, stderr } = await apply(folder, '-f', 'bad.yaml');
    assert.equal(code, 2);
    assert.match(stderr, /Nothing was applied/);
    const errors = told.flatMap(({ kind, errors = [] }) =>
      errors.map(({ path, message, line }) => `${kind} ${line} ${path}: ${message}`),
    );
    assert.match(errors[0] ?? '', /^Cronjob 4 kind: must be one of .*Agent.*RetentionPolicy/);
    assert.deepEqual(errors.slice(1, 3), [
      'QuotaRule 8 period: must be one of Daily, Monthly',
      'QuotaRule 9 maxRuns: must be either integer or null',
    ]);
    assert.deepEqual(errors.slice(3, 5), [
      'Webhook 16 retries: is not a known field; those of the kind are name, url, events, secretConfigurationKey, headers, labels, enabled',
      'Webhook 24 : Webhook twice is also declared at bad.yaml:18',
    ]);
    assert.match(errors[5] ?? '', /^RetentionPolicy 31 target: must be one of RunEvents, /);
    assert.deepEqual(errors.slice(6), [
      'QuotaRule 36 labels.owner: must be string',
      'QuotaRule 42 labels.cost center: is not an allowed name: it must be 1 to 64 of A-Z a-z 0-9 . _ / -, the first a letter or a digit',
      'EgressPolicy 46 allowedProviders[0]: must be string',
      'ApprovalRule 50 when: is not a known field; those of the kind are agentName, toolName, argumentConditions, labels',
    ]);
    assert.deepEqual(
      told.map(({ name }) => name),
      ['x', 'Weekly', 'w', 'twice', 'Everything', 'Daily', 'Monthly/good', 'acme', 'clock_now'],
    );
    assert.match((await folder.acp(['apply', '-f', 'bad.yaml', '--dry-run'])).stderr, /Nothing would be applied: /);
    assert.equal((await folder.acp(['agents', 'get', 'good'])).code, 4);
    const shown = await folder.acp(['apply', '-f', 'bad.yaml']);
    assert.match(shown.stderr, /error: bad\.yaml:8: period: must be one of Daily, Monthly/);
  });

  test('the exit code is that of the first failure, whatever fails after it', async (t) => {
    const folder = createFolder(t);
    await folder.serve(['--set', 'Service:Scheduling:Enabled=false']);
    const trigger = 'kind: Trigger\nname: t\ntargetName: nobody\nsecretConfigurationKey: Service:TriggerSecrets:x\n';
    const schedule = 'kind: Schedule\nname: s\nhandlerKey: acp.agent-batch\ntargetName: good\npayload: [Hi]\n';
    folder.write('both.yaml', [trigger, agent('good'), schedule].join('---\n'));
    const both = await apply(folder, '-f', 'both.yaml');
    assert.deepEqual([both.code, both.actions], [9, ['created Agent good', 'failed Schedule s', 'failed Trigger t']]);
    folder.write('one.yaml', trigger);
    assert.equal((await apply(folder, '-f', 'one.yaml')).code, 2);
  });

  test('what the service refuses does not stop the others, and is told with what was applied', async (t) => {
    const folder = createFolder(t);
    folder.write(
      'some.yaml',
      [
        agent('good'),
        'kind: Trigger\nname: lost\ntargetName: nobody\nsecretConfigurationKey: Service:TriggerSecrets:x\n',
        'kind: QuotaRule\nperiod: Daily\nmaxRuns: 1\n',
      ].join('---\n'),
    );
    const { code, actions, told, stderr } = await apply(folder, '-f', 'some.yaml', '--prune', 'team-a');
    assert.deepEqual([code, actions], [2, ['created Agent good', 'failed Trigger lost', 'created QuotaRule Daily']]);
    assert.deepEqual(told[1]?.errors, [{ path: 'targetName', message: 'names no agent', line: 6 }]);
    assert.match(stderr, /2 applied, 1 failed\. What was applied stays/);
    assert.match(stderr, /Nothing was pruned/);
  });

  test('diff shows what changes; with a dry run nothing is written', async (t) => {
    const folder = createFolder(t);
    folder.write(
      'a.yaml',
      `${webhook('w', 'headers: { x-room: "42" }\n')}---\nkind: QuotaRule\nperiod: Daily\nmaxRuns: 1\n`,
    );
    await apply(folder, '-f', 'a.yaml');
    folder.write('a.yaml', 'kind: QuotaRule\nperiod: Daily\nmaxRuns: 2\n');
    for (const args of [['--dry-run'], []]) {
      const { told } = await apply(folder, '-f', 'a.yaml', '--diff', ...args);
      const [{ action, diff }] = told as [Told];
      assert.equal(action, 'updated');
      assert.deepEqual(diff?.slice(0, 2), ['--- QuotaRule Daily (stored)', '+++ a.yaml']);
      assert.deepEqual(
        diff?.filter((line) => /^[-+] ?\w/.test(line)),
        ['-maxRuns: 1', '+maxRuns: 2'],
      );
    }
    // Properties in another order are no change, and the diff shows none of them.
    folder.write('a.yaml', 'maxRuns: 3\nlabels: {}\nperiod: Daily\nkind: QuotaRule\n');
    const [reordered] = (await apply(folder, '-f', 'a.yaml', '--diff', '--dry-run')).told;
    assert.deepEqual(
      reordered?.diff?.filter((line) => /^[-+] ?\w/.test(line)),
      ['-maxRuns: 2', '+maxRuns: 3'],
    );
    // Headers are stored without being shown: the mask stands for them while nothing else changes.
    const stored = (await folder.acp(['get', 'Webhook', 'w'])).stdout;
    folder.write('w.yaml', stored.replace('run.failed', 'job.failed'));
    const refused = await apply(folder, '-f', 'w.yaml');
    assert.deepEqual([refused.code, refused.actions], [2, ['failed Webhook w']]);
    assert.match(refused.told[0]?.errors?.[0]?.message ?? '', /must have the values themselves/);
  });

  test('--exit-code tells a pipeline whether a dry run would change something', async (t) => {
    const folder = createFolder(t);
    const rule = (maxRuns: number) =>
      folder.write('rule.yaml', `kind: QuotaRule\nperiod: Daily\nmaxRuns: ${maxRuns}\n`);
    const code = async (...args: string[]) => (await folder.acp(['apply', '-f', 'rule.yaml', ...args])).code;
    rule(1);
    assert.equal(await code('--dry-run', '--exit-code'), 10, 'would be created');
    assert.equal(await code('--dry-run'), 0);
    assert.equal(await code(), 0);
    assert.equal(await code('--dry-run', '--exit-code'), 0, 'nothing would change');
    rule(2);
    assert.equal(await code('--dry-run', '--exit-code', '--diff'), 10, 'would be updated');
    folder.write('rule.yaml', 'kind: QuotaRule\nperiod: Hourly\n');
    assert.equal(await code('--dry-run', '--exit-code'), 2, 'a failure goes first');
    const alone = await folder.acp(['apply', '-f', 'rule.yaml', '--exit-code']);
    assert.deepEqual([alone.code, /give --dry-run/.test(alone.stderr)], [2, true]);
  });

  test('prune deletes what carries the owner of the files and is in none of them, and nothing else', async (t) => {
    const folder = createFolder(t);
    await folder.serve();
    const owned = (name: string, owner: string) => webhook(name, `labels: { owner: ${owner} }\n`);
    // Rules of the same kinds that somebody else has, or nobody.
    const rules = [
      'kind: QuotaRule\nperiod: Monthly\nmaxRuns: 5\nlabels: { owner: team-b }\n',
      'kind: QuotaRule\nperiod: Daily\nmaxRuns: 5\n',
      'kind: ApprovalRule\ntoolName: clock_now\nlabels: { owner: team-b }\n',
      'kind: ApprovalRule\ntoolName: other_tool\n',
      'kind: RetentionPolicy\ntarget: Jobs\nmaxAgeDays: 9\nlabels: { owner: team-b }\n',
      'kind: RetentionPolicy\ntarget: Sessions\nmaxAgeDays: 9\n',
      'kind: EgressPolicy\ntenantId: acme\nallowedProviders: [demo]\nlabels: { owner: team-b }\n',
    ];
    folder.write('all.yaml', everyKind);
    folder.write(
      'others.yaml',
      `${[owned('theirs', 'team-b'), webhook('nobodys', ''), agent('loose'), ...rules].join('---\n')}`,
    );
    assert.equal((await apply(folder, '-f', 'all.yaml', '-f', 'others.yaml')).code, 0);
    // Without an owner, or with several, nobody says whose things go.
    const several = await apply(folder, '-f', 'all.yaml', '-f', 'others.yaml', '--prune');
    assert.equal(several.code, 2);
    assert.match(several.stderr, /name several owners: team-a, team-b/);
    folder.write('less.yaml', owned('chat', 'team-a'));
    // What refers to others goes first.
    const gone = [
      'ApprovalRule clock_now/support timeZone In ["UTC","Europe/Vienna"]',
      'QuotaRule Daily/support',
      'Trigger ticket',
      'Schedule morning',
      'Agent support',
      'RetentionPolicy Spans',
      'McpServer weather',
      'Skill refunds',
      'EgressPolicy default',
    ];
    const planned = await apply(folder, '-f', 'less.yaml', '--prune', '--dry-run');
    const expected = ['updated Webhook chat', ...gone.map((one) => `deleted ${one}`)];
    assert.deepEqual(planned.actions, expected);
    assert.equal((await folder.acp(['triggers', 'get', 'ticket'])).code, 0);
    assert.deepEqual((await apply(folder, '-f', 'less.yaml', '--prune')).actions, expected);
    assert.deepEqual((await apply(folder, '-f', 'less.yaml', '--prune')).actions, ['unchanged Webhook chat']);
    const get = async (one: string) => {
      const [kind = '', ...name] = one.split(' ');
      return (await folder.acp(['get', kind, name.join(' ')])).code;
    };
    for (const one of gone) assert.equal(await get(one), 4, one);
    const kept = [
      'Webhook theirs',
      'Webhook nobodys',
      'Agent loose',
      'QuotaRule Monthly',
      'QuotaRule Daily',
      'ApprovalRule clock_now',
      'ApprovalRule other_tool',
      'RetentionPolicy Jobs',
      'RetentionPolicy Sessions',
      'EgressPolicy acme',
    ];
    for (const one of kept) assert.equal(await get(one), 0, one);
  });

  test('a dry run finds what saving a schedule or a trigger would be refused for', async (t) => {
    const folder = createFolder(t);
    await folder.serve();
    const schedule = (name: string, more: string) =>
      `kind: Schedule\nname: ${name}\ntargetName: new\npayload: [hi]\n${more}`;
    const batch = 'handlerKey: acp.agent-batch\n';
    const trigger = (name: string, more: string) =>
      `kind: Trigger\nname: ${name}\nsecretConfigurationKey: Service:TriggerSecrets:x\n${more}`;
    folder.write(
      'a.yaml',
      [
        agent('new'),
        schedule('fine', `${batch}cron: 0 7 * * MON-FRI\ntimeZone: Europe/Berlin\n`),
        schedule('cron', `${batch}cron: 99 * * * *\n`),
        schedule('never', `${batch}cron: 0 0 31 2 *\n`),
        schedule('zone', `${batch}timeZone: Mars/Olympus\n`),
        schedule('key', 'handlerKey: acp.nothing\n'),
        schedule('handler-keys', batch),
        schedule('target', batch).replace('targetName: new', 'targetName: nobody'),
        trigger('good', 'targetName: new\n'),
        trigger('lost', 'targetName: nobody\n'),
        trigger('path', 'targetName: new\npayloadMode: Path\n'),
      ].join('---\n'),
    );
    const wrong = [
      'cron cron',
      'never cron',
      'zone timeZone',
      'key handlerKey',
      'handler-keys name',
      'target targetName',
      'lost targetName',
      'path payloadPath',
    ];
    const found = (told: readonly Told[]) =>
      told.flatMap(({ name, errors = [] }) => errors.map(({ path }) => `${name} ${path}`));
    const planned = await apply(folder, '-f', 'a.yaml', '--dry-run');
    assert.deepEqual([planned.code, found(planned.told)], [2, wrong]);
    // The service says the same of the same.
    const applied = await apply(folder, '-f', 'a.yaml');
    assert.deepEqual([applied.code, found(applied.told)], [2, wrong]);
    assert.deepEqual(applied.actions, planned.actions);
    // What its schema refuses is told before anything is asked or saved.
    folder.write('b.yaml', schedule('lane', `${batch}lane: ${'x'.repeat(65)}\n`));
    for (const options of [['--dry-run'], []]) {
      const { code, told } = await apply(folder, '-f', 'b.yaml', ...options);
      assert.deepEqual([code, found(told)], [2, ['lane lane']]);
      assert.match(told[0]?.errors?.[0]?.message ?? '', /must be 1 to 64 of /, 'it says what is allowed');
    }
    assert.equal((await folder.acp(['get', 'Schedule', 'lane'])).code, 4);
  });

  test('conditions of a standing rule are the same rule in any order', async (t) => {
    const folder = createFolder(t);
    const conditions = ['{ path: a, operator: Equals, value: 1 }', '{ value: 2, path: b, operator: Equals }'];
    const rule = (...all: string[]) =>
      `kind: ApprovalRule\ntoolName: clock_now\nargumentConditions: [${all.join(', ')}]\n`;
    folder.write('a.yaml', rule(...conditions));
    folder.write('b.yaml', rule(...conditions.toReversed(), ...conditions));
    const name = 'ApprovalRule clock_now a Equals 1 b Equals 2';
    assert.deepEqual((await apply(folder, '-f', 'a.yaml')).actions, [`created ${name}`]);
    assert.deepEqual((await apply(folder, '-f', 'b.yaml')).actions, [`unchanged ${name}`]);
    const twice = await apply(folder, '-f', 'a.yaml', '-f', 'b.yaml');
    assert.match(twice.told[0]?.errors?.[0]?.message ?? '', /is also declared at a\.yaml:1/);
  });

  test('prune refuses an owner that is empty', async (t) => {
    const folder = createFolder(t);
    folder.write('a.yaml', agent('kept'));
    const { code, stderr } = await apply(folder, '-f', 'a.yaml', '--prune', '');
    assert.equal(code, 2);
    assert.match(stderr, /--prune has an empty owner/);
    assert.equal((await folder.acp(['agents', 'get', 'kept'])).code, 4);
  });

  test('a reader that leaves early neither stops the work nor hides a failure', async (t) => {
    const folder = createFolder(t);
    const lost = 'kind: Trigger\nname: lost\ntargetName: nobody\nsecretConfigurationKey: Service:TriggerSecrets:x\n';
    folder.write('a.yaml', [agent('one'), agent('two'), lost].join('---\n'));
    const running = folder.start(['apply', '-f', 'a.yaml']);
    running.child.stdout.destroy();
    const { code, stderr } = await running.done;
    assert.equal(code, 2);
    assert.match(stderr, /2 applied, 1 failed/);
    assert.equal((await folder.acp(['agents', 'get', 'two'])).code, 0);
  });

  test('values of headers are in no diff, neither those that come nor those that go', async (t) => {
    const folder = createFolder(t);
    const texts: string[] = [];
    for (const [value, more] of [
      ['secret-1', []],
      ['secret-2', ['--dry-run']],
      ['secret-2', []],
    ] as const) {
      folder.write('a.yaml', webhook('w', `headers: { x-room: ${value} }\nlabels: { owner: team-${texts.length} }\n`));
      for (const form of [['--json'], []]) {
        const { stdout } = await folder.acp(['apply', '-f', 'a.yaml', '--diff', '--dry-run', ...form]);
        assert.ok(stdout.includes('***') && stdout.includes('x-room'));
        texts.push(stdout);
      }
      const { code, stdout } = await folder.acp(['apply', '-f', 'a.yaml', '--diff', ...more]);
      assert.equal(code, 0);
      texts.push(stdout);
    }
    folder.write('b.yaml', agent('other'));
    texts.push((await folder.acp(['apply', '-f', 'b.yaml', '--prune', 'team-6', '--diff'])).stdout);
    assert.match(texts.at(-1) ?? '', /^deleted +Webhook +w /m);
    assert.ok(!texts.join().includes('secret-'));
  });

  test('get refuses a kind that does not exist by naming those that do', async (t) => {
    const folder = createFolder(t);
    const { code, stderr } = await folder.acp(['get', 'Cronjob']);
    assert.equal(code, 2);
    for (const { kind } of declarationKinds) assert.ok(stderr.includes(kind), kind);
  });
});
