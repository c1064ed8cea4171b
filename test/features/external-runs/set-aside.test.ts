import assert from 'node:assert/strict';
import { forEachSharedService, type OpenApp, overHttp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { accept, externalRuns, openTraces, planner } from './traces-world.ts';

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
