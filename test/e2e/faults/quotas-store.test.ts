import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { everyRun } from '../records.ts';
import { openSite, type ServiceProcess, type Site, until } from '../support.ts';
import { type Answer, call, openStream } from '../wire.ts';
import { put, usedBy, verified } from './quota-storm.ts';
import { type WriteStop, writeStops } from './refusing-disk.ts';

const maxRuns = 12;
const madeBefore = 9;
const usage = { inputTokens: 20, outputTokens: 10 };
const script = [{ reply: { text: 'Yes.', usage } }];
const quota = { agentName: 'helper', period: 'Daily', maxRuns };

interface Bench {
  readonly site: Site;
  readonly service: ServiceProcess;
  readonly stop: WriteStop;
}

const run = ({ service }: Bench, body: object = {}): Promise<Answer> =>
  call(`${service.url}/api/agents/helper/run`, { body: { message: 'Hi', stream: false, ...body } });

const readiness = async ({ service }: Bench): Promise<readonly [number, unknown]> => {
  const { status, json } = await call(`${service.url}/health/ready`);
  return [status, json()['status']];
};

const told = ({ service }: Bench, words: RegExp) => service.log().filter(({ message }) => words.test(message)).length;

const refusedWords = /^The (disk of the store is full|store cannot be written)/;

/** A service with a quota of twelve runs of which nine are made, and no writes from then on. */
const openBench = async (stop: WriteStop, quotas: object): Promise<Bench> => {
  const { dataFolder } = stop;
  const site = openSite({ script, service: { Quotas: quotas }, ...(dataFolder === undefined ? {} : { dataFolder }) });
  const service = await site.serve();
  const bench = { site, service, stop };
  for (const name of ['helper', 'other'])
    await put(service, '/api/agents', 'POST', { name, model: { provider: 'demo', model: 'm' } });
  await put(service, '/api/quotas', 'PUT', quota);
  for (let made = 0; made < madeBefore; made += 1) assert.equal((await run(bench)).status, 200);
  assert.deepEqual(await readiness(bench), [200, 'Healthy']);
  stop.stop(service.pid);
  return bench;
};

const works = async (bench: Bench): Promise<void> => {
  bench.stop.allow(bench.service.pid);
  await until('readiness that is Healthy again', async () => (await readiness(bench))[1] === 'Healthy');
  await until('word in the log that the store takes writes', () =>
    bench.service.log().some(({ message }) => /^The store takes what is written again/.test(message)),
  );
};

for (const { name, open } of writeStops) {
  const stop = open();
  const skip = typeof stop === 'string' ? stop : false;

  describe(`${name}, and runs that may be made without their admission`, { skip }, () => {
    let bench: Bench;
    before(async () => {
      assert.ok(typeof stop !== 'string');
      bench = await openBench(stop, {});
    });
    after(() => bench.site.close());

    test('QUOTA-12 QUOTA-23 no more runs than the quota allows, and each answer says what it lacks', async () => {
      const warnings = ['quota-not-written', 'recording-incomplete'];
      const first = await run(bench);
      assert.deepEqual([first.status, first.json()['warnings']], [200, warnings], first.text);
      assert.equal(first.headers['x-acp-warning'], warnings.join(', '));
      const streamed = await openStream(`${bench.service.url}/api/agents/helper/run`, { body: { message: 'Hi' } });
      assert.equal(streamed.headers['x-acp-warning'], warnings.join(', '));
      assert.equal(await streamed.ended, 'end');
      assert.deepEqual(JSON.parse(streamed.frames.at(-2)?.data ?? ''), { warnings });
      const { code, stdout, stderr } = await bench.site.acp(['run', 'helper', 'Hi', '--url', bench.service.url]);
      assert.equal(code, 0, stderr);
      assert.match(stdout, /Yes\./);
      assert.match(stderr, /warning: The store does not count this run for its quotas yet/);
      for (let more = 0; more < 18; more += 1) {
        const { status, text } = await run(bench);
        assert.equal(status, 429, text);
        assert.match(text, /"quotaUsed":12/);
      }
    });

    test('OBS-31 readiness is Degraded, and the log says so once', async () => {
      assert.deepEqual(await readiness(bench), [200, 'Degraded']);
      assert.equal(told(bench, refusedWords), 1);
      const used = await usedBy(bench.service, 'helper', 'Daily');
      assert.deepEqual([used.runs, used.tokens], [12, 360]);
    });

    test('QUOTA-23 what could not be written is written when the store takes it again', async () => {
      await works(bench);
      await until('a record of every run', async () => (await everyRun(bench.service)).length === maxRuns);
      const used = await usedBy(bench.service, 'helper', 'Daily');
      assert.deepEqual([used.runs, used.tokens], [12, 360]);
      assert.equal(await verified(bench.service), true);
      assert.equal((await run(bench)).status, 429);
      const statuses = (await everyRun(bench.service)).map(({ status }) => status);
      assert.deepEqual(statuses, Array(maxRuns).fill('Completed'));
      await bench.site.checkStore();
    });

    test('QUOTA-23 what is not written when the service ends is told to be lost', async () => {
      await put(bench.service, '/api/quotas', 'PUT', { ...quota, maxRuns: 100 });
      bench.stop.stop(bench.service.pid);
      assert.equal((await run(bench)).status, 200);
      const { code } = await bench.service.stop();
      assert.equal(code, 0);
      const lost = bench.service
        .log()
        .find(({ message }) => /^Runs could not be counted for their quotas/.test(message));
      assert.deepEqual([lost?.['runs'], lost?.['tokens']], [1, 30]);
    });
  });

  for (const quotas of [{ AllowOnStoreFailure: false }, { Strict: true }])
    describe(`${name}, and ${JSON.stringify(quotas)}`, { skip }, () => {
      let bench: Bench;
      let mine: WriteStop | string = 'not opened';
      before(async () => {
        mine = open();
        assert.ok(typeof mine !== 'string');
        bench = await openBench(mine, quotas);
      });
      after(async () => {
        await bench.site.close();
        if (typeof mine !== 'string') mine.remove();
      });

      test('QUOTA-23 no run without a written admission, however it is asked for', async () => {
        const refused = [
          await run(bench),
          await run(bench, { stream: undefined }),
          await call(`${bench.service.url}/api/agents/helper/run`, {
            body: { message: 'Hi' },
            headers: { prefer: 'respond-async' },
          }),
        ];
        for (const { status, headers, text } of refused) {
          assert.equal(status, 503, text);
          assert.match(text, /"code":"store-unavailable"/);
          assert.match(headers['retry-after'] ?? '', /^\d+$/);
        }
        const { code, stdout } = await bench.site.acp(['run', 'helper', 'Hi', '--url', bench.service.url]);
        assert.deepEqual([code, stdout], [8, '']);
        assert.deepEqual(await readiness(bench), [200, 'Degraded']);
        // No quota limits this one: a lost record never blocks an answer.
        const free = await call(`${bench.service.url}/api/agents/other/run`, {
          body: { message: 'Hi', stream: false },
        });
        assert.equal(free.status, 200, free.text);
      });

      test('QUOTA-18 a refused run has used nothing when the store takes writes again', async () => {
        await works(bench);
        assert.equal((await usedBy(bench.service, 'helper', 'Daily')).runs, madeBefore);
        for (let more = madeBefore; more < maxRuns; more += 1) assert.equal((await run(bench)).status, 200);
        assert.equal((await run(bench)).status, 429);
        const runsOf = (agentName: string) => everyRun(bench.service, { agentName });
        await until('the record of the run without a quota', async () => (await runsOf('other')).length > 0);
        assert.equal((await runsOf('helper')).length, maxRuns);
        assert.equal(await verified(bench.service), true);
      });
    });

  after(() => {
    if (typeof stop !== 'string') stop.remove();
  });
}
