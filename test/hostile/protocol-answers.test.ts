// A process of its own: it measures how long its event loop stands still, and how its heap grows.
import assert from 'node:assert/strict';
import {
  type Asked,
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
import { allExcesses, excesses } from './hostile-answers.ts';
import { calledTool, scriptOf } from './tool-run.ts';

const json = { 'content-type': 'application/json' };
const events = { 'content-type': 'text/event-stream' };

/** The document as the answer to the request of this id. */
const answerTo = (id: unknown, document: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`{"id":${JSON.stringify(id)},`), document.subarray(1)]);

const asEvent = (document: Buffer): Buffer =>
  Buffer.concat([Buffer.from('event: message\ndata: '), document, Buffer.from('\n\n')]);

overHttp('no answer of an MCP server stops the event loop for long', async (open, t) => {
  const app = await open(mcpSetup({ script: scriptOf('weather_look') }));
  const usual = withTools([tool('look')]);
  const server = await rawServer(t, usual);
  await connected(app.client, server.endpoint, { requiresApproval: false });
  await app.createAgent({ name: 'caller', toolNames: ['weather_look'] });
  /** The next answer to this method is the document. */
  const answer = (method: string, document: Buffer, isEvent = false): void =>
    server.answer((asked: Asked) => {
      if (asked.method !== method) return usual(asked);
      const text = answerTo(asked.id, document);
      return {
        raw: (response) => response.writeHead(200, isEvent ? events : json).end(isEvent ? asEvent(text) : text),
      };
    });
  const call = () => calledTool(app.url);
  const results = ['content', 'structuredContent', 'unknown'].flatMap((member) =>
    [false, true].map((isEvent) => ({
      what: isEvent ? 'a result as an event' : 'a result',
      template: `{"jsonrpc":"2.0","result":{"content":[],"${member}":"*"}}`,
      ask: (document: Buffer) => {
        answer('tools/call', document, isEvent);
        return call();
      },
    })),
  );
  const errors = {
    what: 'an error',
    template: '{"jsonrpc":"2.0","error":{"code":-32000,"message":"no","data":"*"}}',
    ask: (document: Buffer) => {
      answer('tools/call', document);
      return call();
    },
  };
  const lists = [
    ['tools/list', '{"jsonrpc":"2.0","result":{"resultType":"complete","tools":"*"}}'],
    ['tools/list', '{"jsonrpc":"2.0","result":{"tools":[{"name":"look","inputSchema":"*"}]}}'],
    ['server/discover', '{"jsonrpc":"2.0","result":{"supportedVersions":["2026-07-28"],"capabilities":"*"}}'],
  ] as const;
  const listed = lists.map(([method, template]) => ({
    what: method,
    template,
    async ask(document: Buffer) {
      answer(method, document);
      await refresh(app.client);
    },
  }));
  assert.deepEqual(await allExcesses([...results, errors, ...listed]), []);
});

overHttp('no card and no answer of an agent stops the event loop for long', async (open, t) => {
  let answer: (id: number) => Buffer | null = () => null;
  const agent = await rawAgent(t, ({ response, id }) => {
    const text = answer(id);
    if (text === null) return { task: task('COMPLETED', { artifacts: [artifact('done')] }) };
    response.writeHead(200, json).end(text);
    return null;
  });
  const card = agent.card as Readonly<Record<string, unknown>>;
  const app = await open(remoteSetup(agent.cardUrl));
  const ask = () => runJson(app.client, 'boss', 'ask this');
  assert.equal((await ask()).output, 'done');
  const done = '"id":"task-1","contextId":"context-1","status":{"state":"TASK_STATE_COMPLETED"}';
  const answers = [
    `{"jsonrpc":"2.0","result":{"task":{${done},"artifacts":[{"artifactId":"output","parts":"*"}]}}}`,
    `{"jsonrpc":"2.0","result":{"task":{${done},"artifacts":"*"}}}`,
    `{"jsonrpc":"2.0","result":{"task":{${done},"history":"*"}}}`,
    '{"jsonrpc":"2.0","error":{"code":-32000,"message":"no","data":"*"}}',
  ].map((template) => ({
    what: 'an answer of an agent',
    template,
    async ask(document: Buffer) {
      answer = (id) => answerTo(id, document);
      await ask();
    },
  }));
  const found = await allExcesses(answers);
  answer = () => null;
  for (const member of ['skills', 'securitySchemes', 'supportedInterfaces', 'unknown'])
    found.push(
      ...(await excesses({
        what: 'a card',
        template: JSON.stringify({ ...card, [member]: '*' }),
        async ask(document) {
          agent.card = (response) => void response.writeHead(200, json).end(document);
          await app.client.remoteAgents.pin({ params: { name: 'partner' } }).catch(() => null);
          await ask();
        },
      })),
    );
  assert.deepEqual(found, []);
});

overHttp('no answer of a receiver of webhooks stops the event loop for long', async (open, t) => {
  const app = await open(webhookSetup());
  let body: Buffer = Buffer.alloc(0);
  const server = await receiver(t, (_request, response) => response.writeHead(500, json).end(body));
  await saveWebhook(app.client, server.url);
  const found = await excesses({
    what: 'an answer of a receiver',
    template: '{"error":"*"}',
    async ask(document) {
      body = document;
      await sendTest(app.client);
    },
  });
  assert.deepEqual(found, []);
});
