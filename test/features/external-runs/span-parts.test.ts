import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createExternalSpans, type ExternalSpansDeps } from '../../../src/features/external-runs/external-spans.ts';
import type { ReceivedSpan } from '../../../src/features/external-runs/received-spans.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { defaultStore, openTestStorage, storedRows } from '../../support/store.ts';

const settleAfterMs = 1000;
const owner = { userId: null, labels: null, ownerId: null };

test('a part is stored only as it was read: not once a span has come below it', async (t) => {
  const storage = await openTestStorage(t, defaultStore);
  const clock = testClock({ stands: true });
  const at = clock.now();
  const span = (spanId: string, parentSpanId: string | null, operation: string): ReceivedSpan => ({
    ...{ traceId: 'a'.repeat(32), spanId, parentSpanId, isParentRemote: null, name: spanId, kind: 1 },
    ...{ startedAt: at - 10, endedAt: at, isError: false, serviceName: null },
    attributes: { 'gen_ai.operation.name': operation },
  });
  const stored: string[][] = [];
  const failures: unknown[] = [];
  // Between the look at what waits and the unit that stores it.
  let comesBetween: (() => Promise<unknown>) | null = null;
  const between: ExternalSpansDeps['storage'] = {
    stores: (definition) => storage.stores(definition),
    async transaction(work, key) {
      const come = comesBetween;
      comesBetween = null;
      await come?.();
      return storage.transaction(work, key);
    },
  };
  const spans = createExternalSpans({
    storage: between,
    journal: { trace: () => assert.fail('traces are not stored here') },
    record: {
      statements(_tenantId, _owner, _labels, { runs }) {
        stored.push(runs.map(({ calls }) => `${calls.length} calls`));
        return [];
      },
    },
    stored: () => undefined,
    setAside: () => assert.fail('all of it can be stored'),
    dropped: () => assert.fail('nothing is set aside'),
    settings: {
      ...{ settleAfterMs, orphansAfterMs: 60_000, setAsideForMs: 3_600_000, maxSpansPerRun: null },
      ...{ recordSensitiveData: false, maxPayloadLength: 100 },
    },
    log: { error: (fields) => void failures.push(fields), warn: (fields) => void failures.push(fields) },
    clock,
    newId: () => 'id',
  });
  t.after(() => spans.stop());
  await spans.receive('default', owner, [span('root', null, 'invoke_agent'), span('first', 'root', 'chat')]);
  comesBetween = () => spans.receive('default', owner, [span('second', 'root', 'chat')]);
  spans.start(true);
  const left = async () =>
    (await storedRows(storage, 'spans of agents elsewhere')).filter(({ run_id: runId }) => runId === null).length;
  clock.setAhead(settleAfterMs + 1);
  await clock.advance(settleAfterMs);
  await eventually('a look', async () => stored.length > 0 || null);
  assert.equal(await left(), 3, 'nothing is taken without what has come');
  clock.setAhead(settleAfterMs + 1);
  await clock.advance(settleAfterMs);
  await eventually('the run', async () => (await left()) === 0 || null);
  assert.deepEqual(stored, [['1 calls'], ['2 calls']]);
  assert.deepEqual(failures, []);
});
