import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { until } from '../e2e/support.ts';
import { call } from '../e2e/wire.ts';
import { type Fleet, type FleetSetup, openFleet } from '../support/fleet.ts';
import { findPostgres } from '../support/postgres-server.ts';
import { openMeteredProvider } from '../support/providers/metered.ts';

const skip = findPostgres() === null && 'no PostgreSQL server is to be found';
const clients = 64;

interface Usage {
  readonly agentName: string;
  readonly period: string;
  readonly runs: number;
  readonly tokens: number;
}

const open = async (t: TestContext, setup: FleetSetup): Promise<Fleet> => {
  const fleet = await openFleet(setup);
  t.after(() => fleet.close());
  return fleet;
};

const sent = async (url: string, path: string, method: string, body: object): Promise<void> => {
  const answer = await call(url + path, { method, body });
  assert.ok(answer.status < 300, `${path}: ${answer.status} ${answer.text}`);
};

const saveAgent = (fleet: Fleet, name: string, model: object): Promise<void> =>
  sent(fleet.url, '/api/agents', 'POST', { name, model });

const saveQuota = async (fleet: Fleet, quota: object): Promise<void> => {
  await sent(fleet.url, '/api/quotas', 'PUT', quota);
  // A rule is known to every process within five seconds; these know of none yet.
  for (const { url } of fleet.members)
    await until(`the rule in ${url}`, async () => {
      const { definitions } = (await call(`${url}/api/quotas/usage`, {})).json<{ definitions: readonly object[] }>();
      return definitions.length > 0;
    });
};

const dailyOf = async (url: string): Promise<Usage | undefined> => {
  const answer = await call(`${url}/api/quotas/usage?agentName=&period=Daily`, {});
  return answer.json<{ usage: readonly Usage[] }>().usage[0];
};

interface Told {
  answered: number;
  readonly refusals: Map<string, number>;
}

/** Each client asks for runs, one after another, until one is refused for good. */
const storm = async (fleet: Fleet, isOver: (status: number, code: string) => boolean, most = 200): Promise<Told> => {
  const told: Told = { answered: 0, refusals: new Map() };
  const client = async (left: number): Promise<void> => {
    const answer = await call(`${fleet.url}/api/agents/helper/run`, { body: { message: 'Hi', stream: false } }).catch(
      () => null,
    );
    if (answer !== null && answer.status < 300) told.answered += 1;
    // The proxy's own refusals have no body.
    const hasCode = answer !== null && answer.status >= 300 && answer.text.startsWith('{');
    const code = hasCode ? (answer.json<{ code?: string }>().code ?? '') : '';
    const what = answer === null ? 'gone' : `${answer.status} ${code}`;
    told.refusals.set(what, (told.refusals.get(what) ?? 0) + 1);
    if (left > 0 && !(answer !== null && isOver(answer.status, code))) await client(left - 1);
  };
  await Promise.all(Array.from({ length: clients }, () => client(most)));
  return told;
};

const usedUp = (_status: number, code: string): boolean => code === 'quota-exceeded';
const settings = {
  Quotas: { AllowOnStoreFailure: false },
  RunReconciliation: { Enabled: true, HeartbeatInterval: '2s', OrphanThreshold: '10s' },
};
const script = [{ reply: { text: 'Yes.', usage: { inputTokens: 20, outputTokens: 10 } } }];

for (const processes of [2, 4])
  test(`QUOTA-12 ${processes} processes and ${clients} clients start exactly as many runs as a rule allows`, {
    skip,
    timeout: 300_000,
  }, async (t) => {
    const fleet = await open(t, { processes, script, service: settings });
    await saveAgent(fleet, 'helper', { provider: 'demo', model: 'm' });
    await saveQuota(fleet, { period: 'Daily', maxRuns: 301 });
    const { answered, refusals } = await storm(fleet, usedUp);
    assert.equal(answered, 301, JSON.stringify([...refusals]));
    for (const { url } of fleet.members) assert.equal((await dailyOf(url))?.runs, 301);
    const verified = await call(`${fleet.url}/api/quotas/verification`, {});
    assert.equal(verified.json<{ matches: boolean }>().matches, true, verified.text);
  });

test('QUOTA-12 a process is killed and one stands still meanwhile: not one run more is started', {
  skip,
  timeout: 300_000,
}, async (t) => {
  const fleet = await open(t, { processes: 4, script, service: settings });
  await saveAgent(fleet, 'helper', { provider: 'demo', model: 'm' });
  await saveQuota(fleet, { period: 'Daily', maxRuns: 401 });
  const running = storm(fleet, usedUp);
  await until('the first hundred', async () => ((await dailyOf(fleet.url))?.runs ?? 0) > 100);
  const [first, second] = fleet.members;
  assert.ok(first !== undefined && second !== undefined);
  fleet.pause(first);
  await fleet.end(second, 'kill');
  await until('the rule is used up', async () => ((await dailyOf(fleet.url))?.runs ?? 0) >= 401);
  fleet.resume(first);
  const { answered } = await running;
  assert.ok(answered <= 401 && answered > 300, `${answered}`);
  for (const { url } of fleet.members) assert.equal((await dailyOf(url))?.runs, 401);
});

test(`QUOTA-13 strict: calls of 4 processes never use more than a rule allows`, {
  skip,
  timeout: 300_000,
}, async (t) => {
  let wish = 0;
  const provider = await openMeteredProvider(() => {
    wish = (wish * 31 + 7) % 400;
    return wish;
  });
  t.after(() => provider.close());
  const fleet = await open(t, {
    processes: 4,
    service: {
      ...settings,
      Quotas: { Strict: true, AllowOnStoreFailure: false },
      Providers: { OpenAI: { ApiKey: 'none', Endpoint: `${provider.origin}/v1` } },
    },
  });
  await saveAgent(fleet, 'helper', { provider: 'openai', model: 'm', maxOutputTokens: 300 });
  await saveQuota(fleet, { period: 'Daily', maxTokens: 40_000 });
  await storm(fleet, usedUp);
  const used = provider.calls.reduce((sum, { input, output }) => sum + input + output, 0);
  assert.ok(used <= 40_000 && used > 30_000, `${used}`);
  for (const { url } of fleet.members)
    await until('all processes agree', async () => (await dailyOf(url))?.tokens === used);
});
