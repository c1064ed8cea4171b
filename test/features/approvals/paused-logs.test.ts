import assert from 'node:assert/strict';
import { forEachService } from '../../support/app.ts';
import {
  assertWholeLog,
  collect,
  followToEnd,
  Gate,
  readEvents,
  readUntil,
  runJson,
  runStream,
  stream,
  tool,
  typesOf,
} from '../runs/run-calls.ts';
import { calls, decide, openApprovals, queueWaiting } from './approval-world.ts';

const sessionId = 's-1';

forEachService(
  'RUN-24 APPR-9 the log of a paused run is resumed from every place, and ends with the pause',
  async (open) => {
    const app = await openApprovals(open);
    const { runId, frames } = await runStream(app.client, 'helper', { message: calls(['look'], ['pay']), sessionId });
    assert.equal(frames.at(-1)?.event, 'run.awaiting-approval');
    const requests = frames.filter(({ event }) => event === 'approval.requested');
    assert.equal(requests.length, 1);
    const last = frames.length - 1;
    for (let after = 0; after <= last; after += 1)
      assert.deepEqual(await readEvents(app.client, runId, after), frames.slice(after + 1), `after ${after}`);
    // At or past the end there is nothing more, also once the session has gone on.
    const requestId = String(JSON.parse(requests[0]?.data ?? '{}').requestId);
    const next = await runStream(app.client, 'helper', { sessionId, approvals: [{ requestId, approved: true }] });
    for (const after of [last, last + 1, last + 1000]) assert.deepEqual(await readEvents(app.client, runId, after), []);
    assert.deepEqual(await readEvents(app.client, runId), frames, 'a paused log is never written again');
    // The run that goes on has a log of its own, which names its source.
    assert.notEqual(next.runId, runId);
    assert.deepEqual([next.events[0]?.sequence, next.events[0]?.['continuedFromRunId']], [0, runId]);
    assert.deepEqual(typesOf(next.events).slice(0, 3), ['run.started', 'tool.invoking', 'tool.invoked']);
    for (let after = 0; after < next.frames.length; after += 1)
      assert.deepEqual(await readEvents(app.client, next.runId, after), next.frames.slice(after + 1));
  },
);

forEachService(
  'RUN-24 a reader that was cut off before the pause has the rest of the log, then the end',
  async (open) => {
    const gate = new Gate();
    const hold = tool('hold', async (_args, { signal }) => {
      await gate.pass(signal);
      return 'held';
    });
    const app = await openApprovals(open, { more: [hold] });
    const { runId, frames } = await stream(app.client, 'helper', { message: calls(['hold'], ['pay']), sessionId });
    const reader = frames[Symbol.asyncIterator]();
    const seen = await readUntil(reader, 'tool.invoking');
    await reader.return?.();
    const rest = readEvents(app.client, runId, seen.length - 1);
    gate.open();
    const whole = assertWholeLog([...seen, ...(await rest)]);
    assert.equal(whole.at(-1)?.type, 'run.awaiting-approval');
    assert.deepEqual(await followToEnd(app.client, runId), whole);
  },
);

forEachService(
  'RUN-24 APPR-32 the continuation of the mailbox has a log that can be followed from its decision on',
  async (open) => {
    const app = await openApprovals(open);
    const { runId, rows } = await queueWaiting(app, sessionId, ['pay']);
    const before = await readEvents(app.client, runId);
    const { continuationRunId } = await decide(app.client, rows[0]?.id ?? '', true);
    const followed = await collect(
      (await app.client.runs.events({ params: { runId: continuationRunId ?? '' }, headers: {} })).frames,
    );
    const events = assertWholeLog(followed);
    assert.deepEqual(typesOf(events).slice(0, 2), ['run.queued', 'run.started']);
    assert.equal(events[1]?.['continuedFromRunId'], runId);
    const middle = Math.floor(followed.length / 2);
    assert.deepEqual(await readEvents(app.client, continuationRunId ?? '', middle), followed.slice(middle + 1));
    assert.deepEqual(await readEvents(app.client, runId), before);
  },
);

forEachService(
  'RUN-24 RUN-32 the log of a run that waits for the caller’s own program ends the same way',
  async (open) => {
    const locate = {
      name: 'locate',
      description: 'Where',
      inputSchema: { type: 'object' },
      runsOnClient: true as const,
    };
    const app = await openApprovals(open, { more: [locate as never] });
    const { runId, frames } = await runStream(app.client, 'helper', { message: calls(['locate']), sessionId });
    assert.equal(frames.at(-1)?.event, 'run.awaiting-input');
    const callId = String(JSON.parse(frames.at(-1)?.data ?? '{}').clientToolCalls[0].callId);
    await runJson(app.client, 'helper', { sessionId, toolResults: [{ callId, result: 'Bern' }] });
    for (const after of [0, frames.length - 2, frames.length - 1])
      assert.deepEqual(await readEvents(app.client, runId, after), frames.slice(after + 1));
  },
);
