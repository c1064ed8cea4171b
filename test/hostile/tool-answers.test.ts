// A process of its own: it measures how long its event loop stands still, and how its heap grows.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer } from '../providers/http/loopback-server.ts';
import { overHttp } from '../support/app.ts';
import { allExcesses } from './hostile-answers.ts';
import { calledTool, scriptOf } from './tool-run.ts';

overHttp('no answer to a declared tool stops the event loop for long', async (open, t) => {
  let answer: { readonly type: string; readonly body: Buffer } = { type: 'application/json', body: Buffer.from('{}') };
  const server = await startServer((_request, response) => {
    response.writeHead(200, { 'content-type': answer.type }).end(answer.body);
  });
  t.after(() => server.close());
  const folder = mkdtempSync(join(tmpdir(), 'acp-hostile-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(
    join(folder, 'look.json'),
    JSON.stringify({
      name: 'look',
      description: 'Looks.',
      inputSchema: { type: 'object', additionalProperties: {} },
      requiresApproval: false,
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the document refers to a secret this way.
      request: { url: `${server.url}/look`, headers: { authorization: 'Bearer ${key:Service:McpSecrets:look}' } },
    }),
  );
  const app = await open({
    service: { Egress: { AllowPrivateNetworkTargets: true }, McpSecrets: { look: 's3cret-of-the-tool' } },
    host: { Tools: [folder] },
    script: scriptOf('look'),
    agents: [{ name: 'caller', toolNames: ['look'] }],
  });
  const ask = (type: string) => async (body: Buffer) => {
    answer = { type, body };
    await calledTool(app.url);
  };
  const asked = server.received.length;
  const found = await allExcesses([
    { what: 'an answer to a tool', template: '"*"', ask: ask('application/json') },
    { what: 'an answer to a tool', template: '{"rows":"*"}', ask: ask('application/json') },
    { what: 'a text for a tool', template: '"*"', ask: ask('text/plain') },
  ]);
  assert.ok(server.received.length > asked, 'the tool is called');
  assert.deepEqual(found, []);
});
