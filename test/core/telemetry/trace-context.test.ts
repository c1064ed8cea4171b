import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  formatTraceparent,
  inShare,
  newSpanId,
  newTraceId,
  parseTraceparent,
  traceHeaders,
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

test('OBS-11 a tracestate is passed on as it came, or not at all', () => {
  const header = `00-${traceId}-${spanId}-01`;
  const passed = (state: unknown) => {
    const parent = parseTraceparent(header, state);
    assert.ok(parent !== null);
    const { traceparent, tracestate } = traceHeaders(parent);
    assert.equal(traceparent, header);
    return tracestate;
  };
  assert.equal(passed('congo=t61rcWkgMzE,rojo=00f067aa0ba902b7'), 'congo=t61rcWkgMzE,rojo=00f067aa0ba902b7');
  assert.equal(passed('tenant@vendor=a b , ,\tother=1'), 'tenant@vendor=a b,other=1');
  assert.equal(passed(`${'k'.repeat(256)}=v`), `${'k'.repeat(256)}=v`);
  const members = Array.from({ length: 32 }, (_, at) => `k${at}=v`);
  assert.equal(passed(members.join()), members.join());
  for (const wrong of [
    undefined,
    '',
    ',',
    'novalue',
    '=v',
    'Upper=v',
    'k=',
    'k=a=b',
    'k=\u00e9',
    'k=v,k=w',
    'a@=v',
    `a@${'v'.repeat(15)}=v`,
    `k=${'v'.repeat(257)}`,
    `${'k'.repeat(257)}=v`,
    [...members, 'one-more=v'].join(),
    'good=v,bad',
  ])
    assert.equal(passed(wrong), undefined, String(wrong));
  // Members are whole; the newest ones stand first.
  const long = ['a', 'b', 'c'].map((key) => `${key}=${'v'.repeat(250)}`);
  assert.equal(passed(long.join()), long.slice(0, 2).join());
  // Without a trace there is nothing that it could be the state of.
  assert.equal(parseTraceparent(undefined, 'k=v'), null);
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
