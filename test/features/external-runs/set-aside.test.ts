import assert from 'node:assert/strict';
import { forEachSharedService, type OpenApp, overHttp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { accept, externalRuns, newTraceId, openTraces, planner, post, span } from './traces-world.ts';

const user = 'zoraida';

const name =
  'spans that cannot be made a run are tried some times, set aside with their reason, and tried again after a start';
const scenario = async (open: OpenApp): Promise<void> => {
  const host = { Metrics: { Path: '/metrics' }, Traces: { SettleAfter: '60s' } };
  const app = await openTraces(open, { host });
  app.clock.stand();
  const mended = await app.store.refuse('runs');
  await accept(app, planner(app.clock.now() - 2000).all);
  const tries = () => app.log.filter(({ message }) => /^Spans from outside (could not be made|were set)/.test(message));
  await eventually('the last try', async () => {
    await app.clock.advance(60_000);
    return tries().some(({ message }) => /set aside/.test(message)) || null;
  });
  assert.equal(tries().length, 8);
  await app.clock.advance(600_000);
  assert.equal(tries().length, 8, 'what is set aside is left alone, and fills no log');
  const rows = await app.store.stored('spans of agents elsewhere');
  assert.equal(rows.length, 7);
  assert.ok(
    rows.every(({ set_aside: reason, run_id: runId }) => runId === null && /^[A-Za-z-]+$/.test(String(reason))),
  );
  const series = await (await fetch(`${app.url}/metrics`)).text();
  assert.match(series, /^acp_traces_spans_total\{acp_traces_outcome="set_aside"\} 7$/m);

  await mended();
  const runs = async (of: TestApp, count: number) =>
    eventually('the runs', async () => {
      await of.clock.advance(90_000);
      return (await externalRuns(of)).length >= count || null;
    });
  // Others become runs as ever.
  await accept(app, planner(app.clock.now() - 2000).all);
  await runs(app, 1);
  assert.equal((await externalRuns(app)).length, 1);
  await app.close();
  const second = await openTraces(open, { host, folder: app.folder, clock: app.clock });
  await runs(second, 2);
  assert.ok(second.log.some(({ message, fields }) => /are tried again$/.test(message) && fields['spans'] === 7));
};
overHttp(name, scenario);
forEachSharedService(name, scenario);

forEachSharedService(
  'a store that is away is no failed attempt: spans wait for as long as that takes, and are a run when it is back',
  async (open) => {
    const app = await openTraces(open, { host: { Traces: { SettleAfter: '60s' } } });
    app.clock.stand();
    const back = await app.store.lose('runs');
    await accept(app, planner(app.clock.now() - 2000).all);
    const said = (words: RegExp) => app.log.filter(({ message }) => words.test(message)).length;
    await eventually('more looks than there are attempts', async () => {
      await app.clock.advance(240_000);
      return said(/^Spans from outside could not be (looked through|made)|set aside/) > 12 || null;
    });
    assert.equal(said(/set aside|could not be made a run/), 0);
    await back();
    await eventually('the run', async () => {
      await app.clock.advance(60_000);
      return (await externalRuns(app)).length > 0 || null;
    });
    assert.equal((await externalRuns(app)).length, 1);
  },
);

const lineOf = async (app: TestApp, metric: string): Promise<string | undefined> =>
  (await (await fetch(`${app.url}/metrics`)).text()).split('\n').find((line) => line.startsWith(metric));

const gauge = 'acp_traces_set_aside';

const ageName =
  'what was set aside is gauged and goes when it is too old, and what waits is finished where traces are off again';
const ages = async (open: OpenApp): Promise<void> => {
  const host = {
    Metrics: { Path: '/metrics' },
    Traces: { SettleAfter: '10m', OrphansAfter: '20d', SetAsideFor: '4h' },
  };
  const app = await openTraces(open, { host });
  app.clock.stand();
  const begin = app.clock.now();
  const mended = await app.store.refuse('runs');
  await accept(app, planner(begin - 2000).all);
  const waits = { traceId: newTraceId(), begin: begin - 2000, from: 0, to: 10, operation: 'invoke_agent' };
  await accept(app, [span({ ...waits, parent: planner(begin).agent })]);
  const setAside = (times: number) =>
    eventually('the last try', async () => {
      await app.clock.advance(150_000);
      return (
        app.log.filter(({ message }) => /^Spans from outside were set aside/.test(message)).length === times || null
      );
    });
  await setAside(1);
  // Read at most once in a while, by the clock of the machine: once of each service.
  assert.equal(await lineOf(app, gauge), `${gauge} 7`);
  const removals = () => app.log.filter(({ message }) => /too old now, and were removed$/.test(message));
  await app.clock.advance(begin + 4 * 3_600_000 - 150_000 - app.clock.now());
  assert.equal(await app.store.count('spans of agents elsewhere'), 8);
  assert.deepEqual(removals(), []);
  await eventually('their end', async () => {
    await app.clock.advance(150_000);
    return removals().length > 0 || null;
  });
  const [removal] = removals();
  const { tenantId, spans } = removal?.fields ?? {};
  assert.deepEqual([removals().length, removal?.level, tenantId, spans], [1, 'error', 'default', 7]);
  assert.equal(await app.store.count('spans of agents elsewhere'), 1, 'what waits has its own time');
  const dropped = 'acp_traces_spans_total{acp_traces_outcome="dropped"}';
  assert.equal(await lineOf(app, dropped), `${dropped} 7`);

  await accept(app, planner(app.clock.now() - 2000).all);
  await setAside(2);
  await mended();
  await accept(app, planner(app.clock.now() - 2000).all);
  await app.close();
  await app.clock.advance(6 * 3_600_000);
  const off = { ...host, Traces: { ...host.Traces, Enabled: false } };
  const second = await openTraces(open, { host: off, folder: app.folder, clock: app.clock });
  assert.equal(await lineOf(second, gauge), `${gauge} 7`, 'a start does not hide them');
  assert.equal((await post(second, planner(second.clock.now() - 2000).all)).status, 404);
  await eventually('the run', async () => {
    await second.clock.advance(600_000);
    return (await externalRuns(second)).length > 0 || null;
  });
  assert.equal((await externalRuns(second)).length, 1, 'a start tries nothing again that is too old');
  assert.equal(second.log.filter(({ message }) => /too old now/.test(message)).length, 1);
};
overHttp(ageName, ages);

overHttp('spans that were set aside are told to a person, and erased with the rest of theirs', async (open) => {
  const app = await openTraces(open, {
    module: {
      attributionResolver: { resolve: async () => ({ userId: user, labels: {} }) },
      dataSubjectResolver: {
        resolve: async ({ id }: { id: string }) => ({ userIds: [id], sessionIds: [], ownerIds: [] }),
      },
    },
  });
  app.clock.stand();
  await app.store.refuse('runs');
  await accept(app, planner(app.clock.now() - 2000).all);
  await eventually('the last try', async () => {
    await app.clock.advance(60_000);
    return app.log.some(({ message }) => /set aside/.test(message)) || null;
  });
  assert.deepEqual(await externalRuns(app), []);
  const { body } = await app.client.dataSubjects.erase({ params: { id: user }, query: { dryRun: false } });
  assert.equal(body.rowsByTarget['spans'], 7);
  assert.equal(await app.store.count('spans of agents elsewhere'), 0);
});
