import assert from 'node:assert/strict';
import { test } from 'node:test';
import { junitXml } from '../../src/cli/output/junit.ts';

test('a report as JUnit XML has what changed in the first step that drifted, and its reason in each', () => {
  const drifted = (number: number) => ({
    number,
    result: 'drifted',
    differences: ['text'],
    reason: `step ${number} <&> \u0001`,
  });
  const run = {
    ...{ agentName: 'helper', runId: 'r1', steps: [{ ...drifted(1), result: 'identical' }, drifted(2), drifted(3)] },
    outcome: { result: 'missing', recorded: 'Completed', replayed: 'Failed' },
    changes: [{ part: 'text', recorded: 'before', replayed: 'after' }],
  };
  const xml = junitXml({ runs: [run] } as never);
  assert.match(xml, /<testsuite name="helper r1" tests="4" failures="2" errors="1" skipped="0">/);
  const bodies = [...xml.matchAll(/<(failure|error) [^>]*>([^<]*)</g)].map(([, tag, body = '']) => [tag, body]);
  assert.deepEqual(
    bodies.map(([tag, body]) => [tag, body?.split('\n')[0], body?.includes('+after')]),
    [
      ['failure', 'text differ. step 2 &lt;&amp;&gt; ', true],
      ['failure', 'text differ. step 3 &lt;&amp;&gt; ', false],
      ['error', 'recorded Completed, replayed Failed', false],
    ],
  );
});
