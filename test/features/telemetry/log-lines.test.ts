import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../../../src/core/logger.ts';
import { forEachService } from '../../support/app.ts';
import { refusal, start } from '../runs/run-calls.ts';

test('OBS-27 one JSON object per line: time, level, message, and what is known of the request', () => {
  const written: string[] = [];
  const log = createLogger('info', { write: (line: string) => void written.push(line) });
  log.debug({}, 'Not written');
  log.info({ requestId: 'r', traceId: 't', runId: 'u', tenantId: 'default' }, 'A line');
  log.error({ error: new Error('Foreign words') }, 'A failure');
  const [line = {}, failure = {}] = written.map((text) => JSON.parse(text) as Record<string, unknown>);
  assert.equal(written.length, 2);
  assert.match(String(line['time']), /^\d{4}-\d\d-\d\dT.*Z$/);
  const { time: _, ...rest } = line;
  assert.deepEqual(rest, {
    level: 'info',
    requestId: 'r',
    traceId: 't',
    runId: 'u',
    tenantId: 'default',
    message: 'A line',
  });
  assert.deepEqual([failure['level'], failure['message']], ['error', 'A failure']);
  assert.match(JSON.stringify(failure['error']), /Foreign words/);
});

forEachService(
  'OBS-27 lines about runs name request, trace, tenant and run, and hold no key and no message',
  async (open) => {
    const app = await open({
      simulator: {},
      agents: [{ name: 'helper', model: { provider: 'openai', model: 'gpt-5' } }],
    });
    const key = 'sk-test-0123456789';
    app.simulator.enqueue({ fault: { kind: 'status', status: 401, body: `{"error":{"message":"Bad key ${key}"}}` } });
    const { requestId } = await refusal(start(app.client, 'helper', { message: 'The secret word', stream: false }));
    const failed = app.log.find(({ message }) => message === 'A run failed');
    assert.ok(failed !== undefined);
    assert.equal(failed.fields['requestId'], requestId);
    assert.equal(failed.fields['tenantId'], 'default');
    assert.match(String(failed.fields['traceId']), /^[0-9a-f]{32}$/);
    assert.match(String(failed.fields['runId']), /^[0-9a-f-]{36}$/);
    const text = app.log
      .map(({ fields, message }) =>
        JSON.stringify([message, fields], (_name, value: unknown) =>
          value instanceof Error ? `${value.message} ${String(value.cause)} ${value.stack}` : value,
        ),
      )
      .join();
    assert.match(text, /Bad key \*\*\*/, 'what the provider said is in the log');
    assert.ok(!text.includes(key));
    assert.ok(!text.includes('The secret word'));
  },
);
