import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createQuotaReplay,
  type PastRun,
  type PastThreshold,
  replayStart,
} from '../../../src/features/quotas/quota-replay.ts';
import type { QuotaRule } from '../../../src/features/quotas/quotas.store.ts';

const rule = (more: Partial<QuotaRule>): QuotaRule => ({
  id: 'r',
  tenantId: 'default',
  agentName: '',
  period: 'Daily',
  maxRuns: null,
  maxTokens: null,
  maxCostMicros: null,
  enabled: true,
  labels: null,
  createdAt: 0,
  updatedAt: 0,
  ...more,
});

const minute = 60_000;
let made = 0;
const run = (start: string, more: Partial<PastRun> & { readonly minutes?: number } = {}): PastRun => {
  made += 1;
  const startedAt = Date.parse(start);
  const { minutes = 1, ...rest } = more;
  const endedAt = startedAt + minutes * minute;
  const known = { tokens: 0, costMicros: 0, counts: true, mayWait: true };
  return { id: `run-${made}`, agentName: 'helper', startedAt, endedAt, ...known, ...rest };
};

const kinds = (rules: readonly QuotaRule[], runs: readonly PastRun[], timeZone = 'UTC'): string[] => {
  const replay = createQuotaReplay(rules, timeZone, [], () => undefined);
  return runs.map((past) => replay.next(past).kind);
};

test('policy test: days begin at local midnight, and a new one is empty again', () => {
  const starts = ['2026-03-10T22:10:00Z', '2026-03-10T22:30:00Z', '2026-03-10T23:10:00Z', '2026-03-10T23:30:00Z'];
  const runs = starts.map((start) => run(start));
  assert.deepEqual(kinds([rule({ maxRuns: 1 })], runs), ['Admitted', 'Refused', 'Refused', 'Refused']);
  assert.deepEqual(kinds([rule({ maxRuns: 1 })], runs, 'Europe/Berlin'), [
    'Admitted',
    'Refused',
    'Admitted',
    'Refused',
  ]);
  assert.deepEqual(kinds([rule({ maxRuns: 3, period: 'Monthly' })], runs, 'Europe/Berlin').at(-1), 'Refused');
});

test('policy test: use counts from the end of a run on, so that those beside it are held back or refused', () => {
  const limited = [rule({ maxTokens: 100 })];
  const first = run('2026-03-10T10:00:00Z', { tokens: 40 });
  const long = run('2026-03-10T10:05:00Z', { tokens: 40, minutes: 30 });
  const beside = run('2026-03-10T10:10:00Z', { tokens: 40 });
  const queued = run('2026-03-10T10:11:00Z', { tokens: 40, mayWait: false });
  // 40 are used, one in progress and the new one may use 40 each.
  assert.deepEqual(kinds(limited, [first, long, beside]), ['Admitted', 'Admitted', 'Held']);
  assert.deepEqual(kinds(limited, [first, long, queued]), ['Admitted', 'Admitted', 'Refused']);
  const after = run('2026-03-10T11:00:00Z', { tokens: 40 });
  const last = run('2026-03-10T12:00:00Z', { tokens: 40 });
  assert.deepEqual(kinds(limited, [first, long, after, last]), ['Admitted', 'Admitted', 'Admitted', 'Refused']);
});

test('policy test: a run that goes on is never refused, and its use counts', () => {
  const limited = [rule({ maxTokens: 50, agentName: 'helper' })];
  const runs = [
    run('2026-03-10T10:00:00Z', { tokens: 30 }),
    run('2026-03-10T11:00:00Z', { tokens: 30, counts: false }),
    run('2026-03-10T12:00:00Z'),
    run('2026-03-10T12:00:00Z', { agentName: 'other' }),
  ];
  assert.deepEqual(kinds(limited, runs), ['Admitted', 'Admitted', 'Refused', 'Admitted']);
});

test('policy test: a threshold is told once for each period, at the moment that crossed it', () => {
  const crossed: PastThreshold[] = [];
  const replay = createQuotaReplay([rule({ maxTokens: 100 })], 'UTC', [50, 100], (one) => crossed.push(one));
  const first = run('2026-03-10T10:00:00Z', { tokens: 60 });
  for (const past of [first, run('2026-03-10T10:30:00Z', { tokens: 10 }), run('2026-03-11T10:00:00Z', { tokens: 120 })])
    replay.next(past);
  replay.advance(Date.parse('2026-03-12T00:00:00Z'));
  assert.deepEqual(
    crossed.map(({ periodStart, percent, at }) => [periodStart, percent, new Date(at).toISOString()]),
    [
      ['2026-03-10', 50, '2026-03-10T10:01:00.000Z'],
      ['2026-03-11', 50, '2026-03-11T10:01:00.000Z'],
      ['2026-03-11', 100, '2026-03-11T10:01:00.000Z'],
    ],
  );
});

test('policy test: counters are filled from the period before the window on', () => {
  const since = Date.parse('2026-03-10T12:00:00Z');
  const start = (rules: readonly QuotaRule[]) => new Date(replayStart(rules, 'Europe/Berlin', since)).toISOString();
  assert.equal(start([rule({})]), '2026-03-08T23:00:00.000Z');
  assert.equal(start([rule({}), rule({ period: 'Monthly' })]), '2026-01-31T23:00:00.000Z');
});
