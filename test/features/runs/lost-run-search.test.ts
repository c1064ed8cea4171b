import assert from 'node:assert/strict';
import { forEachSharedService, type TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { collect, Gate, getRun, stream, waitingSetup } from './run-calls.ts';

const statusOf = async ({ client }: TestApp, runId: string): Promise<string> => (await getRun(client, runId)).status;

forEachSharedService(
  'RUN-74 the process that takes over the search for lost runs begins with one, not with the pause between two',
  async (open) => {
    const gate = new Gate();
    const clocks = { one: testClock(), two: testClock(), three: testClock() };
    const service = { RunReconciliation: { Enabled: true }, SingletonExecution: { Enabled: true } };
    const setup = { ...waitingSetup(gate), service };
    const one = await open({ ...setup, clock: clocks.one });
    const rest = { ...setup, agents: [], folder: one.folder };
    const two = await open({ ...rest, clock: clocks.two });
    const three = await open({ ...rest, clock: clocks.three });
    const { runId, frames } = await stream(one.client, 'helper', 'wait');
    await gate.reached;
    // After 30 s the run gives a sign of life, its last one; so it counts as lost from 330 s on.
    await clocks.one.advance(30_000);
    clocks.one.stand();
    // The second process has the search from 80 s on, at the latest, and is gone with it before the run is lost.
    for (let seconds = 0; seconds < 320; seconds += 10) await clocks.two.advance(10_000);
    clocks.two.stand();
    // Its lease has lapsed at 400 s, at the latest.
    for (let seconds = 0; seconds < 410; seconds += 10) await clocks.three.advance(10_000);
    await eventually('the run is closed', async () => (await statusOf(three, runId)) === 'Failed');
    gate.open();
    assert.equal((await collect(frames)).at(-1)?.event, 'run.failed');
    await two.close();
  },
);

forEachSharedService(
  'RUN-74 a process that starts looks for lost runs as soon as it has given two signs of life itself, and not before',
  async (open) => {
    const gate = new Gate();
    const service = { RunReconciliation: { Enabled: true, ScanInterval: '1h' } };
    const setup = { ...waitingSetup(gate), service };
    const still = testClock();
    const one = await open({ ...setup, clock: still });
    const { runId, frames } = await stream(one.client, 'helper', 'wait');
    await gate.reached;
    await still.advance(30_000);
    still.stand();
    const later = testClock();
    later.setAhead(600_000);
    const two = await open({ ...setup, agents: [], folder: one.folder, clock: later });
    await later.advance(31_000);
    assert.equal(await statusOf(two, runId), 'Running');
    await later.advance(30_000);
    await eventually('the run is closed', async () => (await statusOf(two, runId)) === 'Failed');
    gate.open();
    assert.equal((await collect(frames)).at(-1)?.event, 'run.failed');
  },
);
