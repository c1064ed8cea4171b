import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SpanHead } from '../../../src/features/external-runs/external-spans.store.ts';
import { isStillWhole } from '../../../src/features/external-runs/span-parts.rules.ts';

const head = (spanId: string, parentSpanId: string | null, runId: string | null = null): SpanHead => ({
  ...{ traceId: 't', spanId, parentSpanId, isLocalRoot: parentSpanId === null, receivedAt: 0, ownerId: null, runId },
});

test('a part is stored only as it was read: not once a span has come below it, nor once another process has stored it', () => {
  const [root, call, tool] = [head('root', null), head('call', 'root'), head('tool', 'call')];
  const part = [root, call, tool] as const;
  assert.equal(isStillWhole([...part], [tool, root, call]), true);
  assert.equal(isStillWhole([...part], [...part, head('other', null), head('below', 'other')]), true);
  assert.equal(isStillWhole([...part], [...part, head('new', 'tool')]), false);
  assert.equal(isStillWhole([...part], [root, call]), false);
  assert.equal(isStillWhole([...part], [root, call, head('tool', 'call', 'run')]), false);
  assert.equal(isStillWhole([...part], [head('root', null, 'run'), call, tool]), false);
});
