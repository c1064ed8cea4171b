import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { startServer } from '../providers/http/loopback-server.ts';
import { fakedTime, whyNoFakedTime } from '../support/faked-time.ts';
import { createDatabase, findPostgres } from '../support/postgres-server.ts';
import { openSite, until } from './support.ts';
import { type Answer, call } from './wire.ts';

const why = whyNoFakedTime();
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const hour = 3600;

const stores = [
  // The clock of the process is that of its store.
  {
    name: 'SQLite',
    skip: why ?? false,
    isServer: false,
    open: async () => ({ settings: {}, drop: async () => undefined }),
  },
  {
    name: 'PostgreSQL',
    skip: why ?? (findPostgres() === null && 'no PostgreSQL server is to be found'),
    isServer: true,
    async open() {
      const { url, drop } = await createDatabase();
      return { settings: { Provider: 'Postgres', Postgres: { ConnectionString: url } }, drop };
    },
  },
];

/** A window of at most an hour that does not end while the test is at it. */
const windowNow = (): { readonly window: string; readonly ms: number } => {
  const restOf = (minutes: number): number => minutes * 60_000 - (Date.now() % (minutes * 60_000));
  const minutes = [60, 53, 47, 41].find((length) => restOf(length) > 6 * 60_000) ?? 37;
  return { window: `${minutes}m`, ms: minutes * 60_000 };
};

interface Job {
  readonly id: string;
  readonly status: string;
  readonly scheduleId: string | null;
}

interface Delivery {
  readonly nextAttemptAt: string | null;
}

for (const { name, skip, isServer, open } of stores)
  describe(`a process whose clock is set by an hour, on ${name}`, { skip }, () => {
    test('JOB-15 JOB-33 WEBHOOK-30 TRIGGER-15 TRIGGER-20 occurrences, retries, leases and calls go on, forward and back', {
      timeout: 240_000,
    }, async (t) => {
      const { settings, drop } = await open();
      let answers = 204;
      const receiver = await startServer((_request, response) => response.writeHead(answers).end());
      const site = openSite({
        service: {
          ...(isServer ? { Persistence: settings } : {}),
          Scheduling: { PollInterval: '1s' },
          SingletonExecution: { Enabled: true, LeaseDuration: '3s' },
          Webhooks: { AllowInsecureHttp: true, AllowPrivateNetworkTargets: true, RetryDelays: ['15s'] },
          WebhookSecrets: { crm: secret },
          TriggerSecrets: { crm: secret },
        },
      });
      t.after(async () => {
        await site.close();
        await receiver.close();
        await drop();
      });
      const clock = fakedTime(site.folder);
      const service = await site.serve(clock.options);
      const put = async (path: string, body: object): Promise<Answer> => {
        const answer = await call(service.url + path, { method: 'PUT', body });
        assert.equal(answer.status, 200, answer.text);
        return answer;
      };
      const jobs = async (): Promise<Job[]> => (await call(`${service.url}/api/jobs?take=200`)).json<Job[]>();
      const agent = { name: 'helper', model: { provider: 'demo', model: 'm' } };
      assert.equal((await call(`${service.url}/api/agents`, { body: agent })).status, 201);
      const schedule = { handlerKey: 'acp.agent-batch', targetName: 'helper', payload: ['Hi'] };
      // Far enough from now: the test passes its times by setting the clock.
      const minute = (new Date().getUTCMinutes() + 30) % 60;
      const cron = `${minute} * * * *`;
      const saved = (await put('/api/schedules/hourly', { ...schedule, cron })).json<{
        id: string;
        nextRunAt: string;
      }>();
      const occurred = async (): Promise<number> =>
        (await jobs()).filter(({ scheduleId }) => scheduleId === saved.id).length;
      const nextRunAt = async (): Promise<string> =>
        (await call(`${service.url}/api/schedules/hourly`)).json<{ nextRunAt: string }>().nextRunAt;
      await put('/api/triggers/ticket', { targetName: 'helper', secretConfigurationKey: 'Service:TriggerSecrets:crm' });
      const runIds = new Map<string, string>();
      /** What the receiver was sent of the run that a call has started: the `webhook-id` of each attempt. */
      const attempts = (id: string): string[] =>
        receiver.received
          .filter(({ body }) => body.includes(runIds.get(id) ?? 'none'))
          .map(({ headers }) => String(headers['webhook-id']));
      const send = async (id: string, aheadSeconds: number): Promise<string> => {
        const at = new Date(Date.now() + aheadSeconds * 1000);
        const headers = {
          'content-type': 'text/plain',
          'webhook-id': id,
          'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
          'webhook-signature': new Webhook(secret).sign(id, at, 'Hi'),
        };
        const answer = await call(`${service.url}/api/triggers/default/ticket`, {
          method: 'POST',
          body: 'Hi',
          headers,
        });
        const { code = '', runId } = answer.json<{ code?: string; runId?: string }>();
        if (runId !== undefined) runIds.set(id, runId);
        return `${answer.status} ${code}`.trim();
      };
      await put('/api/webhooks/crm', {
        url: receiver.url,
        events: ['run.completed'],
        secretConfigurationKey: 'Service:WebhookSecrets:crm',
      });
      assert.equal(await send('evt-1', 0), '202');
      await until('the end of its run was delivered', () => attempts('evt-1').length === 1);
      assert.equal(await occurred(), 0);

      // Forward. A server's clock is that of a store on one, whatever a process of it thinks.
      clock.set(hour);
      const atServer = isServer ? 0 : hour;
      if (!isServer) {
        await until('what was missed has made one job', async () => (await occurred()) === 1);
        assert.equal(Date.parse(await nextRunAt()), Date.parse(saved.nextRunAt) + hour * 1000);
      }
      assert.equal(await send('evt-2', atServer - 2 * 330), '401 unauthenticated', 'a late call');
      assert.equal(await send('evt-2', atServer), '202');
      await until('leases lapse and are taken again', () => attempts('evt-2').length === 1);

      // Back, while a delivery waits for its retry.
      // What the process looks at every second it has seen by then: a clock that nobody saw set forward is not set back.
      await pause(5000);
      answers = 500;
      assert.equal(await send('evt-3', atServer), '202');
      await until('an attempt has failed', () => attempts('evt-3').length === 1);
      await until('its retry has a time', async () => {
        const deliveries = (await call(`${service.url}/api/webhooks/crm/deliveries`)).json<Delivery[]>();
        return deliveries.some(({ nextAttemptAt }) => nextAttemptAt !== null);
      });
      clock.set(0);
      answers = 204;
      assert.equal(await send('evt-1', 0), '409 trigger-replayed', 'its reservation stands');
      assert.equal(await send('evt-3', 0), '409 trigger-replayed');
      assert.equal(await send('evt-4', 2 * 330), '401 unauthenticated', 'a call of the hour that is gone');
      assert.equal(await send('evt-4', 0), '202');
      await until('what came since was delivered', () => attempts('evt-4').length === 1);
      await until('the retry came in its time', () => attempts('evt-3').length === 2);
      assert.equal(new Set(attempts('evt-3')).size, 1, 'under the same webhook-id');
      assert.equal(await occurred(), isServer ? 0 : 1, 'no occurrence comes a second time');

      // A save of another cron reckons the next time anew, which has had its job.
      const other = { ...schedule, cron: `${minute},${minute} * * * *` };
      const again = (await put('/api/schedules/hourly', other)).json<{ nextRunAt: string }>();
      assert.equal(again.nextRunAt, saved.nextRunAt);
      clock.set(hour);
      if (!isServer) {
        await until('the schedule has moved on', async () => (await nextRunAt()) !== saved.nextRunAt);
        assert.equal(await occurred(), 1, 'no occurrence has two jobs');
        clock.set(2 * hour);
        await until('the next occurrence has its job', async () => (await occurred()) === 2);
      }
      assert.ok((await jobs()).every(({ status }) => status !== 'Failed'));
      const { code } = await service.stop();
      assert.equal(code, 0);
    });

    test('APPR-11 FLOW rateLimit, debounce: requests expire, windows open and quiet times end by the clock of the store', {
      timeout: 240_000,
    }, async (t) => {
      const { settings, drop } = await open();
      const guarded = { name: 'guarded', description: 'Asks.', requiresApproval: true, effect: 'Read' };
      const site = openSite({
        service: {
          ...(isServer ? { Persistence: settings } : {}),
          Scheduling: { PollInterval: '1s', MaxConcurrentJobs: 8 },
          Approvals: { DefaultExpiration: '30m', ScanInterval: '1s' },
          Egress: { AllowPrivateNetworkTargets: true },
        },
        host: { Tools: ['tools'] },
        script: [
          { when: { message: 'ask', call: 1 }, reply: { toolCalls: [{ name: 'guarded', arguments: {} }] } },
          { reply: { text: 'Done.' } },
        ],
      });
      mkdirSync(join(site.folder, 'tools'), { recursive: true });
      const request = { method: 'GET', url: 'http://127.0.0.1:1/' };
      writeFileSync(
        join(site.folder, 'tools', 'guarded.yaml'),
        JSON.stringify({ ...guarded, inputSchema: { type: 'object' }, request }),
      );
      t.after(async () => {
        await site.close();
        await drop();
      });
      const clock = fakedTime(site.folder);
      const service = await site.serve(clock.options);
      const model = { provider: 'demo', model: 'm' };
      const { window, ms: windowMs } = windowNow();
      for (const agent of [
        { name: 'clerk', toolNames: ['guarded'] },
        { name: 'limited', flow: { rateLimit: { limit: 1, window } } },
        { name: 'quiet', flow: { debounce: { window: '30m' } } },
      ]) {
        const answer = await call(`${service.url}/api/agents`, { body: { ...agent, model } });
        assert.equal(answer.status, 201, answer.text);
      }
      const enqueue = async (agent: string, body: object): Promise<string> => {
        const headers = { prefer: 'respond-async' };
        const answer = await call(`${service.url}/api/agents/${agent}/run`, { body, headers });
        assert.equal(answer.status, 202, answer.text);
        return answer.json<{ runId: string }>().runId;
      };
      const jobOf = async (id: string) =>
        (await call(`${service.url}/api/jobs/${id}`)).json<{
          job: { status: string; errorCode: string | null; scheduledFor: string };
        }>().job;
      const hasStatus = (id: string, status: string) =>
        until(`${id} is ${status}`, async () => (await jobOf(id)).status === status);
      const limited = async (): Promise<string> => {
        const id = await enqueue('limited', { message: 'Hi' });
        await until('it has ended', async () => ['Completed', 'Canceled'].includes((await jobOf(id)).status));
        return (await jobOf(id)).errorCode ?? 'let in';
      };
      /** The requests that people can decide. */
      const pending = async (): Promise<string[]> =>
        (await call(`${service.url}/api/approvals/pending`))
          .json<{ id: string; sessionId: string }[]>()
          .map((row) => row.sessionId);
      const ask = async (sessionId: string): Promise<void> => {
        await enqueue('clerk', { message: 'ask', sessionId });
        await until('somebody is asked', async () => (await pending()).includes(sessionId));
      };
      const over = 'flow-rate-limited';

      await ask('first');
      assert.deepEqual([await limited(), await limited()], ['let in', over]);
      const quiet = await enqueue('quiet', { message: 'Hi' });
      assert.equal((await jobOf(quiet)).errorCode, 'flow-debounced');

      // Forward: of a store that has its process's clock all of it is over, of a server's nothing.
      clock.set(hour);
      if (isServer) {
        await pause(3000);
        assert.deepEqual([(await pending()).includes('first'), await limited()], [true, over]);
        assert.equal((await jobOf(quiet)).errorCode, 'flow-debounced');
      } else {
        await until('the request has expired', async () => !(await pending()).includes('first'));
        await hasStatus(quiet, 'Completed');
        assert.deepEqual([await limited(), await limited()], ['let in', over]);
      }
      await ask('second');
      const next = await enqueue('quiet', { message: 'Hi' });
      // The process has seen its clock set forward: else it would not know that it is set back.
      await pause(5000);

      clock.set(0);
      if (!isServer)
        await until('the quiet time ends as much earlier', async () => {
          const leftMs = Date.parse((await jobOf(next)).scheduledFor) - Date.now();
          return leftMs > 25 * 60_000 && leftMs < 31 * 60_000;
        });
      await pause(2000);
      assert.equal(await limited(), over, 'the window that was taken is none that opens again');
      assert.equal((await jobOf(next)).errorCode, 'flow-debounced', 'it is not let in early');
      assert.ok((await pending()).includes('second'), 'who was asked may answer');
      assert.equal((await pending()).includes('first'), isServer, 'what has expired stays so');

      if (!isServer) {
        clock.set(2 * hour);
        await until('the request has expired', async () => (await pending()).length === 0);
        await hasStatus(next, 'Completed');
        assert.equal(await limited(), 'let in');
      }
      assert.ok(windowMs <= hour * 1000);
      const { code } = await service.stop();
      assert.equal(code, 0);
    });
  });
