// A process of its own: its pages start services and shells, one after the other.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, globSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import process from 'node:process';
import { describe, test } from 'node:test';
import { program } from '../support/program.ts';
import { blocksOf, type PagePlan, pageScript } from './page-script.ts';

const root = join(import.meta.dirname, '../..');

/** A service with the sample agent, as `acp init` makes it. */
const served = 'acp init demo > init.log && cd demo\nacp serve > serve.log & acp wait\nacp agents apply -f agents';

/** A service with a tool that needs approval, and an agent that uses it. */
const clerk = `acp init demo > init.log && cd demo
cat > modules/refund.mjs <<'MODULE'
export default { name: 'refund', tools: [{ name: 'refund', description: 'Refunds an order.', requiresApproval: true,
  inputSchema: { type: 'object', properties: { order: { type: 'string' } } }, execute: async () => 'refunded' }] };
MODULE
sed -i 's#- ./modules/clock.mjs#- ./modules/clock.mjs\\n    - ./modules/refund.mjs#' service.yaml
cat > scripts/demo.yaml <<'SCRIPT'
rules:
  - when: { tool: refund }
    reply: { text: Done. }
  - reply: { toolCalls: [{ name: refund, arguments: { order: "7" } }] }
SCRIPT
acp serve > serve.log & acp wait
printf '%s\\n' 'name: clerk' 'model: { provider: demo, model: demo-1 }' 'toolNames: [refund]' | acp agents create -f -`;

const needsNetwork = 'it names a service elsewhere';

const plans: Readonly<Record<string, PagePlan>> = {
  'README.md': {
    skipped: { 1: 'the set-up of a clone, which CI does' },
    beforeBlock: {
      2: "mkdir platform && printf '%s\\n' 'kind: QuotaRule' 'period: Daily' 'maxRuns: 100' > platform/quota.yaml && export NO_COLOR=1",
      3: 'cp -r agents . 2>/dev/null || true',
    },
    mayFail: ['acp run clerk', 'acp tui'],
  },
  'docs/getting-started.md': {
    skipped: { 8: needsNetwork, 10: 'it writes to the home of its reader; completion has tests of its own' },
    beforeBlock: {
      1: 'cd "$(mktemp -d -p .)"',
      2: 'cd ..',
      4: 'echo "displayName: Hello again" >> agents/hello.yaml; sed -i 0,/displayName/{/displayName/d} agents/hello.yaml; acp agents apply -f agents',
      6: "run=$(acp runs list --json | jq -r '.[0].id')",
    },
    standIns: { '<run-id>': '$run' },
  },
  'docs/approvals.md': {
    before: clerk,
    beforeBlock: {
      2: 'acp run clerk "Refund order 8" --session order-8 --queued; until ID=$(acp approvals list --json | jq -er ".[0].id"); do sleep 0.1; done',
      3: "printf '%s\\n' 'agentName: clerk' > rule.yaml",
    },
    standIns: { ' ID': ' $ID' },
    mayFail: ['acp run clerk', 'acp approvals reject'],
  },
  'docs/attachments.md': {
    before: `${served}
printf '%s\\n' 'name: reader' 'model: { provider: demo, model: demo-1 }' | acp agents create -f -
printf '%%PDF-1.4\\n%%%%EOF\\n' > scan.pdf
printf 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==' | base64 -d > photo.jpg`,
    skipped: { 3: 'it moves to a bucket of an object store' },
    standIns: { '<id>': '$(acp attachments list --json | jq -r ".[0].id")' },
    mayFail: ['curl http://127.0.0.1'],
  },
  'docs/benchmark.md': { skipped: { 1: 'benchmarks take minutes' } },
  'docs/flow-control.md': {},
  'docs/mcp.md': { skipped: { 2: needsNetwork, 3: needsNetwork } },
  'docs/openai.md': { skipped: { 2: 'it calls a model with a key' } },
  'docs/policy-tests.md': {
    before: `${served}
acp run hello "Hi"
echo 'DeniedTerms: [secret]' > guard.yaml
printf '%s\\n' 'period: Daily' 'maxRuns: 1' > quota.yaml
acp runs list`,
    beforeBlock: {
      1: "printf '%s\\n' 'Service:' '  Pricing: { Currency: USD, demo: { demo-1: { Input: 1, Output: 2 } } }' > price.yaml",
    },
    standIns: { '--price service.yaml': '--price price.yaml' },
  },
  'docs/quotas.md': {
    before: `${served}\nprintf '%s\\n' 'name: support' 'model: { provider: demo, model: demo-1 }' | acp agents create -f -`,
    standIns: { 'acp quotas delete ID': 'acp quotas delete "$(acp quotas list --json | jq -r ".[0].id")"' },
  },
  'docs/run-bundle.md': {
    before: `${served}
printf '%s\\n' 'name: support' 'model: { provider: demo, model: demo-1 }' 'instructions: Be kind.' > agents/support.yaml
acp agents apply -f agents
acp run support "Hi"
run=$(acp runs list --json | jq -r '.[0].id')
sed -i 's/kind/brief/' agents/support.yaml`,
    standIns: { '0199f3a0-…': '$run' },
    mayFail: ['acp replay run.acp --with'],
  },
  'docs/skills.md': {
    before: `${served}
mkdir -p pdf/scripts skills/other
printf '%s\\n' '---' 'name: pdf' 'description: Reads PDF files.' '---' 'Run extract.' > pdf/SKILL.md
printf '%s\\n' '---' 'name: other' 'description: Something else.' '---' 'Do it.' > skills/other/SKILL.md`,
    skipped: { 2: 'scripts are off by default: the settings above it turn them on' },
  },
  'docs/tui.md': { skipped: { 1: 'screens need a terminal; their tests have one' } },
  'docs/traces.md': { before: 'export Host__Traces__SettleAfter=1s', standIns: { 'sleep 15': 'sleep 3' } },
  'docs/webhooks.md': {},
};

const freePorts = async (names: readonly string[]): Promise<ReadonlyMap<string, string>> => {
  const servers: Server[] = [];
  const ports = new Map<string, string>();
  for (const name of names) {
    const server = createServer().listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    const address = server.address();
    ports.set(name, String(address !== null && typeof address === 'object' ? address.port : 0));
  }
  for (const server of servers) server.close();
  return ports;
};

/** How much later than its command a service starts: a block that does not wait for it fails. */
const startDelaySeconds = 1;

/** A folder on the path with `acp`, whose services start late, and the pinned Node. */
const programsIn = (folder: string): string => {
  const programs = join(folder, 'programs');
  mkdirSync(programs);
  const [node, file] = program;
  const script = `#!/bin/sh\nif [ "$1" = serve ]; then sleep ${startDelaySeconds}; fi\nexec "${node}" "${file}" "$@"\n`;
  writeFileSync(join(programs, 'acp'), script);
  chmodSync(join(programs, 'acp'), 0o755);
  symlinkSync(node, join(programs, 'node'));
  return programs;
};

/** Runs the script of a page in a folder of its own; what it printed where a command of it failed. */
const failureOf = async (folder: string, script: string, port: string): Promise<string | null> => {
  const programs = programsIn(folder);
  const work = join(folder, 'work');
  mkdirSync(work);
  symlinkSync(join(root, 'node_modules'), join(work, 'node_modules'));
  const head = `set -e -o pipefail; set -m
trap 'echo "FAILED line: $BASH_COMMAND"' ERR
trap '{ for job in $(jobs -p); do kill -- -$job; done; wait; } 2>/dev/null || true' EXIT\n`;
  const child = spawn('bash', ['-c', head + script], {
    cwd: work,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: [programs, process.env['PATH'] ?? ''].join(delimiter),
      HOME: folder,
      TMPDIR: folder,
      Host__Url: `http://127.0.0.1:${port}`,
      NODE_COMPILE_CACHE: join(root, 'dist', '.compile-cache'),
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return code === 0 ? null : `exit code ${code}\n${output.slice(-6000)}`;
};

const pages = ['README.md', ...globSync('docs/*.md', { cwd: root })].sort();

/** Programs that pages use in addition to `acp`; where one is missing they cannot run. */
const missing = ['bash', 'curl', 'jq', 'openssl', 'timeout'].filter(
  (name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).error !== undefined,
);
const skip = missing.length === 0 ? false : `this machine has no ${missing.join(', ')}`;

describe('every block of every page, in order, in a fresh folder, with services that start late', () => {
  let seen = 0;
  for (const page of pages) {
    const blocks = blocksOf(join(root, page));
    const plan = plans[page] ?? {};
    const runs = blocks.filter(({ number }) => number !== null && plan.skipped?.[number] === undefined);
    seen += blocks.filter(({ number }) => number !== null).length;
    if (runs.length === 0) continue;
    test(page, { timeout: 120_000, skip }, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'acp-page-'));
      t.after(() => rmSync(folder, { recursive: true, force: true }));
      const ports = await freePorts(['7070', '7071', '9000', '9100']);
      const failure = await failureOf(folder, pageScript(blocks, plan, ports), ports.get('7070') ?? '');
      assert.equal(failure, null, failure ?? '');
    });
  }
  test('the blocks were found', () => {
    assert.ok(seen >= 45, `${seen} blocks`);
    for (const page of Object.keys(plans)) assert.ok(pages.includes(page), page);
  });
});
