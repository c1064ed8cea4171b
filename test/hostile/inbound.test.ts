// A process of its own: it measures how long its event loop stands still, and how its heap grows.
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { Worker } from 'node:worker_threads';
import type { OperationEntry } from '../../src/core/dispatch.ts';
import { newId } from '../../src/core/ids.ts';
import { overHttp } from '../support/app.ts';
import { isComplete } from './completeness.ts';
import { callsOf, operationsWithBodies } from './hostile-calls.ts';
import { firstOfShape, firstOfWorst, isChosen, report } from './hostile-mode.ts';
import type { HostileCall } from './schema-bodies.ts';
import type { HostileRequest, HostileResponse } from './sender-main.ts';
import { isExcessive, measured, measuredText } from './standstill.ts';

const mebibyte = 1_048_576;
const answerLength = 200;

const params: Readonly<Record<string, string>> = {
  name: 'helper',
  agent: 'helper',
  tenantId: 'default',
  slug: 'default',
  target: 'Runs',
};

const pathOf = ({ operation }: OperationEntry): string =>
  operation.path.replace(/\{(\w+)\}/g, (_braces, name: string) => params[name] ?? newId());

const nameOf = ({ body }: HostileCall): string => body.name;

/** What is sent, by size: every shape at every place, and each shape as large as the operation takes it. */
const sizedCalls = (entry: OperationEntry): readonly (readonly [number, readonly HostileCall[]])[] => {
  const { maxBodyBytes = mebibyte } = entry.operation;
  const calls = callsOf(entry);
  if (!isComplete) return [[mebibyte, firstOfWorst(calls, nameOf)]];
  return [
    [mebibyte, calls],
    ...(maxBodyBytes > mebibyte ? [[maxBodyBytes, firstOfShape(calls, nameOf)] as const] : []),
  ];
};

const shared = (text: string, encoding: 'utf8' | 'latin1'): Uint8Array => {
  const bytes = Buffer.from(new SharedArrayBuffer(Buffer.byteLength(text, encoding)));
  bytes.write(text, encoding);
  return bytes;
};

const startSender = (t: TestContext) => {
  const worker = new Worker(new URL('./sender-main.ts', import.meta.url));
  t.after(() => worker.terminate());
  return (request: HostileRequest): Promise<HostileResponse> =>
    new Promise((resolve) => {
      worker.once('message', resolve);
      worker.postMessage(request);
    });
};

overHttp('no body of a request stops the event loop for long', async (open, t) => {
  const exposed = { Agents: ['helper'] };
  const app = await open({
    host: { A2A: exposed, McpServer: exposed, Traces: { Enabled: true } },
    agents: [{ name: 'helper' }],
  });
  const send = startSender(t);
  for (const entry of operationsWithBodies) {
    const { id, operation } = entry;
    const sized = sizedCalls(entry).map(
      ([size, calls]) => [size, calls.filter((call) => isChosen(`${id} ${nameOf(call)}`))] as const,
    );
    if (sized.every(([, calls]) => calls.length === 0)) continue;
    await t.test(`${id} of ${operation.method} ${operation.path}`, async () => {
      const found: string[] = [];
      for (const [size, calls] of sized)
        for (const { body, headers } of calls) {
          const isBinary = headers['content-type'] === 'application/x-protobuf';
          const bytes = shared(body.make(size - 16), isBinary ? 'latin1' : 'utf8');
          const request = { url: app.url + pathOf(entry), method: operation.method, headers, body: bytes };
          let answer: HostileResponse = { status: 0, start: '' };
          const cost = await measured(bytes.byteLength, async () => {
            answer = await send(request);
          });
          report(`${id} ${body.name}`, bytes.byteLength, cost, answer.status);
          const told = `${answer.status} ${answer.start.slice(0, answerLength)}`;
          if (isExcessive(cost)) found.push(`${body.name}: ${measuredText(cost)}; ${told}`);
          if (answer.status >= 500) found.push(`${body.name}: ${told}`);
        }
      assert.deepEqual(found, []);
    });
  }
});
