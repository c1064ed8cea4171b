// Processes of their own: they are killed.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openSite, type ServiceProcess, until } from '../e2e/support.ts';
import { call, openStream } from '../e2e/wire.ts';
import { openFleet } from '../support/fleet.ts';
import { findPostgres } from '../support/postgres-server.ts';
import { type EffectsServer, startEffectsServer } from './effects-server.ts';

const skip = findPostgres() === null && 'no PostgreSQL server is to be found';

/** The model calls a tool, says a word, and then nothing more. */
const script = [
  { when: { tool: 'external' }, reply: { text: 'So far.', stall: true } },
  {
    when: { message: '/^pay/' },
    reply: { text: 'I pay.', toolCalls: [{ name: 'external', arguments: { name: 'order' } }] },
  },
  { reply: { text: 'Hello.' } },
];

const settings = (folder: string) => ({
  script,
  host: { Tools: [folder] },
  service: {
    // The session is free once its run is closed, and 15 s after the kill at most.
    RunReconciliation: { Enabled: true, HeartbeatInterval: '1s', OrphanThreshold: '3s', ScanInterval: '1s' },
    Egress: { AllowPrivateNetworkTargets: true },
  },
});

const openOutside = async (t: TestContext): Promise<{ outside: EffectsServer; folder: string }> => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-killed-'));
  const outside = await startEffectsServer();
  outside.writeTools(folder);
  t.after(() => {
    outside.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return { outside, folder };
};

const createClerk = async ({ url }: ServiceProcess): Promise<void> => {
  const body = { name: 'clerk', model: { provider: 'demo', model: 'm' }, toolNames: ['external'] };
  assert.equal((await call(`${url}/api/agents`, { body })).status, 201);
};

/** Resolves once the run is past its tool, with a word of the answer that follows. */
const untilWord = async (url: string, body?: object): Promise<void> => {
  const stream = await openStream(url, body === undefined ? {} : { body });
  await until('the word after the tool', () => stream.frames.some(({ data }) => data.includes('So far.')));
};

/** A run with a reader. */
const startRead = ({ url }: ServiceProcess): Promise<void> =>
  untilWord(`${url}/api/agents/clerk/run`, { message: 'pay read', sessionId: 'read' });

/** A run that a worker executes: where several processes share a store, any of them. */
const startQueued = async ({ url }: ServiceProcess): Promise<void> => {
  const body = { message: 'pay queued', sessionId: 'queued' };
  const queued = await call(`${url}/api/agents/clerk/run`, { body, headers: { prefer: 'respond-async' } });
  assert.equal(queued.status, 202, queued.text);
  await untilWord(`${url}/api/runs/${queued.json<{ runId: string }>().runId}/events`);
};

interface Message {
  readonly role: string;
  readonly interrupted: boolean;
  readonly contents: readonly { readonly type: string; readonly text?: string; readonly result?: string }[];
}

const talkOf = async ({ url }: ServiceProcess, sessionId: string): Promise<string[]> => {
  const { messages } = (await call(`${url}/api/sessions/${sessionId}`)).json<{ messages: readonly Message[] }>();
  return messages.map(({ role, contents }) =>
    [role, ...contents.map(({ type, text, result }) => text ?? result ?? type)].join(' '),
  );
};

const lostTurn = (sessionId: string): string[] => [
  `User pay ${sessionId}`,
  'Assistant I pay. ToolCall',
  'Tool ok',
  'Assistant So far.',
];

const takeTurn = async ({ url }: ServiceProcess, sessionId: string): Promise<number> =>
  (
    await call(`${url}/api/agents/clerk/run`, {
      body: { message: 'next', sessionId, stream: false, concurrency: 'Enqueue' },
    })
  ).status;

test('RUN-9 SESS-3 after kill -9 of a process that shares the store, others that come at once find its turn in the session, once', {
  skip,
  timeout: 120_000,
}, async (t) => {
  const { outside, folder } = await openOutside(t);
  const fleet = await openFleet({ processes: 3, ...settings(folder) });
  t.after(() => fleet.close());
  const [lost, one, two] = fleet.members;
  assert.ok(lost !== undefined && one !== undefined && two !== undefined);
  await createClerk(lost);
  await startRead(lost);
  await fleet.end(lost, 'kill');
  assert.deepEqual(await Promise.all([one, two].map((member) => takeTurn(member, 'read'))), [200, 200]);
  const next = ['User next', 'Assistant Hello.'];
  assert.deepEqual(await talkOf(two, 'read'), [...lostTurn('read'), ...next, ...next]);
  assert.equal(outside.hits.get('External/order'), 1);
});

test('RUN-9 SESS-3 after kill -9 of the owner of a file the next start finds its turns in the sessions', {
  timeout: 120_000,
}, async (t) => {
  const { outside, folder } = await openOutside(t);
  const site = openSite(settings(folder));
  t.after(() => site.close());
  const lost = await site.serve();
  await createClerk(lost);
  await startRead(lost);
  await startQueued(lost);
  await lost.kill();
  const service = await site.serve();
  for (const session of ['read', 'queued']) {
    assert.deepEqual(await talkOf(service, session), lostTurn(session), session);
    assert.equal(await takeTurn(service, session), 200);
  }
  assert.equal(outside.hits.get('External/order'), 2, 'one call of each run');
});
