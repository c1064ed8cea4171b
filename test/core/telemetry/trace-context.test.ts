import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  formatTraceparent,
  inShare,
  newSpanId,
  newTraceId,
  parseTraceparent,
} from '../../../src/core/telemetry/trace-context.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';

test('OBS-11 a valid traceparent is read and written as W3C Trace Context has it', () => {
  const header = `00-${traceId}-${spanId}-01`;
  assert.deepEqual(parseTraceparent(header), { traceId, spanId, sampled: true });
  assert.equal(formatTraceparent({ traceId, spanId, sampled: true }), header);
  assert.equal(parseTraceparent(`00-${traceId}-${spanId}-00`)?.sampled, false);
  // A later version is read as far as it is known.
  assert.equal(parseTraceparent(`cc-${traceId}-${spanId}-03-what-comes-later`)?.sampled, true);
});

test('OBS-11 anything else begins a new trace', () => {
  for (const header of [
    undefined,
    '',
    `ff-${traceId}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId}-${spanId}-01-more`,
    `00-${traceId}-${spanId}`,
  ])
    assert.equal(parseTraceparent(header), null, String(header));
  assert.match(newTraceId(), /^(?!0+$)[0-9a-f]{32}$/);
  assert.match(newSpanId(), /^(?!0+$)[0-9a-f]{16}$/);
});

test('OBS-13 a share is decided by the trace id: none, all, and about as many as asked for', () => {
  const ids = Array.from({ length: 4000 }, newTraceId);
  assert.equal(ids.filter((id) => inShare(id, 0)).length, 0);
  assert.equal(ids.filter((id) => inShare(id, 1)).length, 4000);
  const tenth = ids.filter((id) => inShare(id, 0.1));
  assert.ok(tenth.length > 250 && tenth.length < 600, String(tenth.length));
  assert.deepEqual(
    tenth.filter((id) => !inShare(id, 0.1)),
    [],
  );
});
