/**
 * How many deliveries a second reach a receiver on this machine: `node bench/webhooks.ts [--deliveries 5000] [--jobs 16]
 * [--postgres]`. They are queued by a service without a worker; then one with a worker sends them. The time is that from
 * the first to the last that the receiver, a process of its own, has seen.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { tellGoals } from './goal-lines.ts';
import { startPostgres } from './postgres-server.ts';
import { cpuMs } from './process-usage.ts';
import { call, serve } from './served.ts';

const { values } = parseArgs({
  options: {
    deliveries: { type: 'string', default: '5000' },
    jobs: { type: 'string', default: '16' },
    postgres: { type: 'boolean', default: false },
  },
});
const deliveries = Number(values.deliveries);

const receiverSource = `
const seen = { count: 0, first: 0, last: 0, ids: new Set() };
require('node:http').createServer((request, response) => {
  if (request.method === 'GET') return response.end(JSON.stringify({ ...seen, ids: seen.ids.size }));
  request.resume().on('end', () => {
    seen.first ||= performance.now();
    seen.last = performance.now();
    seen.count += 1;
    seen.ids.add(request.headers['webhook-id']);
    response.writeHead(204).end();
  });
}).listen(0, '127.0.0.1', function () { console.log(this.address().port); });
`;
interface Seen {
  readonly count: number;
  readonly first: number;
  readonly last: number;
  readonly ids: number;
}

const folder = mkdtempSync(join(process.env['TMPDIR'] ?? tmpdir(), 'acp-webhooks-'));
mkdirSync(join(folder, 'data'));
const server = values.postgres ? await startPostgres(folder) : null;
if (values.postgres && server === null) throw new Error('PostgreSQL is not installed.');
const connection = await server?.createDatabase('hooks');
const persistence =
  connection === undefined
    ? '{ Provider: Sqlite }'
    : `{ Provider: Postgres, Postgres: { ConnectionString: "${connection}" } }`;
const configure = (worker: boolean): void =>
  writeFileSync(
    join(folder, 'service.yaml'),
    `Host: { Url: "http://127.0.0.1:0", LogLevel: error }
Service:
  Persistence: ${persistence}
  Scheduling: { RunWorker: ${worker}, MaxConcurrentJobs: ${values.jobs} }
  WebhookSecrets: { crm: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }
  Webhooks: { AllowInsecureHttp: true, AllowPrivateNetworkTargets: true }
`,
  );

const receiver = spawn(process.execPath, ['-e', receiverSource], { stdio: ['ignore', 'pipe', 'inherit'] });
let receiverUrl = '';
for await (const line of createInterface(receiver.stdout)) {
  receiverUrl = `http://127.0.0.1:${line}/`;
  break;
}

configure(false);
const queueing = await serve(folder);
await call(queueing.url, 'PUT', '/api/webhooks/crm', {
  url: receiverUrl,
  events: ['webhook.test'],
  secretConfigurationKey: 'Service:WebhookSecrets:crm',
});
const queuedFrom = performance.now();
let asked = 0;
const ask = async (): Promise<void> => {
  while (asked < deliveries) {
    asked += 1;
    await call(queueing.url, 'POST', '/api/webhooks/crm/test');
  }
};
await Promise.all(Array.from({ length: 16 }, ask));
const queuedMs = performance.now() - queuedFrom;
await queueing.stop();

configure(true);
const sending = await serve(folder);
const begunMs = cpuMs(sending.pid);
let seen: Seen = { count: 0, first: 0, last: 0, ids: 0 };
for (const until = performance.now() + 300_000; seen.ids < deliveries && performance.now() < until; await pause(100))
  seen = (await call(receiverUrl, 'GET', '')) as Seen;
const usedMs = cpuMs(sending.pid) - begunMs;
await sending.stop();
receiver.kill('SIGTERM');
await once(receiver, 'exit');
await server?.stop();
rmSync(folder, { recursive: true, force: true });
const store = values.postgres ? 'PostgreSQL' : 'SQLite';
const perSecond = (seen.ids / (seen.last - seen.first)) * 1000;
console.log({
  store,
  'jobs side by side': Number(values.jobs),
  'queued/s': Math.round((deliveries / queuedMs) * 1000),
  requests: seen.count,
  deliveries: seen.ids,
  'deliveries/s': Math.round(perSecond),
  'processor time a delivery, ms': Number((usedMs / seen.ids).toFixed(2)),
});
tellGoals([
  { name: `deliveries, ${store}`, measured: perSecond, limit: 500, is: 'at least', unit: '/s' },
  { name: 'deliveries that have arrived', measured: seen.ids, limit: deliveries, is: 'at least', unit: '' },
]);
