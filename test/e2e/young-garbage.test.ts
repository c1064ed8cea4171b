import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { OldSpace } from './old-space.ts';
import { isOnNode, openSite, type ServiceProcess, type Site, until } from './support.ts';
import { call, openStream } from './wire.ts';

const words = Array.from({ length: 20 }, (_, index) => `word${index} `);
const answer = { id: 'c', object: 'chat.completion', created: 1, model: 'm' };
const usage = { prompt_tokens: 12, completion_tokens: 20, total_tokens: 32 };

/** A model behind the chat completions API that answers at once. */
const model = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const { stream } = JSON.parse(Buffer.concat(parts).toString()) as { stream?: boolean };
    if (stream !== true) {
      const message = { role: 'assistant', content: words.join('') };
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ ...answer, choices: [{ index: 0, message, finish_reason: 'stop' }], usage }));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const chunk = { ...answer, object: 'chat.completion.chunk' };
    const send = (data: unknown): void => void response.write(`data: ${JSON.stringify(data)}\n\n`);
    for (const content of words) send({ ...chunk, choices: [{ index: 0, delta: { content }, finish_reason: null }] });
    send({ ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
    send({ ...chunk, choices: [], usage });
    response.end('data: [DONE]\n\n');
  });
});

const runs = 300;
// Less than 1 KB is seen, compiled code included; it was 8 to 16 while each run took all that it held along.
const mostBytesPerRun = 3000;

describe('docs/decisions/0051', { skip: isOnNode ? false : 'the executable loads no module of the test' }, () => {
  let site: Site;
  let service: ServiceProcess;

  before(async () => {
    await new Promise<void>((resolve) => model.listen(0, '127.0.0.1', resolve));
    const endpoint = `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`;
    site = openSite({ service: { Providers: { OpenAI: { ApiKey: 'none', Endpoint: endpoint } } } });
    const preload = join(import.meta.dirname, 'old-space.ts');
    service = await site.serve({ nodeFlags: ['--max-semi-space-size=8', '--import', preload] });
    const agent = { name: 'plain', model: { provider: 'openai', model: 'gpt-4.1-mini' } };
    const created = await call(`${service.url}/api/agents`, { method: 'POST', body: agent });
    assert.equal(created.status, 201, created.text);
  });
  after(async () => {
    await site.close();
    model.close();
  });

  let told = 0;
  const oldSpace = async (): Promise<OldSpace> => {
    const lines = (): string[] => service.stderr().match(/^\{"oldSpace":.*\}$/gm) ?? [];
    service.signal('SIGUSR2');
    await until(() => lines().length > told);
    told = lines().length;
    return (JSON.parse(lines().at(-1) ?? '') as { oldSpace: OldSpace }).oldSpace;
  };

  const run = {
    async json() {
      const body = { message: 'Name twenty words.', stream: false };
      const { status } = await call(`${service.url}/api/agents/plain/run`, { method: 'POST', body });
      assert.equal(status, 200);
    },
    async streamed() {
      const stream = await openStream(`${service.url}/api/agents/plain/run`, {
        method: 'POST',
        body: { message: 'Name twenty words.' },
      });
      assert.equal(await stream.ended, 'end');
      assert.equal(stream.frames.at(-1)?.event, 'run.completed');
    },
  };

  for (const [name, once] of Object.entries(run))
    test(`what a run leaves behind dies in the young generation: ${name}`, async () => {
      const many = async (): Promise<void> => {
        for (let count = 0; count < runs; count += 1) await once();
      };
      await many();
      const seen: number[] = [];
      // A full collection in between hides what came; there is none where little comes.
      for (let turn = 0; turn < 3; turn += 1) {
        const before = await oldSpace();
        await many();
        const now = await oldSpace();
        if (now.collections === before.collections) seen.push((now.usedBytes - before.usedBytes) / runs);
      }
      assert.ok(seen.length > 0, 'every turn had a full collection');
      assert.ok(Math.min(...seen) < mostBytesPerRun, `bytes for each run: ${seen.map(Math.round).join(', ')}`);
    });
});
