import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { LogLine } from '../e2e/support.ts';
import type { SseFrame } from '../e2e/wire.ts';
import { type Checked, findings } from './checker.ts';
import { leaves, takes } from './lease-history.ts';
import { emptyHistory } from './load.ts';

const frame = (id: number, event: string): SseFrame => ({ id, event, data: `{"at":${id}}` });
const log = [frame(0, 'run.started'), frame(1, 'message.delta'), frame(2, 'run.completed')];
const turn = 't1234567';
const said = (role: string, tag = turn) => ({ role, contents: [{ type: 'Text', text: `turn ${tag}` }] });
const line = (message: string, seconds: number): LogLine => ({
  level: 'info',
  message,
  service: 'retention',
  time: new Date(seconds * 1000).toISOString(),
});

/** What a store, its clients and the world outside agree on; each case below makes one of them lie. */
const agreement = () => {
  const history = emptyHistory();
  history.streams.set('s', [...log]);
  history.answers.set('a', 'Done.');
  history.queued.add('q');
  history.turns.set('session', [turn]);
  history.limited.set('limited', 2);
  history.spent.set('spender', { runs: 2, tokens: 90, cost: 900_000 });
  history.shown.set('spender 2026-05-14', { runs: 2, tokens: 90, cost: 900_000 });
  // That of the tenant has no limit.
  history.shown.set(' 2026-05-14', { runs: 20, tokens: 9000, cost: 90_000_000 });
  return {
    history,
    hits: new Map([
      ['Read/order', 2],
      ['Destructive/order', 1],
      ['External/order', 1],
    ]),
    runs: ['s', 'a', 'q'].map((id) => ({ id, status: 'Completed' })),
    jobs: [{ id: 'q', attempt: 1, status: 'Completed' }],
    logs: new Map(['s', 'a', 'q'].map((id) => [id, [...log]])),
    messages: [said('User'), said('Assistant')],
    counted: 2,
    used: { runs: 2, tokens: 100, cost: 1 },
    matches: true,
    audit: 'Valid',
    lives: [
      {
        pid: 1,
        log: [line(takes, 0), line(leaves, 10)],
        endedAt: Infinity,
        pauses: [] as { from: number; to: number }[],
      },
      { pid: 2, log: [line(takes, 10)], endedAt: Infinity, pauses: [] as { from: number; to: number }[] },
    ],
  };
};
type Agreement = ReturnType<typeof agreement>;

/** The service of such a world, as far as the checker asks it. */
const findingsOf = async (t: TestContext, world: Agreement): Promise<readonly string[]> => {
  const answers: Readonly<Record<string, (query: URLSearchParams) => unknown>> = {
    '/api/runs': () => world.runs,
    '/api/jobs': () => world.jobs,
    '/api/sessions/session': () => ({ messages: world.messages }),
    '/api/quotas/usage': (query) => ({
      usage: [query.get('agentName') === 'spender' ? world.used : { runs: world.counted }],
    }),
    '/api/quotas/verification': () => ({ matches: world.matches }),
    '/api/audit/verify': () => ({ status: world.audit }),
  };
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://here');
    const frames = world.logs.get(/^\/api\/runs\/(\w+)\/events$/.exec(pathname)?.[1] ?? '');
    if (frames === undefined) return response.end(JSON.stringify(answers[pathname]?.(searchParams) ?? null));
    response.setHeader('content-type', 'text/event-stream');
    return response.end(frames.map(({ id, event, data }) => `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`).join(''));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { history, hits } = world;
  const checked: Checked = {
    service: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    ...{ history, hits, limit: 2, allowance: { tokens: 100, cost: 1_000_000 }, mostLogs: 10 },
    lives: world.lives.map((life) => ({ ...life, log: () => life.log })),
  };
  return findings(checked);
};

test('where all agree nothing is reported', async (t) => {
  assert.deepEqual(await findingsOf(t, agreement()), []);
  const world = agreement();
  // Stopped in its work, it could not know that another one had taken over.
  world.lives[0]?.log.splice(1, 1, line(leaves, 20));
  world.lives[0]?.pauses.push({ from: 9_000, to: 19_000 });
  assert.deepEqual(await findingsOf(t, world), []);
  const slow = agreement();
  // It said so late, but had not acted since.
  slow.lives[0]?.log.splice(1, 1, { ...line(leaves, 20), heldUntil: new Date(10_000).toISOString() });
  assert.deepEqual(await findingsOf(t, slow), []);
});

const lies: Readonly<Record<string, readonly [lie: (world: Agreement) => void, finding: RegExp]>> = {
  'an acknowledged run is gone': [({ runs }) => runs.splice(1, 1), /run a was acknowledged and is not there/],
  'a run that was answered has failed': [
    ({ runs }) => runs.splice(1, 1, { id: 'a', status: 'Failed' }),
    /run a was answered and is Failed/,
  ],
  'a run stays open': [({ runs }) => runs.push({ id: 'x', status: 'Running' }), /run x is still Running/],
  'a log has a gap': [({ logs }) => logs.get('a')?.splice(1, 1), /the log of run a has a gap/],
  'a log has two ends': [({ logs }) => logs.get('a')?.push(frame(3, 'run.failed')), /the log of run a has 2 ends/],
  'a log has no end': [({ logs }) => logs.get('a')?.pop(), /the log of run a has 0 ends/],
  'a client missed an event': [
    ({ history }) => history.streams.set('s', log.toSpliced(1, 1)),
    /a client of run s missed an event or got one twice/,
  ],
  'a client got an event twice': [
    ({ history }) => history.streams.set('s', log.toSpliced(1, 0, frame(1, 'message.delta'))),
    /a client of run s missed an event or got one twice/,
  ],
  'a client did not get the end': [
    ({ history }) => history.streams.set('s', log.slice(0, 2)),
    /a client of run s missed an event or got one twice/,
  ],
  'a client is not told how a run ended': [
    ({ history }) => history.untold.set('s', '503'),
    /nobody told how run s ended: 503/,
  ],
  'a client was shown something else': [
    ({ history }) => history.streams.set('s', log.with(1, { ...frame(1, 'message.delta'), data: '{}' })),
    /run s was shown something else than its log says/,
  ],
  'a job was executed by two': [
    ({ logs }) => logs.set('q', [frame(0, 'run.started'), frame(1, 'run.started'), frame(2, 'run.completed')]),
    /run q was begun 2 times in 1 attempts of its job/,
  ],
  'a turn is lost': [
    ({ messages }) => messages.splice(0, 2),
    /turn t1234567 of session session was answered and is not there once/,
  ],
  'a turn is there twice': [
    ({ messages }) => messages.push(said('User'), said('Assistant')),
    /turn t1234567 of session session was answered and is not there once/,
  ],
  'two turns mix': [
    ({ messages }) => messages.splice(1, 0, said('User', 't7654321')),
    /message 1 of session session is User t7654321: two have written at once/,
  ],
  'a destructive call was made twice': [
    ({ hits }) => hits.set('Destructive/order', 2),
    /Destructive\/order was called 2 times/,
  ],
  'an external call was made twice': [
    ({ hits }) => hits.set('External/order', 3),
    /External\/order was called 3 times/,
  ],
  'more runs were answered than allowed': [
    ({ history }) => history.limited.set('limited', 3),
    /3 runs of limited were answered with a limit of 2/,
  ],
  'more runs were counted than allowed': [
    (world) => {
      world.counted = 3;
    },
    /3 runs of limited were counted with a limit of 2/,
  ],
  'a run was not counted': [
    (world) => {
      world.counted = 1;
    },
    /2 runs of limited were answered and 1 counted/,
  ],
  'a counter has shown a token too many for a moment': [
    ({ history }) => history.shown.set('spender 2026-05-14', { runs: 2, tokens: 101, cost: 900_000 }),
    /101 of the tokens of spender were shown, and 100 are allowed/,
  ],
  'a counter shows less than before': [
    ({ history }) => history.shrunk.add('spender 2026-05-14'),
    /the counter of spender 2026-05-14 has shown less than before/,
  ],
  'a micro-unit too many was counted': [
    (world) => {
      world.used = { runs: 2, tokens: 100, cost: 1.000001 };
    },
    /1000001 of the cost of spender were counted, and 1000000 are allowed/,
  ],
  'a token too many was answered': [
    ({ history }) => history.spent.set('spender', { runs: 2, tokens: 101, cost: 900_000 }),
    /101 of the tokens of spender were answered, and 100 are allowed/,
  ],
  'what was answered is not counted': [
    (world) => {
      world.used = { runs: 2, tokens: 100, cost: 0.899999 };
    },
    /900000 of the cost of spender were answered and 899999 counted/,
  ],
  'the counters are wrong': [
    (world) => {
      world.matches = false;
    },
    /the counters are not the sums of the runs/,
  ],
  'the audit trail is broken': [
    (world) => {
      world.audit = 'Broken';
    },
    /the audit trail does not verify/,
  ],
  'two hold a lease': [
    ({ lives }) => lives[0]?.log.splice(1, 1),
    /processes 1 and 2 held the lease of retention at once/,
  ],
  'one holds a lease for too long': [
    ({ lives }) => lives[0]?.log.splice(1, 1, { ...line(leaves, 20), heldUntil: new Date(11_000).toISOString() }),
    /processes 1 and 2 held the lease of retention at once/,
  ],
  'one goes on after it was stopped': [
    ({ lives }) => {
      lives[0]?.log.splice(1, 1, line(leaves, 30));
      lives[0]?.pauses.push({ from: 9_000, to: 19_000 });
    },
    /processes 1 and 2 held the lease of retention at once/,
  ],
};

for (const [name, [lie, finding]] of Object.entries(lies))
  test(`the checker sees it when ${name}`, async (t) => {
    const world = agreement();
    lie(world);
    const reported = await findingsOf(t, world);
    assert.ok(
      reported.some((text) => finding.test(text)),
      JSON.stringify(reported),
    );
  });
