// A process of its own: it measures how long its event loop stands still, and how its heap grows.
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import { createModelProviders } from '../../src/providers/models/index.ts';
import {
  callsTool,
  connected,
  mcpSetup,
  rawServer,
  refresh,
  tool,
  withTools,
} from '../features/mcp-servers/mcp-world.ts';
import { artifact, rawAgent, remoteSetup, task } from '../features/remote-agents/remote-world.ts';
import { runJson } from '../features/runs/run-calls.ts';
import { receiver, save as saveWebhook, sendTest, webhookSetup } from '../features/webhooks/webhook-world.ts';
import { overHttp } from '../support/app.ts';
import { modelCall, modes } from '../support/providers/model-calls.ts';
import { startRawServer } from '../support/providers/raw-server.ts';
import { surfaceCases } from '../support/providers/surface-cases.ts';
import { anyJson, filledArray, type Hostile, longStrings } from './hostile-json.ts';
import { excessOf, excessText, isExcessive } from './standstill.ts';

const mebibyte = 1_048_576;

/** Values that stand where the other side puts what it says. */
const values: readonly Hostile[] = [...anyJson, ...longStrings.slice(0, 1)];

/** A document with the value at the mark. */
const documentOf = (template: string, value: Hostile): Buffer =>
  Buffer.from(template.replace('"*"', () => value.make(mebibyte - template.length)));

/** What of the documents makes the work stand still for too long. */
const excesses = async (
  template: string,
  answer: (document: Buffer) => Promise<unknown>,
  what: string,
  shapes: readonly Hostile[] = values,
): Promise<string[]> => {
  const found: string[] = [];
  for (const value of shapes) {
    const document = documentOf(template, value);
    const excess = await excessOf(document.byteLength, () => answer(document));
    if (isExcessive(excess)) found.push(`${what} ${template} ${value.name}: ${excessText(excess)}`);
  }
  return found;
};

const json = { 'content-type': 'application/json' };

/** What each wire has most of. */
const templates = {
  chat: '{"choices":"*"}',
  azure: '{"choices":"*"}',
  responses: '{"output":"*"}',
  anthropic: '{"content":"*"}',
  gemini: '{"candidates":"*"}',
  embeddings: '{"data":"*"}',
};

for (const surface of surfaceCases)
  test(`answers of ${surface.provider} make nobody wait longer than five plain ones`, async () => {
    let write = (_response: ServerResponse): void => undefined;
    await using server = await startRawServer((response) => write(response));
    const providers = createModelProviders(surface.settings(server.url, null), { log: () => undefined });
    const provider = providers.get(surface.provider) ?? assert.fail('it is there');
    const found: string[] = [];
    for (const { name, run } of modes)
      for (const [kind, status, begin, end] of [
        ['document', 200, '', ''],
        ['event', 200, 'data: ', '\n\n'],
        ['refusal', 400, '', ''],
      ] as const) {
        if ((kind === 'event') !== (name === 'streamed') && kind !== 'refusal') continue;
        const template = kind === 'refusal' ? '{"error":"*"}' : templates[surface.wire];
        const type = kind === 'event' ? 'text/event-stream' : 'application/json';
        const call = async (document: Buffer): Promise<void> => {
          write = (response) => {
            response.writeHead(status, { 'content-type': type });
            response.write(begin);
            response.write(document);
            response.end(end);
          };
          await Promise.resolve(run(provider, modelCall({ model: surface.model }))).catch(() => null);
        };
        found.push(...(await excesses(template, call, `${kind} ${name}`)));
      }
    await providers.close();
    assert.deepEqual(found, []);
  });

overHttp('answers of MCP servers make nobody wait longer than five plain ones', async (open, t) => {
  const look = 'weather_look';
  const app = await open(mcpSetup({ script: callsTool(look) }));
  const tools = [tool('look')];
  const server = await rawServer(t, withTools(tools));
  await connected(app.client, server.endpoint, { requiresApproval: false });
  await app.createAgent({ name: 'caller', toolNames: [look] });
  const found: string[] = [];
  /** The id of the request goes before what else the document has. */
  const answers = (asked: string) => (document: Buffer) => {
    const usual = withTools(tools);
    server.answer((one) => {
      if (one.method !== asked) return usual(one);
      const text = Buffer.concat([Buffer.from(`{"id":${JSON.stringify(one.id)},`), document.subarray(1)]);
      return { raw: (response) => response.writeHead(200, json).end(text) };
    });
  };
  const many = filledArray('tools', (at) => JSON.stringify(tool(`t${at}`)));
  const called = answers('tools/call');
  for (const member of ['content', 'structuredContent', 'unknown'])
    found.push(
      ...(await excesses(
        `{"jsonrpc":"2.0","result":{"content":[],"${member}":"*"}}`,
        async (document) => {
          called(document);
          await runJson(app.client, 'caller', 'Hi');
        },
        'result',
      )),
    );
  const listed = answers('tools/list');
  found.push(
    ...(await excesses(
      '{"jsonrpc":"2.0","result":{"resultType":"complete","tools":"*"}}',
      async (document) => {
        listed(document);
        await refresh(app.client);
      },
      'list',
      [...values, many],
    )),
  );
  assert.deepEqual(found, []);
});

overHttp('cards and answers of other agents make nobody wait longer than five plain ones', async (open, t) => {
  let answer = (_response: ServerResponse, _id: number): boolean => false;
  const agent = await rawAgent(t, ({ response, id }) =>
    answer(response, id) ? null : { task: task('COMPLETED', { artifacts: [artifact('done')] }) },
  );
  const card = agent.card as Readonly<Record<string, unknown>>;
  const app = await open(remoteSetup(agent.cardUrl));
  const ask = () => runJson(app.client, 'boss', 'ask this');
  assert.equal((await ask()).output, 'done');
  const found: string[] = [];
  for (const member of ['parts', 'unknown'])
    found.push(
      ...(await excesses(
        `{"jsonrpc":"2.0","result":{"task":{"id":"task-1","contextId":"context-1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"output","${member}":"*"}]}}}`,
        async (document) => {
          answer = (response, id) => {
            const text = Buffer.concat([Buffer.from(`{"id":${id},`), document.subarray(1)]);
            response.writeHead(200, json).end(text);
            return true;
          };
          await ask();
        },
        'answer',
      )),
    );
  for (const member of ['skills', 'unknown'])
    found.push(
      ...(await excesses(
        JSON.stringify({ ...card, [member]: '*' }),
        async (document) => {
          agent.card = (response) => void response.writeHead(200, json).end(document);
          await ask();
        },
        'card',
      )),
    );
  assert.deepEqual(found, []);
});

overHttp('answers of receivers of webhooks make nobody wait longer than five plain ones', async (open, t) => {
  const app = await open(webhookSetup());
  let body = Buffer.alloc(0);
  const server = await receiver(t, (_request, response) => response.writeHead(500, json).end(body));
  await saveWebhook(app.client, server.url);
  const found = await excesses(
    '{"error":"*"}',
    async (document) => {
      body = Buffer.from(document);
      await sendTest(app.client).catch(() => null);
    },
    'answer',
  );
  assert.deepEqual(found, []);
});
