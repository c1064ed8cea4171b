import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { startRawServer, writeForever } from '../../support/providers/raw-server.ts';
import { enqueue, followToEnd, getRun, refusal, runStream, start } from './run-calls.ts';

const frame = (text: string): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`;

overHttp('an answer without an end fails the run, however it was asked for, and stops nobody else', async (open) => {
  await using server = await startRawServer((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    writeForever(response, frame('word '.repeat(200)));
  });
  const { client } = await open({
    service: {
      Providers: { Compatible: { endless: { Endpoint: `${server.url}/v1` } } },
      ModelAnswers: { MaxBytes: 262_144, MaxStreamBytes: 1_048_576 },
    },
    agents: [{ name: 'endless', model: { provider: 'endless', model: 'm-1' } }, { name: 'other' }],
  });
  const expected = [
    'Failed',
    'ProviderError',
    'provider_error',
    'Provider "endless" sent more than an answer may hold.',
  ];
  const endOf = async (runId: string): Promise<unknown[]> => {
    const { status, error } = await getRun(client, runId);
    return [status, error?.class, error?.type, error?.message];
  };

  const problem = await refusal(start(client, 'endless', { message: 'Hi', stream: false }));
  assert.deepEqual([problem.status, problem.code, problem.detail], [502, 'provider-error', expected[3]]);

  const queued = await enqueue(client, 'endless', { message: 'Hi' });
  const other = await start(client, 'other', { message: 'Hi', stream: false });
  assert.ok(other);
  await followToEnd(client, queued);
  assert.deepEqual(await endOf(queued), expected);

  const { events } = await runStream(client, 'endless', { message: 'Hi' });
  const last = events.at(-1);
  assert.equal(last?.type, 'run.failed');
  assert.deepEqual(await endOf(String(last?.['runId'])), expected);
});

overHttp('an answer may hold what is configured, and so may the stream that it comes in', async (open) => {
  const thousand = 'x'.repeat(1000);
  const answers = {
    MaxBytes: frame(thousand).repeat(100),
    // Comments are no part of the answer, and have to be read all the same.
    MaxStreamBytes: `: ${thousand}\n\n`.repeat(100),
  };
  for (const [limit, begin] of Object.entries(answers)) {
    await using server = await startRawServer((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
      response.end(`${begin}${frame('Hi')}data: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`);
    });
    const endWith = async (bytes: number): Promise<string | undefined> => {
      const { client } = await open({
        service: {
          Providers: { Compatible: { chatty: { Endpoint: `${server.url}/v1` } } },
          ModelAnswers: { [limit]: bytes },
        },
        agents: [{ name: 'chatty', model: { provider: 'chatty', model: 'm-1' } }],
      });
      const runId = await enqueue(client, 'chatty', { message: 'Hi' });
      await followToEnd(client, runId);
      return (await getRun(client, runId)).error?.message;
    };
    assert.equal(await endWith(65_536), 'Provider "chatty" sent more than an answer may hold.', limit);
    assert.equal(await endWith(262_144), undefined, limit);
  }
});

overHttp('a queued run whose provider only keeps the line open ends as timed out', async (open) => {
  await using server = await startRawServer((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(frame('Well, '));
    writeForever(response, frame(''), 50);
  });
  const { client } = await open({
    service: {
      Providers: { Compatible: { endless: { Endpoint: `${server.url}/v1` } } },
      ModelAnswers: { StallTimeout: '1s' },
    },
    agents: [{ name: 'endless', model: { provider: 'endless', model: 'm-1' } }],
  });
  const queued = await enqueue(client, 'endless', { message: 'Hi' });
  await followToEnd(client, queued);
  const { error } = await getRun(client, queued);
  assert.deepEqual([error?.class, error?.type], ['Timeout', 'provider_timeout']);
});
