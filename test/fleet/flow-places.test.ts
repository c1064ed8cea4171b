import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { openSite, type ServiceProcess } from '../e2e/support.ts';
import { call } from '../e2e/wire.ts';
import { eventually, processMs } from '../support/eventually.ts';
import { openFleet } from '../support/fleet.ts';
import { startEffectsServer } from './effects-server.ts';
import { skip } from './members.ts';

const rule = (tool: string) => ({
  when: { message: `/^${tool} (?<name>\\w+)/`, call: 1 },
  reply: { toolCalls: [{ name: tool, arguments: { name: '{{name}}' } }] },
});
const setup = {
  script: [rule('destructive'), rule('read'), { reply: { text: 'Done.' } }],
  service: {
    AsyncRun: { MaxAttempts: 2 },
    // As short as can be: nobody takes the job over before.
    Scheduling: { PollInterval: '1s', LeaseDuration: '10s', MaxConcurrentJobs: 8 },
    Egress: { AllowPrivateNetworkTargets: true },
  },
};

interface World {
  readonly members: readonly ServiceProcess[];
  /** Whoever is killed; one is there afterwards that takes jobs. */
  kill(member: ServiceProcess): Promise<void>;
  close(): Promise<void>;
}

const grounds = [
  {
    name: 'two processes on PostgreSQL',
    skip,
    async open(host: Readonly<Record<string, unknown>>): Promise<World> {
      const fleet = await openFleet({ ...setup, processes: 2, host });
      return { members: fleet.members, kill: (member) => fleet.end(member, 'kill'), close: fleet.close };
    },
  },
  {
    name: 'SQLite, started again',
    skip: false,
    async open(host: Readonly<Record<string, unknown>>): Promise<World> {
      const site = openSite({ ...setup, host });
      const members = [await site.serve()];
      return {
        members,
        async kill(member) {
          await member.kill();
          members.splice(0, 1, await site.serve());
        },
        close: site.close,
      };
    },
  },
] as const;

interface Job {
  readonly id: string;
  readonly status: string;
  readonly errorCode: string | null;
  readonly attempt: number;
  readonly leaseOwner: string | null;
}

for (const { name, skip: why, open } of grounds)
  test(`FLOW JOB-31 concurrency: the place of a process that was killed goes on, never two of a key at once, and nothing is lost [${name}]`, {
    skip: why,
    timeout: 180_000,
  }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'acp-places-'));
    const outside = await startEffectsServer();
    outside.writeTools(folder);
    const world = await open({ Tools: [folder] });
    t.after(async () => {
      await world.close();
      outside.close();
      rmSync(folder, { recursive: true, force: true });
    });
    /** Calls in the order in which they came; each waits until it is let go. */
    const arrived: string[] = [];
    /** By effect, which is the key: those that wait. */
    const waiting = new Map<string, string>();
    const overlaps: string[] = [];
    outside.holds = (called) => {
      const [effect = ''] = called.split('/');
      arrived.push(called);
      if (waiting.has(effect)) overlaps.push(`${called} during ${waiting.get(effect)}`);
      waiting.set(effect, called);
      return true;
    };
    const letGo = (): void => {
      waiting.clear();
      outside.letGo();
    };
    const url = () => world.members[0]?.url ?? assert.fail('nobody is there');
    const agent = {
      ...{ name: 'shop', model: { provider: 'demo', model: 'm' }, toolNames: ['destructive', 'read'] },
      parameters: [{ name: 'customer', kind: 'Text' }],
      instructions: 'For {{customer}}.',
      flow: { concurrency: { limit: 1, key: '/parameters/customer' } },
    };
    const saved = await call(`${url()}/api/agents`, { body: agent });
    assert.equal(saved.status, 201, saved.text);
    const ids = new Map<string, string>();
    for (const tool of ['destructive', 'read'])
      for (const n of [1, 2, 3]) {
        const body = { message: `${tool} ${tool}${n}`, parameters: { customer: tool } };
        const answer = await call(`${url()}/api/agents/shop/run`, { body, headers: { prefer: 'respond-async' } });
        assert.equal(answer.status, 202, answer.text);
        ids.set(`${tool}${n}`, answer.json<{ runId: string }>().runId);
      }
    // One read, so that what it says was so at one moment.
    const jobs = async (): Promise<readonly Job[]> => {
      const all = (await call(`${url()}/api/jobs?handlerKey=acp.agent-run&take=50`)).json<Job[]>();
      return [...ids.values()].map((id) => all.find((job) => job.id === id) ?? assert.fail(`job ${id} is gone`));
    };
    const isAtWork = ({ status }: Job) => status === 'Leased' || status === 'Running';
    const hasEnded = ({ status }: Job) => status === 'Completed' || status === 'Failed';
    const pidOf = ({ leaseOwner }: Job) => Number((leaseOwner ?? '').split(':').at(-2));

    await eventually('one of each key is at work', () => arrived.length === 2, processMs);
    const before = await jobs();
    const held = 'Pending flow-concurrency';
    assert.deepEqual(
      before.map(({ status, errorCode }) => `${status} ${errorCode}`),
      ['Running null', held, held, 'Running null', held, held],
    );
    const [first = assert.fail(), , , second = assert.fail()] = before;
    const victim = world.members.find(({ pid }) => pid === pidOf(first)) ?? assert.fail('nobody has the first');
    const isReadLost = pidOf(second) === victim.pid;
    await world.kill(victim);
    waiting.delete('Destructive');
    if (isReadLost) waiting.delete('Read');

    for (;;) {
      const all = await jobs();
      for (const key of [all.slice(0, 3), all.slice(3)])
        assert.ok(key.filter(isAtWork).length <= 1, JSON.stringify(key.map(({ status }) => status)));
      if (all.every(hasEnded)) break;
      const count = arrived.length;
      letGo();
      await eventually(
        'one more has come, or all have ended',
        async () => arrived.length > count || (await jobs()).every(hasEnded),
        processMs,
      );
    }
    assert.deepEqual(overlaps, []);
    const after = await jobs();
    // What must not be made twice is said to be unknown; what may be is made again, by an attempt that has its place.
    assert.deepEqual(
      after.map(({ status, attempt }) => `${status} ${attempt}`),
      ['Failed 2', 'Completed 1', 'Completed 1', `Completed ${isReadLost ? 2 : 1}`, 'Completed 1', 'Completed 1'],
    );
    assert.deepEqual(
      arrived.filter((called) => called.startsWith('Destructive')),
      [1, 2, 3].map((n) => `Destructive/destructive${n}`),
      'each once, oldest first',
    );
  });
