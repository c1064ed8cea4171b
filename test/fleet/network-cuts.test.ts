// A process of its own: it waits for what others would have to wait for, too.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { isIdle } from '../e2e/records.ts';
import { type ServiceProcess, until } from '../e2e/support.ts';
import { type Answer, call, type EventStream, openStream, readLog, type SseFrame } from '../e2e/wire.ts';
import { isCommitAlone } from '../support/cutting-proxy.ts';
import { type Fleet, openFleet } from '../support/fleet.ts';
import { createDatabase, findPostgres } from '../support/postgres-server.ts';
import { openStoreLine, type StoreLine } from '../support/store-line.ts';
import { type EffectsServer, startEffectsServer } from './effects-server.ts';
import { leaseFindings } from './lease-history.ts';
import { outageSeconds } from './outage-length.ts';

const skip = findPostgres() === null && 'no PostgreSQL server is to be found';

/** Whether a message commits what was said with this word on its connection. */
const isCommitOf = (word: string) => {
  const connections = new WeakSet();
  return (message: Buffer, connection: object): boolean => {
    if (message.includes(word)) connections.add(connection);
    return connections.has(connection) && (message.includes('commit') || isCommitAlone(message));
  };
};

/** How a process loses its database, and what becomes of what was on its way when it has it again. */
const faults = {
  /** Its connections are reset, and it is refused. */
  refused: { begin: (line) => line.cut(), held: 'forgotten' },
  /** Packets are lost, and so are the connections. */
  silent: { begin: (line) => line.silence(), held: 'forgotten' },
  /** Packets are lost, and what was sent comes when everybody has gone on without it. */
  late: { begin: (line) => line.silence(), held: 'late' },
  /** The database gets the commit of a change, and everything after it, and no answer comes back. */
  unanswered: { begin: (line) => line.loseAnswers(isCommitOf('in-doubt')), held: 'forgotten' },
} as const satisfies Record<string, { begin(line: StoreLine): void; held: 'late' | 'forgotten' }>;
type Kind = keyof typeof faults;
const kinds = ['silent', 'refused', 'late', 'unanswered'] as const satisfies readonly Kind[];

/** Longer than all leases; `ACP_OUTAGE_SECONDS` says how long in a run by hand. */
const cutMs = outageSeconds(12) * 1000;
const talk = Array.from({ length: 60 }, (_, index) => `word${index} `).join('');
const script = [
  {
    when: { message: '/order (?<order>\\w+)/', call: 1 },
    reply: {
      ...{ text: talk, chunkSize: 8, delay: '40ms' },
      toolCalls: ['destructive', 'external'].map((name) => ({ name, arguments: { name: '{{order}}' } })),
    },
  },
  { reply: { text: 'Done.' } },
];
const service = {
  Quotas: { AllowOnStoreFailure: false },
  AsyncRun: { MaxAttempts: 4 },
  Scheduling: { MaxConcurrentJobs: 2, PollInterval: '1s', LeaseDuration: '10s' },
  RunReconciliation: { Enabled: true, HeartbeatInterval: '1s', OrphanThreshold: '4s', ScanInterval: '1s' },
  RunContinuation: { Enabled: true },
  SingletonExecution: { Enabled: true, LeaseDuration: '4s' },
  Egress: { AllowPrivateNetworkTargets: true },
};

interface Run {
  readonly id: string;
  readonly status: string;
  readonly error: { readonly type: string } | null;
  readonly continuedFromRunId: string | null;
}

/** A process with a way of its own to the database. */
interface Cut {
  readonly kind: Kind;
  readonly line: StoreLine;
  readonly member: ServiceProcess;
}

interface Place {
  readonly fleet: Fleet;
  readonly outside: EffectsServer;
  /** Has the database all the time. */
  readonly other: ServiceProcess;
  readonly cuts: readonly Cut[];
}

const readiness = async ({ url }: ServiceProcess): Promise<unknown> =>
  (await call(`${url}/health/ready`)).json()['status'];
const ask = ({ url }: ServiceProcess, headers: Record<string, string> = {}): Promise<Answer> =>
  call(`${url}/api/agents/clerk/run`, { body: { message: 'Hi', stream: false }, headers });
const order = ({ url }: ServiceProcess, name: string, sessionId: string): Promise<EventStream> =>
  openStream(`${url}/api/agents/shop/run`, { body: { message: `order ${name}`, sessionId, concurrency: 'Enqueue' } });
const runsOf = async ({ url }: ServiceProcess, session: string): Promise<Run[]> =>
  (await call(`${url}/api/runs?sessionId=${session}`)).json<Run[]>();
const createAgent = ({ url }: ServiceProcess, name: string, toolNames: readonly string[] = []): Promise<Answer> =>
  call(`${url}/api/agents`, { body: { name, toolNames, model: { provider: 'demo', model: 'm' } } });
const succeeded = (answer: Answer): Answer => {
  assert.ok(answer.status < 300, answer.text);
  return answer;
};
const isRefused = (answer: Answer): boolean =>
  answer.status === 503 && answer.json<{ code: string }>().code === 'store-unavailable';
/** While the rest is done to each of them, the others wait for nobody. */
const forEachCut = async <T>({ cuts }: Place, work: (cut: Cut) => Promise<T>): Promise<void> => {
  await Promise.all(cuts.map(work));
};

/** The first process is one that will be cut off, so that it has the leases of all services. */
const openPlace = async (t: TestContext): Promise<Place> => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-fleet-'));
  const outside = await startEffectsServer();
  outside.writeTools(folder);
  const database = await createDatabase();
  const fleet = await openFleet({ processes: 0, database: database.url, host: { Tools: [folder] }, service, script });
  const lines: StoreLine[] = [];
  t.after(async () => {
    await fleet.close();
    for (const line of lines) await line.close();
    await database.drop();
    outside.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const cuts: Cut[] = [];
  const joinBy = async (kind: Kind): Promise<void> => {
    const line = await openStoreLine(database.url);
    lines.push(line);
    const postgres = 'Service:Persistence:Postgres';
    const settings = [`${postgres}:ConnectionString=${line.url}`, `${postgres}:CommandTimeoutSeconds=5`];
    cuts.push({ kind, line, member: await fleet.join({ args: settings.flatMap((setting) => ['--set', setting]) }) });
  };
  const [first, ...rest] = kinds;
  await joinBy(first);
  const [other] = await Promise.all([fleet.join(), ...rest.map(joinBy)]);
  succeeded(await createAgent(other, 'shop', ['destructive', 'external']));
  succeeded(await createAgent(other, 'clerk'));
  const rule = { agentName: 'clerk', period: 'Daily', maxRuns: 1000 };
  succeeded(await call(`${other.url}/api/quotas`, { method: 'PUT', body: rule }));
  for (const { member } of cuts) await until('readiness', async () => (await readiness(member)) === 'Healthy');
  return { fleet, outside, other, cuts };
};

test('a process that loses its database decides nothing, loses what it had to the others, and works again by itself', {
  skip,
  timeout: 480_000,
}, async (t) => {
  const place = await openPlace(t);
  const { outside, other, fleet } = place;
  const body = { name: 'ci', role: 'Operator', scopes: ['RunsWrite', 'RunsRead'] };
  const key = succeeded(await call(`${other.url}/api/api-keys`, { body })).json<{
    plaintextKey: string;
    record: { id: string };
  }>();
  const keyed = { authorization: `Bearer ${key.plaintextKey}` };
  const acknowledged: string[] = [];
  await forEachCut(place, async ({ member }) => {
    const answer = succeeded(
      await until('an answer', async () => {
        const answer = await ask(member, keyed);
        return answer.status === 404 || answer.status === 401 ? null : answer;
      }),
    );
    acknowledged.push(String(answer.headers['x-run-id']));
  });

  // In the middle of a run with tools, and of a change that is committed as it goes.
  const streams = new Map<Kind, EventStream>();
  const cutAt = performance.now();
  const changes = new Map<Kind, Promise<Answer>>();
  await forEachCut(place, async ({ kind, member, line }) => {
    const stream = await order(member, kind, kind);
    streams.set(kind, stream);
    await stream.first('message.delta');
    faults[kind].begin(line);
    if (kind === 'unanswered') changes.set(kind, createAgent(member, 'in-doubt'));
  });
  await forEachCut(place, async ({ kind, member }) => {
    await until(`readiness of ${kind}`, async () => (await readiness(member)) === 'Unhealthy');
    const says = ({ level, message }: { level: string; message: string }): boolean =>
      level === 'error' && /PostgreSQL server cannot be reached/.test(message);
    await until(`the log of ${kind}`, () => member.log().some(says));
  });

  // What is taken back elsewhere does not count where nobody can be asked: there it is refused.
  succeeded(await call(`${other.url}/api/api-keys/${key.record.id}`, { method: 'DELETE' }));
  const stop = { scope: 'Agent', agentName: 'clerk', reason: 'fire' };
  succeeded(await call(`${other.url}/api/emergency/stop`, { body: stop }));
  await forEachCut(place, async ({ kind, member }) => {
    for (const headers of [keyed, {}])
      await until(`${kind} to refuse`, async () => isRefused(await ask(member, headers)));
  });

  // The others close its run and go on with the turn.
  const before = new Map<Kind, { readonly log: readonly SseFrame[]; readonly session: string }>();
  await forEachCut(place, async ({ kind }) => {
    const { runId } = streams.get(kind) ?? assert.fail(kind);
    const lost = await until(`the run of ${kind} to be closed`, async () => {
      const run = (await call(`${other.url}/api/runs/${runId}`)).json<Run>();
      return run.status === 'Failed' ? run : null;
    });
    assert.equal(lost.error?.type, 'orphaned');
    await until(`another one to go on with the turn of ${kind}`, async () =>
      (await runsOf(other, kind)).some((run) => run.continuedFromRunId === runId && run.status === 'Completed'),
    );
    const next = await order(other, `${kind}2`, kind);
    await next.ended;
    before.set(kind, {
      log: await readLog(other.url, runId),
      session: (await call(`${other.url}/api/sessions/${kind}`)).text,
    });
  });
  // It is there, whatever its caller is told: that it is, or that nobody knows.
  await until('the change', async () => (await call(`${other.url}/api/agents/in-doubt`)).status === 200);
  for (const answer of await Promise.all(changes.values()))
    if (answer.status !== 201) assert.ok(isRefused(answer) && /look whether it was/.test(answer.text), answer.text);
  await pause(Math.max(0, cutMs - (performance.now() - cutAt)));

  await forEachCut(place, async ({ kind, line, member }) => {
    line.mend(faults[kind].held);
    await until(`readiness of ${kind}, by itself`, async () => (await readiness(member)) === 'Healthy');
    await streams.get(kind)?.ended;
    if (faults[kind].held === 'late') await until('something to come late', () => line.late > 0);
  });
  await until('the end of all runs', () => isIdle(other));
  await forEachCut(place, async ({ kind, member }) => {
    const { runId, frames } = streams.get(kind) ?? assert.fail(kind);
    const log = await readLog(member.url, runId);
    // After 30 s its run went on for its caller alone, who is told so.
    const shown = frames.filter(({ id }) => id !== null);
    if (!frames.some(({ event }) => event === 'warning'))
      assert.deepEqual(shown, log, `${kind} has shown something else`);
    assert.deepEqual(log, before.get(kind)?.log, `${kind} wrote to what others had closed`);
    assert.equal((await call(`${member.url}/api/sessions/${kind}`)).text, before.get(kind)?.session);
    for (const effect of ['Destructive', 'External'])
      for (const name of [kind, `${kind}2`])
        assert.equal(outside.hits.get(`${effect}/${name}`), 1, `${effect}/${name}`);
    assert.equal((await ask(member, keyed)).status, 401);
    assert.equal((await ask(member)).json<{ code: string }>().code, 'emergency-stopped');
  });
  succeeded(await call(`${other.url}/api/emergency/resume`, { body: { scope: 'Agent', agentName: 'clerk' } }));
  await forEachCut(place, async ({ kind, member }) => {
    await until(`${kind} to serve again`, async () => (await ask(member)).status === 200);
    for (const id of acknowledged)
      assert.equal((await call(`${member.url}/api/runs/${id}`)).json<Run>().status, 'Completed');
  });
  assert.equal((await call(`${other.url}/api/quotas/verification`)).json()['matches'], true);
  assert.equal((await call(`${other.url}/api/audit/verify`)).json()['status'], 'Valid');
  assert.deepEqual(
    leaseFindings(fleet.members.map(({ pid, log }) => ({ pid, log, endedAt: Number.POSITIVE_INFINITY, pauses: [] }))),
    [],
  );
});
