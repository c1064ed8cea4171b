import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFolder } from './support.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const settings = [
  'Service:Webhooks:AllowInsecureHttp=true',
  'Service:Webhooks:AllowPrivateNetworkTargets=true',
  `Service:WebhookSecrets:listen=${secret}`,
].flatMap((setting) => ['--set', setting]);

test('webhooks are saved, tried, listed and deleted', async (t) => {
  const folder = createFolder(t);
  await folder.serve(settings);
  const saved = await folder.acp([
    ...[
      'webhooks',
      'save',
      'crm',
      '--body-url',
      'https://hooks.invalid/',
      '--events',
      'run.failed',
      '--events',
      'job.failed',
    ],
    ...['--secret-configuration-key', 'Service:WebhookSecrets:listen', '--json'],
  ]);
  assert.equal(saved.code, 0, saved.stderr);
  assert.deepEqual(JSON.parse(saved.stdout).events, ['run.failed', 'job.failed']);
  assert.match((await folder.acp(['webhooks', 'list'])).stdout, /crm +https:\/\/hooks\.invalid\//);
  const { deliveryId } = JSON.parse((await folder.acp(['webhooks', 'test', 'crm', '--json'])).stdout) as {
    deliveryId: string;
  };
  assert.match(
    (await folder.acp(['webhooks', 'deliveries', 'crm'])).stdout,
    new RegExp(`${deliveryId} +webhook\\.test`),
  );
  const again = await folder.acp(['webhooks', 'retry', 'crm', deliveryId, '--json']);
  assert.equal(JSON.parse(again.stdout).id, deliveryId);
  const range = await folder.acp(['webhooks', 'retry-range', 'crm', '--from', '2026-01-01T00:00:00Z', '--json']);
  assert.deepEqual(JSON.parse(range.stdout).more, false);
  assert.equal((await folder.acp(['webhooks', 'save', 'crm', '--body-url', 'http://[::1'])).code, 2);
  const deleted = await folder.acp(['webhooks', 'delete', 'crm']);
  assert.deepEqual([deleted.code, deleted.stderr], [0, 'Deleted webhook crm.\n']);
  assert.equal((await folder.acp(['webhooks', 'delete', 'crm'])).code, 4);
});

test('webhooks listen verifies and prints what comes, and removes its webhook at the end', async (t) => {
  const folder = createFolder(t);
  await folder.serve(settings);
  await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
  const env = { ACP_WEBHOOK_SECRET: secret };
  const listening = folder.start(['webhooks', 'listen', '--events', 'run.completed'], { env });
  const told = await listening.until('Ctrl-C ends', 'stderr');
  const [, name = '', url = ''] = /webhook (listen-\w+) sends to (\S+);/.exec(told) ?? [];
  assert.equal((await fetch(url, { method: 'POST', body: '{}' })).status, 401);
  await listening.until('A request was refused', 'stderr');
  const run = JSON.parse((await folder.acp(['run', 'hello', 'hi', '--json'])).stdout) as { runId: string };
  const line = await listening.until(run.runId);
  assert.match(line, /run\.completed .*agentName=hello .*status=Completed/);
  listening.child.kill('SIGINT');
  assert.equal((await listening.done).code, 130);
  assert.equal((await folder.acp(['webhooks', 'get', name])).code, 4);
});

test('webhooks listen names a port that somebody else has', async (t) => {
  const folder = createFolder(t);
  const { url } = await folder.serve();
  const { port } = new URL(url);
  const { code, stderr } = await folder.acp(['webhooks', 'listen', '--port', port], {
    env: { ACP_WEBHOOK_SECRET: secret },
  });
  assert.deepEqual([code, stderr.trim()], [2, `error: --port ${port} cannot be used: another program listens there.`]);
});

test('webhooks listen needs a service and a secret', async (t) => {
  const folder = createFolder(t);
  const without = await folder.acp(['webhooks', 'listen']);
  assert.equal(without.code, 2);
  assert.match(without.stderr, /Service:WebhookSecrets:listen has no value/);
  const local = await folder.acp(['webhooks', 'listen'], { env: { ACP_WEBHOOK_SECRET: secret } });
  assert.equal(local.code, 8);
  assert.equal(
    (await folder.acp(['webhooks', 'listen', '--port', '70000'], { env: { ACP_WEBHOOK_SECRET: secret } })).code,
    2,
  );
});
