import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { stringify } from 'yaml';
import { everyRun, isIdle, ledger, type RunRecord, unfinishedTurns } from '../records.ts';
import { openSite, type ServiceProcess, type Site, until } from '../support.ts';
import { call, openStream, readLog, type SseFrame } from '../wire.ts';

const effects = ['Read', 'Write', 'Destructive', 'External'] as const;
type Effect = (typeof effects)[number];
const repeatable = new Set<Effect>(['Read', 'Write']);

interface Hit {
  readonly effect: Effect;
  /** Names the call: order, model turn and place in it. */
  readonly name: string;
  readonly key: string | null;
}

interface Entry {
  readonly runId: string;
  readonly toolCallId: string;
  /** Of the call, as the log of the run tells it. */
  readonly name: string;
  readonly effect: Effect;
  readonly state: string;
  readonly key: string;
}

/** The effects that every order calls, turn by turn. */
const turns: readonly (readonly Effect[])[] = [
  ['Read', 'Write'],
  ['Destructive', 'External', 'Read'],
  ['Write', 'Destructive'],
];
const callNames = (order: string): { effect: Effect; name: string }[] =>
  turns.flatMap((turn, index) => turn.map((effect, place) => ({ effect, name: `${order}.${index}.${place}` })));

const script = [
  ...turns.map((turn, index) => ({
    when: { message: '/order (?<order>\\w+)/', call: index + 1 },
    reply: {
      text: 'Going on with it.',
      chunkSize: 3,
      delay: '5ms',
      toolCalls: turn.map((effect, place) => ({
        name: effect.toLowerCase(),
        arguments: { name: `{{order}}.${index}.${place}` },
      })),
    },
  })),
  { reply: { text: 'All done.' } },
];

/** A small generator, so that a failing sequence of kills can be made again. */
const seeded = (seed: number): (() => number) => {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
};

const kills = 10;
const budgetMs = 30_000;

describe('calls with effects while the process is killed at random points', () => {
  const hits: Hit[] = [];
  const orders: string[] = [];
  const seed = randomInt(2 ** 31);
  const random = seeded(seed);
  // Answers take their time, so that a kill also meets calls that are out.
  const server = createServer((request, response) => {
    const [, effect = '', name = ''] = (request.url ?? '').split('/');
    hits.push({ effect: effect as Effect, name, key: (request.headers['idempotency-key'] as string) ?? null });
    setTimeout(() => response.setHeader('content-type', 'text/plain').end('ok'), 20 + 40 * random());
  });
  let site: Site;
  let service: ServiceProcess;
  let toolFolder: string;
  let runs: readonly RunRecord[];
  let logs: ReadonlyMap<string, readonly SseFrame[]>;
  let entries: readonly Entry[];
  /** By the run that was started with it. */
  let placed: ReadonlyMap<string, string>;

  const begin = async (round: number): Promise<void> => {
    for (const kind of ['queued', 'queued', 'session']) {
      const order = `r${round}n${orders.length}`;
      orders.push(order);
      const url = `${service.url}/api/agents/shop/run`;
      if (kind === 'queued') {
        const answer = await call(url, { body: { message: `order ${order}` }, headers: { prefer: 'respond-async' } });
        assert.equal(answer.status, 202, answer.text);
      } else await openStream(url, { body: { message: `order ${order}`, sessionId: order } });
    }
  };

  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    toolFolder = mkdtempSync(join(tmpdir(), 'acp-effects-'));
    for (const effect of effects)
      writeFileSync(
        join(toolFolder, `${effect}.yaml`),
        stringify({
          name: effect.toLowerCase(),
          description: `A call with the effect ${effect}.`,
          inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
          effect,
          request: { method: effect === 'Read' ? 'GET' : 'POST', url: `${base}/${effect}/{{name}}` },
        }),
      );
    site = openSite({
      script,
      host: { Tools: [toolFolder] },
      service: {
        AsyncRun: { MaxAttempts: 4 },
        Scheduling: { MaxConcurrentJobs: 8, PollInterval: '1s' },
        RunReconciliation: { Enabled: true },
        RunContinuation: { Enabled: true, MaxAttempts: 2 },
        Egress: { AllowPrivateNetworkTargets: true },
      },
    });
    service = await site.serve();
    const body = {
      name: 'shop',
      model: { provider: 'demo', model: 'm' },
      toolNames: effects.map((e) => e.toLowerCase()),
    };
    assert.equal((await call(`${service.url}/api/agents`, { body })).status, 201);
    const startedAt = Date.now();
    for (let round = 0; round < kills && Date.now() - startedAt < budgetMs; round += 1) {
      await begin(round);
      await pause(random() * 450);
      await service.kill();
      service = await site.serve();
    }
    await until('the end of every run and job', () => isIdle(service));
    runs = await everyRun(service);
    logs = new Map(await Promise.all(runs.map(async ({ id }) => [id, await readLog(service.url, id)] as const)));
    entries = (await Promise.all(runs.map(entriesOfRun))).flat();
    placed = new Map((await Promise.all(runs.map(orderPlaced))).flat());
  });

  const namesIn = (runId: string): Map<string, string> =>
    new Map(
      (logs.get(runId) ?? [])
        .filter(({ event }) => event === 'tool.invoking')
        .map(({ data }) => JSON.parse(data) as { toolCallId: string; arguments: { name: string } })
        .map((invoking) => [invoking.toolCallId, invoking.arguments.name]),
    );
  const orderPlaced = async ({ id }: RunRecord): Promise<[runId: string, order: string][]> => {
    const [, order] = /"order (\w+)"/.exec((await call(`${service.url}/api/runs/${id}/input`)).text) ?? [];
    return order === undefined ? [] : [[id, order]];
  };
  /** A run that goes on with the turn of another one is for the same order. */
  const orderOf = ({ id, continuedFromRunId }: RunRecord): string | undefined => {
    const source = runs.find((run) => run.id === continuedFromRunId);
    return placed.get(id) ?? (source === undefined ? undefined : orderOf(source));
  };
  const entriesOfRun = async (run: RunRecord): Promise<Entry[]> => {
    const names = namesIn(run.id);
    return (await ledger(site, [run])).map((row) => ({
      runId: run.id,
      toolCallId: row.tool_call_id,
      name: names.get(row.tool_call_id) ?? assert.fail(`no event of ${row.tool_call_id}, seed ${seed}`),
      effect: row.effect as Effect,
      state: row.state,
      key: row.idempotency_key,
    }));
  };

  after(async () => {
    await site.close();
    server.closeAllConnections();
    server.close();
    rmSync(toolFolder, { recursive: true, force: true });
  });

  const hitsOf = (name: string): Hit[] => hits.filter((hit) => hit.name === name);
  const allCalls = (): { effect: Effect; name: string }[] => orders.flatMap(callNames);
  const entriesOf = (name: string): Entry[] => entries.filter((entry) => entry.name === name);

  test('RUN-78 no Destructive or External call is executed twice', (t) => {
    const repeated = allCalls().filter(({ name }) => hitsOf(name).length > 1);
    t.diagnostic(`seed ${seed}: ${orders.length} orders, ${hits.length} calls, repeated: ${repeated.length}`);
    assert.deepEqual(
      repeated.filter(({ effect }) => !repeatable.has(effect)),
      [],
      `seed ${seed}`,
    );
  });

  test('TOOL-27 every execution of a call carries the same key, and different calls differ', () => {
    const owners = new Map<string, string>();
    for (const { name, effect } of allCalls()) {
      const keys = new Set(entriesOf(name).map((entry) => entry.key));
      assert.ok(keys.size <= 1, `${name}, seed ${seed}`);
      for (const key of keys) {
        assert.equal(owners.get(key) ?? name, name, `seed ${seed}`);
        owners.set(key, name);
      }
      if (effect !== 'Read')
        for (const hit of hitsOf(name)) assert.ok(keys.has(hit.key ?? ''), `${name}, seed ${seed}`);
    }
  });

  test('RUN-78 no call is dropped: each stands in the ledger as settled or as unknown', () => {
    for (const hit of hits)
      assert.ok(entriesOf(hit.name).length > 0, `${hit.name} was made without an entry, seed ${seed}`);
    for (const { runId, toolCallId, state } of entries)
      assert.ok(state === 'Settled' || state === 'Unknown', `${runId} ${toolCallId} ${state}`);
    for (const { name } of allCalls())
      assert.ok(
        entriesOf(name).filter(({ state }) => state === 'Settled').length <= 1,
        `${name} settled twice, seed ${seed}: ${JSON.stringify(entriesOf(name))}`,
      );
  });

  test('RUN-76 RUN-77 a turn that went on to its end made all its calls, one that did not says why', () => {
    const outcomes: Record<string, number> = {};
    for (const order of orders) {
      const own = runs.filter((run) => orderOf(run) === order);
      const completed = own.filter((run) => run.status === 'Completed');
      assert.ok(completed.length <= 1, `${order}, seed ${seed}`);
      outcomes[completed.length === 1 ? 'completed' : 'failed'] =
        (outcomes[completed.length === 1 ? 'completed' : 'failed'] ?? 0) + 1;
      if (completed.length === 1) {
        for (const { name } of callNames(order))
          assert.ok(
            entriesOf(name).some(({ state }) => state === 'Settled'),
            `${name}, seed ${seed}`,
          );
        continue;
      }
      for (const run of own) {
        assert.deepEqual([run.status, run.error?.type], ['Failed', 'orphaned'], `${order}, seed ${seed}`);
        const unknown = entries.filter(
          ({ runId, state, effect }) => runId === run.id && state === 'Unknown' && !repeatable.has(effect),
        );
        for (const { toolCallId } of unknown)
          assert.match(run.error?.message ?? '', new RegExp(toolCallId), `${order}, seed ${seed}`);
      }
    }
    assert.ok((outcomes['completed'] ?? 0) > 0, `seed ${seed}`);
  });

  test('RUN-22 every log is gapless and has one terminal event, which is last', () => {
    for (const [runId, log] of logs) {
      assert.deepEqual(
        log.map(({ id }) => id),
        log.map((_, index) => index),
        `seed ${seed}`,
      );
      const ends = log.filter(({ event }) => /^run\.(completed|failed|canceled)$/.test(event));
      assert.deepEqual([ends.length, ends[0]], [1, log.at(-1)], `${runId}, seed ${seed}`);
    }
  });

  test('RUN-77 nothing is left of the steps of turns that are over', async () => {
    assert.deepEqual(await unfinishedTurns(site), [], `seed ${seed}`);
  });
});
