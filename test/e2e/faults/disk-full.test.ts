import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { everyRun, unfinishedRuns } from '../records.ts';
import { openSite, type ServiceProcess, type Site, until } from '../support.ts';
import { type Answer, call, type EventStream, openStream, readLog } from '../wire.ts';
import { mountDisk } from './refusing-disk.ts';

const model = { provider: 'demo', model: 'm' };
const script = [
  { when: { message: '/^talk (.*)$/' }, reply: { text: '{{1}}'.repeat(40), chunkSize: 10_000, delay: '100ms' } },
  { when: { message: 'pause' }, reply: { text: 'Late.', stall: '3s' } },
  { reply: { text: 'Done.' } },
];
const talk = `talk ${'x'.repeat(9999)}.`;

const disk = mountDisk(6);

// Only the superuser may mount; where nobody may, nothing else gives a real full disk without a risk to the machine.
describe('a full disk', { skip: disk === null ? 'this user may not mount a file system' : false }, () => {
  let site: Site;
  let service: ServiceProcess;
  const cutShort: EventStream[] = [];
  const unrecorded: string[] = [];

  const run = (body: object, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
    call(`${service.url}/api/agents/talker/run`, { body: { message: 'hello', stream: false, ...body }, headers });
  const stream = (body: object): Promise<EventStream> =>
    openStream(`${service.url}/api/agents/talker/run`, { body: { message: talk, ...body } });
  const endedRecording = () =>
    service.log().filter(({ message }) => message === 'Recording of a run failed and has ended');
  const assertGapless = ({ frames }: Pick<EventStream, 'frames'>): void => {
    const logged = frames.filter(({ event }) => event !== 'warning');
    assert.deepEqual(
      logged.map(({ id }) => id),
      logged.map((_, index) => index),
    );
  };
  /** Just before its end, and outside the log. */
  const warningOf = ({ frames }: Pick<EventStream, 'frames'>): unknown => {
    const frame = frames.at(-2);
    assert.deepEqual([frame?.event, frame?.id], ['warning', null]);
    return JSON.parse(frame?.data ?? '');
  };

  before(async () => {
    assert.ok(disk !== null);
    site = openSite({ script, dataFolder: join(disk.folder, 'data') });
    service = await site.serve();
    const created = await call(`${service.url}/api/agents`, { body: { name: 'talker', model } });
    assert.equal(created.status, 201, created.text);
  });

  after(async () => {
    await site.close();
    disk?.remove();
  });

  test('RUN-28 OBS-7 a run in progress is answered to its end; its recording ends', async () => {
    const first = await run({ sessionId: 'kept' });
    assert.equal(first.status, 200, first.text);
    const streams = [await stream({}), await stream({ sessionId: 'talking' })];
    cutShort.push(...streams);
    for (const opened of streams) await opened.atLeast(5);
    const keyed = run({ message: 'pause' }, { 'idempotency-key': 'begun' });
    // A key is marked before its run begins.
    await until('the run of the key', async () =>
      (await everyRun(service, { status: 'Running' })).some(({ isStreaming }) => !isStreaming),
    );
    disk?.fill();
    for (const opened of streams) {
      assert.equal(await opened.ended, 'end');
      assertGapless(opened);
      assert.equal(opened.frames.at(-1)?.event, 'run.completed');
      assert.deepEqual(warningOf(opened), { warnings: ['recording-incomplete'] });
      const { output } = JSON.parse(opened.frames.at(-1)?.data ?? '') as { output: string };
      assert.equal(output.length, 400_000);
    }
    const answer = await keyed;
    assert.deepEqual([answer.status, answer.json()['output']], [200, 'Late.']);
    assert.ok(service.log().some(({ message }) => message.includes('idempotency key could not be stored')));
    for (const { runId } of streams) assert.ok(endedRecording().some((line) => line['runId'] === runId));
  });

  test('what has to be stored is refused with 503 and Retry-After, and says nothing of files', async () => {
    const refusals = [
      await run({}, { prefer: 'respond-async' }),
      await run({}, { 'idempotency-key': 'full' }),
      await run({ sessionId: 'kept' }),
      await run({ sessionId: 'new' }),
      await call(`${service.url}/api/agents`, { body: { name: 'another', model } }),
      await call(`${service.url}/api/api-keys`, { body: { name: 'another', scopes: ['RunsRead'] } }),
    ];
    for (const { status, headers, text } of refusals) {
      assert.equal(status, 503, text);
      assert.match(text, /"code":"store-unavailable"/);
      assert.doesNotMatch(text, /SQLITE|acp\.db/);
      assert.match(headers['retry-after'] ?? '', /^\d+$/);
    }
  });

  test('RUN-28 a run that needs nothing stored is answered, says so, and has its record later', async () => {
    const before = endedRecording().length;
    const warnings = ['quota-not-written', 'recording-incomplete'];
    const answer = await run({});
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.json()['warnings'], warnings);
    assert.equal(answer.headers['x-acp-warning'], warnings.join(', '));
    const opened = await stream({ message: 'hello' });
    assert.equal(await opened.ended, 'end');
    assertGapless(opened);
    assert.equal(opened.frames.at(-1)?.event, 'run.completed');
    assert.deepEqual(warningOf(opened), { warnings });
    for (const runId of [answer.headers['x-run-id'], opened.runId]) {
      assert.equal((await call(`${service.url}/api/runs/${runId}`)).status, 404);
      unrecorded.push(String(runId));
    }
    assert.equal(endedRecording().length, before + 2);
  });

  test('reads go on, and so does the check of the store', async () => {
    assert.equal((await call(`${service.url}/api/agents/talker`)).status, 200);
    assert.ok((await call(`${service.url}/api/runs`)).json<unknown[]>().length > 0);
    assert.equal((await call(`${service.url}/health/live`)).status, 200);
    await site.checkStore();
  });

  test('with space again everything works as before, without a restart', async () => {
    disk?.free();
    // The runs that could not be closed are closed now, with a log that says less and nothing wrong.
    for (const { runId, frames } of cutShort) {
      const log = await readLog(service.url, runId);
      assertGapless({ frames: log });
      assert.deepEqual(log.slice(0, -1), frames.slice(0, log.length - 1));
      assert.equal(log.at(-1)?.event, 'run.completed');
      const record = (await call(`${service.url}/api/runs/${runId}`)).json();
      assert.deepEqual([record['status'], record['eventCount']], ['Completed', log.length]);
    }
    for (const runId of unrecorded) {
      const record = await until('the record of the run', async () => {
        const answer = await call(`${service.url}/api/runs/${runId}`);
        return answer.status === 200 && answer;
      });
      assert.equal(record.json()['status'], 'Completed');
      const log = await readLog(service.url, runId);
      assertGapless({ frames: log });
      assert.deepEqual([log[0]?.event, log.at(-1)?.event], ['run.started', 'run.completed']);
    }
    const answer = await run({ sessionId: 'kept' });
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual([answer.json()['warnings'], answer.headers['x-acp-warning']], [undefined, undefined]);
    assert.equal((await call(`${service.url}/api/runs/${answer.headers['x-run-id']}`)).status, 200);
    const accepted = await run({ stream: undefined }, { prefer: 'respond-async' });
    assert.equal(accepted.status, 202, accepted.text);
    const log = await readLog(service.url, String(accepted.headers['x-run-id']));
    assert.equal(log.at(-1)?.event, 'run.completed');
  });

  test('a process that is killed while the disk is full leaves a store that the next start explains', async () => {
    const opened = await stream({});
    await opened.atLeast(5);
    disk?.fill();
    await until('the end of its recording', () => endedRecording().some(({ runId }) => runId === opened.runId));
    await service.kill();
    disk?.free();
    await site.checkStore();
    service = await site.serve();
    const log = await readLog(service.url, opened.runId);
    assertGapless({ frames: log });
    assert.match(log.at(-1)?.data ?? '', /"type":"orphaned"/);
    assert.deepEqual(await unfinishedRuns(service), []);
    assert.equal((await service.stop()).code, 0);
    await site.checkStore();
  });

  test('a start on a full disk serves what can be read, and writes once there is room', async () => {
    const readiness = async () => (await call(`${service.url}/health/ready`)).json()['status'];
    disk?.fill();
    service = await site.serve();
    // What the start could not use it has given back.
    disk?.fill();
    assert.ok(
      service
        .log()
        .some(({ message, path }) => /^The disk of the store is full/.test(message) && path === site.storePath),
    );
    assert.equal((await call(`${service.url}/api/agents/talker`)).status, 200);
    assert.ok((await call(`${service.url}/api/runs`)).json<unknown[]>().length > 0);
    const refused = await call(`${service.url}/api/agents`, { body: { name: 'another', model } });
    assert.equal(refused.status, 503, refused.text);
    assert.equal(await readiness(), 'Degraded');
    disk?.free();
    await until('readiness that is Healthy again', async () => (await readiness()) === 'Healthy');
    assert.equal((await call(`${service.url}/api/agents`, { body: { name: 'another', model } })).status, 201);
    assert.equal((await service.stop()).code, 0);
    await site.checkStore();
  });

  test('a start on a full disk without a store says so', async () => {
    const folder = join(disk?.folder ?? '', 'other');
    mkdirSync(folder);
    disk?.fill();
    const args = ['serve', '--set', `Service:Persistence:Sqlite:ConnectionString=${join(folder, 'acp.db')}`];
    const { code, stdout, stderr } = await site.acp(args);
    assert.equal(code, 8, stderr);
    assert.equal(stdout, '');
    assert.match(stderr, /disk is full; make room there, then start again/);
    assert.ok(stderr.includes(folder), stderr);
    disk?.free();
    const started = await site.serve({ args: args.slice(1) });
    assert.equal((await started.stop()).code, 0);
  });
});
