import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createWebhookRequest } from '../../../src/features/webhooks/webhook-request.ts';
import { createOutboundHttp } from '../../../src/providers/http/outbound.ts';
import { crmSecret, receiver } from './webhook-world.ts';

test('WEBHOOK-9 headers of the connection that an earlier version stored do not stop a delivery', async (t) => {
  const server = await receiver(t);
  const http = createOutboundHttp({ allowPrivate: true });
  t.after(() => http.close());
  const send = createWebhookRequest({
    http,
    timeoutMs: 5000,
    maxResponseBytes: 1000,
    allowInsecureHttp: true,
    now: () => Date.now(),
  });
  const headers = { 'Keep-Alive': 'timeout=5', Expect: '100-continue', upgrade: 'h2c', 'X-Team': 'sales' };
  const message = { id: 'm1', url: server.url, body: '{}', headers, secrets: [crmSecret] };
  assert.deepEqual(await send(message, new AbortController().signal), { kind: 'delivered', status: 204 });
  const [received] = server.received;
  assert.equal(received?.headers['x-team'], 'sales');
  assert.equal(received?.headers['expect'], undefined);
});
