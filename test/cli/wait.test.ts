import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../providers/http/loopback-server.ts';
import { createFolder } from './support.ts';

test('wait goes by the readiness of a service, and by its metadata where it has no such route', async (t) => {
  const folder = createFolder(t);
  const statuses: Record<string, number> = {};
  const server = await startServer((request, response) => {
    response.writeHead(statuses[request.url] ?? 404).end();
  });
  t.after(() => server.close());
  const wait = async (statusOf: Record<string, number>) => {
    for (const path of ['/health/ready', '/api/meta']) statuses[path] = statusOf[path] ?? 404;
    return (await folder.acp(['wait', '--timeout', '0.3'], { env: { ACP_URL: server.url } })).code;
  };
  const unready = await wait({});
  assert.notEqual(unready, 0);
  assert.equal(await wait({ '/health/ready': 200 }), 0);
  assert.equal(await wait({ '/api/meta': 200 }), 0);
  assert.equal(await wait({ '/health/ready': 503, '/api/meta': 200 }), unready, 'it takes no requests yet');
  assert.equal(await wait({ '/health/ready': 302 }), unready, 'an address of something else');
});

test('wait takes a number of seconds, more than none and an hour at most', async (t) => {
  const folder = createFolder(t);
  for (const seconds of ['0', '-1', '3601', 'soon', '']) {
    const { code, stderr } = await folder.acp(['wait', '--timeout', seconds]);
    assert.equal(code, 2, seconds);
    assert.match(stderr, /--timeout is a number of seconds up to 3600/);
  }
});
