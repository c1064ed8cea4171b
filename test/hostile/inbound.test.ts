// A process of its own: it measures how long its event loop stands still, and how its heap grows.
import assert from 'node:assert/strict';
import process from 'node:process';
import { Worker } from 'node:worker_threads';
import { JsonValue } from '../../src/contract/schema.ts';
import { type OperationEntry, operationEntries } from '../../src/core/dispatch.ts';
import { newId } from '../../src/core/ids.ts';
import { operations } from '../../src/operations.ts';
import { overHttp } from '../support/app.ts';
import { type HostileCall, hostileCalls } from './hostile-call.ts';
import { protocolCalls } from './protocol-bodies.ts';
import type { Sending, Sent } from './sender-main.ts';
import { excessOf, excessText, isExcessive } from './standstill.ts';

/** Every shape at every place, as large as the operation takes it; else the worst ones of a moderate size. */
const isWhole = process.env['ACP_HOSTILE'] === 'whole';
const mebibyte = 1_048_576;
const answerLength = 200;

const shapeOf = ({ body }: HostileCall): string => body.name.split('.').at(-1)?.split(' ', 1)[0] ?? '';

/** Of each shape the one at the first place, since the places of an operation share what reads them. */
const chosen = (calls: readonly HostileCall[]): readonly HostileCall[] => {
  if (isWhole) return calls;
  const first = new Map<string, HostileCall>();
  for (const call of calls) if (!first.has(shapeOf(call))) first.set(shapeOf(call), call);
  return [...first.values()];
};

const callsOf = ({ id, operation }: OperationEntry): readonly HostileCall[] => {
  const own = protocolCalls[id];
  if (own !== undefined) return chosen(own);
  if (operation.body !== undefined) return chosen(hostileCalls(operation.body));
  return hostileCalls(JsonValue).slice(1, 2);
};

const sizeOf = ({ operation }: OperationEntry): number => (isWhole ? (operation.maxBodyBytes ?? mebibyte) : mebibyte);

const params: Readonly<Record<string, string>> = {
  name: 'helper',
  agent: 'helper',
  tenantId: 'default',
  slug: 'default',
};

const pathOf = ({ operation }: OperationEntry): string =>
  operation.path.replace(/\{(\w+)\}/g, (_braces, name: string) => params[name] ?? newId());

overHttp('HTTP: no body makes the service stand still for longer than five plain ones of its size', async (open, t) => {
  const door = { Agents: ['helper'] };
  const app = await open({
    host: { A2A: door, McpServer: door, Traces: { Enabled: true } },
    agents: [{ name: 'helper' }],
  });
  const worker = new Worker(new URL('./sender-main.ts', import.meta.url));
  t.after(() => worker.terminate());
  const send = (sending: Sending): Promise<Sent> =>
    new Promise((resolve) => {
      worker.once('message', resolve);
      worker.postMessage(sending);
    });

  const found: string[] = [];
  for (const entry of operationEntries(operations)) {
    const { id, operation } = entry;
    if (!id.startsWith(process.env['ACP_HOSTILE_ONLY'] ?? '')) continue;
    for (const { body, headers } of callsOf(entry)) {
      const bytes = Buffer.from(body.make(sizeOf(entry) - 16));
      let answer = '';
      const excess = await excessOf(bytes.byteLength, async () => {
        const sent = await send({ url: app.url + pathOf(entry), method: operation.method, headers, body: bytes });
        answer = `${sent.status} ${sent.start.slice(0, answerLength)}`;
      });
      if (isExcessive(excess)) found.push(`${id} ${body.name}: ${excessText(excess)}; ${answer}`);
    }
  }
  assert.deepEqual(found, []);
});
