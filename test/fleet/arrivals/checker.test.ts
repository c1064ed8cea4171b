import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Arrivals, violationsOf } from './checker.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer U)[] ? U[] : T[K] };

const minute = 60_000;
const start = Date.parse('2026-05-14T10:00:00Z');
const request = (subscription: string, id: string, type: string, data: object) => ({
  ...{ subscription, id, isVerified: true },
  body: JSON.stringify({ type, timestamp: 'then', data }),
});

/** What all agree on; each case below makes one of them lie. */
const agreement = () => ({
  schedules: [
    // In Kathmandu it is a quarter to four then.
    {
      id: 'kathmandu',
      timeZone: 'Asia/Kathmandu',
      minutes: [46, 48],
      asked: start,
      settled: start,
      until: start + 3.5 * minute,
    },
  ],
  standstills: [] as { from: number; to: number }[],
  jobs: [
    { id: 'j1', scheduleId: 'kathmandu' as string | null, at: start + minute + 800, status: 'Completed' },
    { id: 'j2', scheduleId: 'kathmandu', at: start + 3 * minute + 5, status: 'Completed' },
    { id: 'j3', scheduleId: 'batch', at: start, status: 'Completed' },
  ],
  acknowledgedJobs: ['j3'],
  items: [
    { jobId: 'j1', name: 's', status: 'Completed', error: null as string | null },
    { jobId: 'j2', name: 's', status: 'Completed', error: null },
    { jobId: 'j3', name: 'a', status: 'Completed', error: null },
    { jobId: 'j3', name: 'b', status: 'Failed', error: 'outcome-unknown: nobody knows' },
    { jobId: 'j3', name: 'c', status: 'Failed', error: 'outcome-unknown: nobody knows' },
  ],
  runs: [
    { id: 'ra', status: 'Completed', error: null as string | null, ofTrigger: false },
    { id: 'rb', status: 'Failed', error: 'The process ended.', ofTrigger: false },
    { id: 't1', status: 'Completed', error: null, ofTrigger: true },
    {
      id: 't2',
      status: 'Failed',
      error: 'The turn cannot go on: call "c" had started, its outcome is unknown, and it is not repeated.',
      ofTrigger: true,
    },
    { id: 't3', status: 'Completed', error: null, ofTrigger: true },
  ],
  executions: new Map([
    ['s', 2],
    ['a', 1],
    ['b', 1],
    ['call1', 1],
    ['call2', 1],
    ['call3', 1],
  ]),
  callKeys: new Map([['key', 1]]),
  calls: new Map([
    ['call1', { accepted: ['t1'], isKnown: true }],
    ['call2', { accepted: ['t2'], isKnown: false }],
    // Whoever accepted it was gone before it said so.
    ['call3', { accepted: [] as string[], isKnown: true }],
  ]),
  requests: [
    ...['ra', 't1', 't3'].map((runId) => request('runs', `of-${runId}`, 'run.completed', { runId })),
    ...['rb', 't2'].map((runId) => request('runs', `of-${runId}`, 'run.failed', { runId })),
    ...['j1', 'j2', 'j3'].map((jobId) => request('jobs', `of-${jobId}`, 'job.completed', { jobId })),
    // A repeat.
    request('runs', 'of-ra', 'run.completed', { runId: 'ra' }),
  ],
  deliveries: ['ra', 'rb', 't1', 't2', 't3', 'j1', 'j2', 'j3'].map((id) => ({
    ...{ subscription: id.startsWith('j') ? 'jobs' : 'runs', id: `of-${id}`, status: 'Delivered' },
  })),
});
type Agreement = Writable<ReturnType<typeof agreement>>;

const namesOf = (world: Arrivals): string[] => [...new Set(violationsOf(world).map(({ name }) => name))];
const set = <T extends object>(target: T | undefined, change: Partial<T>): void => {
  assert.ok(target !== undefined);
  Object.assign(target, change);
};

test('where all agree nothing is reported', () => {
  assert.deepEqual(violationsOf(agreement()), []);
  const still = agreement();
  // Both occurrences have one job, since nobody was awake at the first one.
  still.jobs.splice(0, 1);
  still.deliveries.splice(5, 1);
  still.requests.splice(5, 1);
  still.items.splice(0, 1);
  still.executions.set('s', 1);
  still.standstills.push({ from: start + minute - 10, to: start + 3 * minute });
  assert.deepEqual(violationsOf(still), []);
  const killed = agreement();
  // The process of a job of one item was killed in the middle of it.
  set(killed.items[0], { status: 'Failed', error: 'outcome-unknown: nobody knows' });
  set(killed.jobs[0], { status: 'Failed' });
  killed.requests[5] = request('jobs', 'of-j1', 'job.failed', { jobId: 'j1' });
  assert.deepEqual(violationsOf(killed), []);
  const early = agreement();
  // It occurred while it was being saved.
  set(early.schedules[0], { settled: start + minute });
  assert.deepEqual(violationsOf(early), []);
});

const lies: Readonly<Record<string, readonly [lie: (world: Agreement) => void, names: readonly string[]]>> = {
  'an occurrence has no job': [({ jobs }) => set(jobs[1], { scheduleId: 'other' }), ['occurrence-lost']],
  'an occurrence has two jobs': [
    ({ jobs }) => set(jobs[0], { at: start + 3 * minute + 6 }),
    ['occurrence-twice', 'occurrence-lost'],
  ],
  'a job comes before its time': [
    ({ jobs }) => set(jobs[2], { scheduleId: 'kathmandu', at: start + 10 }),
    ['occurrence-invented'],
  ],
  'a job that somebody was told of is gone': [({ acknowledgedJobs }) => acknowledgedJobs.push('j4'), ['job-lost']],
  'a job has not ended': [
    ({ jobs }) => set(jobs[2], { status: 'Running' }),
    ['job-not-completed', 'delivery-lost', 'delivery-untrue'],
  ],
  'a job has failed although one of its items has not': [
    ({ jobs }) => set(jobs[2], { status: 'Failed' }),
    ['job-not-completed', 'delivery-lost', 'delivery-untrue'],
  ],
  'a job has completed of which nothing is known': [
    ({ items }) => set(items[0], { status: 'Failed', error: 'outcome-unknown: nobody knows' }),
    ['job-not-completed'],
  ],
  'an item has not ended': [({ items }) => set(items[3], { status: 'Pending' }), ['item-lost', 'item-twice']],
  'an item has failed for another reason': [
    ({ items }) => set(items[4], { error: 'lease-expired: it was lost' }),
    ['item-lost'],
  ],
  'a completed item was executed twice': [({ executions }) => executions.set('a', 2), ['item-twice']],
  'an item of unknown end was executed twice': [({ executions }) => executions.set('b', 2), ['item-twice']],
  'a completed item was not executed': [({ executions }) => executions.delete('a'), ['item-not-executed']],
  'something was executed that nobody asked for': [
    ({ executions }) => executions.set('z', 1),
    ['execution-of-nothing'],
  ],
  'a call came twice under its key': [({ callKeys }) => callKeys.set('key', 2), ['call-repeated']],
  'a call was accepted twice': [
    ({ calls }) => set(calls.get('call1'), { accepted: ['t1', 't3'] }),
    ['trigger-twice', 'trigger-lost'],
  ],
  'a call whose answer was lost has two runs': [
    ({ runs, requests, deliveries }) => {
      runs.push({ id: 't4', status: 'Completed', error: null, ofTrigger: true });
      requests.push(request('runs', 'of-t4', 'run.completed', { runId: 't4' }));
      deliveries.push({ subscription: 'runs', id: 'of-t4', status: 'Delivered' });
    },
    ['trigger-twice'],
  ],
  'a call whose answer was lost has no run': [({ runs }) => set(runs[4], { ofTrigger: false }), ['trigger-lost']],
  'the run of an accepted call is gone': [
    ({ calls }) => set(calls.get('call2'), { accepted: ['t9'] }),
    ['trigger-lost', 'trigger-twice'],
  ],
  'a call was never answered': [
    ({ calls }) => void calls.set('call4', { accepted: [], isKnown: false }),
    ['trigger-unanswered'],
  ],
  'what a call asked for was done twice': [({ executions }) => executions.set('call2', 2), ['trigger-twice']],
  'what a call asked for was not done': [({ executions }) => executions.delete('call1'), ['trigger-not-executed']],
  'the run of a call has failed for another reason': [
    ({ runs }) => set(runs[3], { error: 'The process that executed the run ended before the run did.' }),
    ['trigger-lost'],
  ],
  'a run has not ended': [
    ({ runs }) => set(runs[0], { status: 'Running' }),
    ['run-unfinished', 'delivery-lost', 'delivery-untrue'],
  ],
  'an end is not told': [
    ({ requests, deliveries }) => {
      requests.splice(1, 1);
      deliveries.splice(2, 1);
    },
    ['delivery-lost'],
  ],
  'a delivery never came': [({ requests }) => requests.splice(1, 1), ['delivery-lost']],
  'a delivery was given up': [({ deliveries }) => set(deliveries[0], { status: 'Failed' }), ['delivery-not-delivered']],
  'another end is told': [
    ({ requests }) => set(requests[1], { body: requests[1]?.body.replace('completed', 'failed') ?? '' }),
    ['delivery-lost', 'delivery-untrue'],
  ],
  'a delivery is of nobody': [({ deliveries }) => deliveries.splice(0, 1), ['delivery-unknown']],
  'a repeat has another id': [
    ({ requests, deliveries }) => {
      set(requests.at(-1), { id: 'again' });
      deliveries.push({ subscription: 'runs', id: 'again', status: 'Delivered' });
    },
    ['repeat-under-other-id'],
  ],
  'a repeat says something else': [
    ({ requests }) => set(requests.at(-1), { body: requests.at(-1)?.body.replace('then', 'now') ?? '' }),
    ['repeat-differs'],
  ],
  'a signature is wrong': [({ requests }) => set(requests[0], { isVerified: false }), ['signature-invalid']],
};

for (const [name, [lie, names]] of Object.entries(lies))
  test(`the checker of arrivals sees it when ${name}`, () => {
    const world = agreement();
    lie(world);
    assert.deepEqual(namesOf(world).sort(), [...names].sort());
  });
