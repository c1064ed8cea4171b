import assert from 'node:assert/strict';
import type { HeardEvent, ListenedRun } from '../../../src/engine/record/run-listeners.ts';
import { forEachService } from '../../support/app.ts';
import { calls, decide, openApprovals, queueWaiting } from '../approvals/approval-world.ts';
import {
  enqueue,
  eventsOf,
  followToEnd,
  Gate,
  listRuns,
  readEvents,
  refusal,
  runJson,
  runStream,
  tool,
} from '../runs/run-calls.ts';

/** A listener that keeps what it hears, by run. */
const ear = (name: string, fails: (event: HeardEvent) => boolean = () => false) => {
  const heard = new Map<string, HeardEvent[]>();
  const runs = new Map<string, ListenedRun>();
  const ends = new Map<string, PromiseWithResolvers<void>>();
  const endOf = (runId: string): PromiseWithResolvers<void> => {
    const end = ends.get(runId) ?? Promise.withResolvers<void>();
    ends.set(runId, end);
    return end;
  };
  return {
    heard,
    runs,
    /** Settled once the listener has heard that the run is over. */
    over: (runId: string) => endOf(runId).promise,
    listener: {
      name,
      async onEvent(event: HeardEvent, run: ListenedRun) {
        // Later events must wait, whatever one takes.
        await new Promise((resolve) => setImmediate(resolve));
        heard.set(event.runId, [...(heard.get(event.runId) ?? []), event]);
        runs.set(event.runId, run);
        if (/^run\.(completed|failed|canceled|awaiting)/.test(event.type)) endOf(event.runId).resolve();
        if (fails(event)) throw new Error('full');
      },
    },
  };
};

forEachService('OBS-8 a listener hears every event of a run in order, as the log has it', async (open) => {
  const { listener, heard, runs, over } = ear('all');
  const app = await open({ agents: [{ name: 'helper' }], module: { eventListeners: [listener] } });
  const streamed = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  const queued = await enqueue(app.client, 'helper', 'Hi');
  const answered = await runJson(app.client, 'helper', 'Hi');
  await followToEnd(app.client, queued);
  for (const runId of [streamed.runId, queued, answered.runId]) {
    await over(runId);
    assert.deepEqual(heard.get(runId), eventsOf(await readEvents(app.client, runId)), runId);
  }
  assert.equal(heard.get(queued)?.[0]?.type, 'run.queued');
  assert.deepEqual(runs.get(streamed.runId), {
    tenantId: 'default',
    agentName: 'helper',
    runId: streamed.runId,
    rootRunId: streamed.runId,
    sessionId: 's',
    userId: null,
  });
});

forEachService('OBS-8 it also hears what no engine has written', async (open) => {
  const { listener, heard, over } = ear('all');
  const gate = new Gate();
  const app = await openApprovals(open, {
    service: { Scheduling: { MaxConcurrentJobs: 1 } },
    module: { eventListeners: [listener] },
    more: [
      tool('block', async (_args, { signal }) => {
        await gate.pass(signal);
        return '';
      }),
    ],
  });
  await enqueue(app.client, 'helper', calls(['block']));
  await gate.reached;
  const canceled = await enqueue(app.client, 'helper', 'Hi');
  await app.client.runs.cancel({ params: { runId: canceled } });
  gate.open();
  const { rows } = await queueWaiting(app, 's', ['pay']);
  const { continuationRunId } = await decide(app.client, rows[0]?.id ?? '', true);
  await followToEnd(app.client, continuationRunId ?? '');
  for (const runId of [canceled, continuationRunId ?? '']) {
    await over(runId);
    assert.deepEqual(heard.get(runId), eventsOf(await readEvents(app.client, runId)), runId);
  }
  assert.deepEqual(
    heard.get(canceled)?.map(({ type }) => type),
    ['run.queued', 'run.canceled'],
  );
});

forEachService(
  'OBS-8 one that throws hears no more of that run; others, the log and the next run are not affected',
  async (open) => {
    const broken = ear('broken', ({ type }) => type === 'message.completed');
    const sound = ear('sound');
    const app = await open({
      agents: [{ name: 'helper' }],
      module: { eventListeners: [broken.listener, sound.listener] },
    });
    for (let time = 0; time < 2; time += 1) {
      const { runId, events } = await runStream(app.client, 'helper', 'Hi');
      await sound.over(runId);
      assert.equal(events.at(-1)?.type, 'run.completed');
      assert.deepEqual(sound.heard.get(runId), events);
      const cut = events.findIndex(({ type }) => type === 'message.completed');
      assert.deepEqual(broken.heard.get(runId), events.slice(0, cut + 1), 'from its start to where it threw');
    }
    const lines = app.log.filter(({ message }) => message.startsWith('A listener to events failed'));
    assert.deepEqual(
      lines.map(({ fields }) => fields['listener']),
      ['broken', 'broken'],
    );
  },
);

forEachService('OBS-8 what a listener changes of an event reaches nobody else', async (open) => {
  const sound = ear('sound');
  const rude = {
    name: 'rude',
    onEvent(event: HeardEvent, run: ListenedRun) {
      Object.assign(event, { type: 'changed' });
      Object.assign(run, { tenantId: 'changed' });
    },
  };
  const app = await open({ agents: [{ name: 'helper' }], module: { eventListeners: [rude, sound.listener] } });
  const { runId, events } = await runStream(app.client, 'helper', 'Hi');
  await sound.over(runId);
  assert.deepEqual(sound.heard.get(runId), events);
  assert.equal(sound.runs.get(runId)?.tenantId, 'default');
});

forEachService('OBS-8 a run that does not compile is heard, too', async (open) => {
  const { listener, heard, over } = ear('all');
  const app = await open({
    agents: [{ name: 'child' }, { name: 'helper', callableAgentNames: ['child'] }],
    module: { eventListeners: [listener] },
  });
  await app.client.agents.remove({ params: { name: 'child' } });
  assert.equal((await refusal(runJson(app.client, 'helper', 'Hi'))).code, 'agent-not-compilable');
  const [run] = await listRuns(app.client, {});
  await over(run?.id ?? '');
  assert.deepEqual(
    heard.get(run?.id ?? '')?.map(({ type }) => type),
    ['run.started', 'run.failed'],
  );
});
