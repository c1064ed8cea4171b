import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ServiceProcess } from '../e2e/support.ts';
import { testClock } from '../support/clock.ts';
import { eventually, processMs } from '../support/eventually.ts';
import { openFleet } from '../support/fleet.ts';
import { leaves, takes } from './lease-history.ts';
import { openMembers, skip } from './members.ts';

const leaseMs = 3000;
const service = { SingletonExecution: { Enabled: true, LeaseDuration: '3s' } };

/** Whether a process does the work of a service, as its log tells. */
const works = (log: readonly { readonly message: string; readonly service?: unknown }[], name: string): boolean =>
  log.filter((line) => line.service === name && [takes, leaves].some((one) => one === line.message)).at(-1)?.message ===
  takes;

const ofFleet = (member: ServiceProcess): boolean => works(member.log(), 'approval-expiration');

test('JOB-41 a process that stands still for longer than its lease loses it, and stops the work when it wakes up', {
  skip,
}, async (t) => {
  const fleet = await openFleet({ processes: 3, service });
  t.after(() => fleet.close());
  const owner = await eventually('one does the work', () => fleet.members.find(ofFleet), processMs);
  const others = fleet.members.filter((member) => member !== owner);
  assert.deepEqual(others.filter(ofFleet), [], 'and no other');
  fleet.pause(owner);
  const next = await eventually('another one takes over', () => others.find(ofFleet), processMs);
  fleet.resume(owner);
  await eventually('the first one stops', () => !ofFleet(owner), processMs);
  assert.deepEqual(
    fleet.members.filter((member) => ofFleet(member)).map(({ pid }) => pid),
    [next.pid],
  );
  await fleet.end(next, 'kill');
  await eventually('the work moves on when its process is killed', () => fleet.members.find(ofFleet), processMs);
});

test('JOB-41 a process with a clock that is minutes ahead takes no lease that another one holds', {
  skip,
}, async (t) => {
  const clocks = [testClock(), testClock(), testClock()];
  clocks[1]?.setAhead(600_000);
  clocks[2]?.setBack(600_000);
  const members = await openMembers(
    t,
    clocks.map((clock) => ({ service, clock })),
  );
  const owners = () =>
    members.filter(({ log }) =>
      works(
        log.map(({ message, fields }) => ({ message, service: fields['service'] })),
        'approval-expiration',
      ),
    );
  const owner = await eventually('one does the work', () => owners()[0]);
  // Two renewals of each: whoever goes by a clock of their own would have taken it by then.
  const until = performance.now() + leaseMs;
  await eventually('the lease was renewed', () => performance.now() >= until);
  assert.deepEqual(owners(), [owner]);
  await owner.close();
  await eventually('another one has it', () => owners().some((member) => member !== owner));
});
