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
import { type Excess, excessOf, isExcessive } from './standstill.ts';

/** Every shape at every place, as large as the operation takes it; else the worst ones of a moderate size. */
const isWhole = process.env['ACP_HOSTILE'] === 'whole';
const mebibyte = 1_048_576;

const callsOf = ({ id, operation }: OperationEntry): readonly HostileCall[] => {
  const own = protocolCalls[id];
  if (own !== undefined) return own;
  if (operation.body !== undefined) return hostileCalls(operation.body);
  return hostileCalls(JsonValue).slice(1, 2);
};

const sizeOf = ({ operation }: OperationEntry): number => (isWhole ? (operation.maxBodyBytes ?? mebibyte) : mebibyte);

const params: Readonly<Record<string, string>> = { name: 'helper', agent: 'helper', tenantId: 'default', slug: 'default' };

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

  const only = process.env['ACP_HOSTILE_ONLY'];
  for (const entry of operationEntries(operations)) {
    const { id, operation } = entry;
    if (only !== undefined && !new RegExp(only).test(id)) continue;
    const begun = performance.now();
    const found: (Excess & { readonly what: string })[] = [];
    for (const { body, headers } of callsOf(entry)) {
      const bytes = Buffer.from(body.make(sizeOf(entry) - 16));
      let sent: Sent | null = null;
      const excess = await excessOf(bytes.byteLength, async () => {
        sent = await send({ url: app.url + pathOf(entry), method: operation.method, headers, body: bytes });
      });
      const { status, start } = sent ?? { status: 0, start: '' };
      found.push({ ...excess, what: `${body.name} ${status} ${status>=400?start.slice(start.indexOf('"detail"')).slice(0,120):''}` });
    }
    found.sort((a,b)=>b.times-a.times);
    const w = found[0];
    console.log(id, found.length, `${Math.round(performance.now()-begun)}ms`, w?.times.toFixed(1), w?.ms.toFixed(0), Math.max(...found.map(f=>f.timesBytes)).toFixed(1), w?.what);
    for (const f of found.filter(isExcessive)) console.log('   !!', f.times.toFixed(1), f.ms.toFixed(0)+'ms', f.timesBytes.toFixed(1), (f.bytes/1e6).toFixed(0)+'MB', f.what);
  }
  assert.ok(true);
});
