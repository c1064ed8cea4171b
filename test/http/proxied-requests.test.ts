import assert from 'node:assert/strict';
import { overHttp } from '../support/app.ts';
import { openRaw } from './support.ts';

/** What reverse proxies send with the least of settings, for a caller who asked for `acp.example.org`. */
const proxies: Readonly<Record<string, readonly [version: string, ...headers: string[]]>> = {
  'nginx with proxy_pass alone': ['1.0', 'Host: UPSTREAM', 'Connection: close'],
  'nginx of its wiki': ['1.0', 'X-Real-IP: 203.0.113.9', 'X-Forwarded-For: 203.0.113.9', 'Host: UPSTREAM'],
  Apache: ['1.1', 'Host: UPSTREAM', 'X-Forwarded-For: 203.0.113.9', 'X-Forwarded-Host: acp.example.org'],
  'Apache with ProxyVia alone': ['1.1', 'Host: UPSTREAM', 'Via: 1.1 acp.example.org'],
  Caddy: ['1.1', 'Host: UPSTREAM', 'X-Forwarded-For: 203.0.113.9', 'X-Forwarded-Proto: https'],
  Traefik: ['1.1', 'Host: UPSTREAM', 'X-Forwarded-Port: 443', 'X-Real-Ip: 203.0.113.9'],
  Envoy: ['1.1', 'Host: UPSTREAM', 'x-forwarded-proto: https', 'x-request-id: 1'],
  'a network for content': ['1.1', 'Host: UPSTREAM', 'CF-Connecting-IP: 203.0.113.9', 'CDN-Loop: x'],
  Squid: ['1.1', 'Host: UPSTREAM', 'Via: 1.1 squid', 'Cache-Control: max-age=0'],
  'one that writes the header empty': ['1.1', 'Host: UPSTREAM', 'X-Forwarded-For: '],
  'one behind a caller with many headers': [
    '1.1',
    'Host: UPSTREAM',
    ...Array.from({ length: 900 }, (_, at) => `a${at}: 1`),
    'X-Forwarded-For: 203.0.113.9',
  ],
};

overHttp('SEC-5 SEC-6 SEC-16 nobody is anonymous through a proxy that tells of itself in any way', async (open, t) => {
  const app = await open();
  const port = Number(new URL(app.url).port);
  const ask = async (path: string, version: string, headers: readonly string[]) => {
    const raw = await openRaw(t, port);
    const lines = headers.map((line) => line.replace('UPSTREAM', `127.0.0.1:${port}`));
    raw.send(`GET ${path} HTTP/${version}\r\n${[...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`);
    const text = await raw.closed();
    return { status: Number(text.split(' ', 2)[1]), text };
  };
  for (const [what, [version, ...headers]] of Object.entries(proxies)) {
    for (const path of ['/api/agents', '/openapi.json', '/docs']) {
      const { status, text } = await ask(path, version, headers);
      assert.equal(status, 403, `${what}: ${text}`);
      assert.match(text, /"remote-access-denied"/, what);
    }
    const { status, text } = await ask('/api/meta', version, headers);
    assert.equal(status, 200, what);
    assert.match(text, /"canRead":false,"canOperate":false,"canAdminister":false/, what);
  }
  // Without any of it the same request is one of this machine.
  assert.equal((await ask('/api/agents', '1.1', ['Host: UPSTREAM'])).status, 200);
});

overHttp('SEC-16 a proxy that hides altogether gets nothing either, without AnonymousLoopback', async (open) => {
  const app = await open({ host: { AnonymousLoopback: false } });
  for (const path of ['/api/agents', '/openapi.json']) assert.equal((await fetch(app.url + path)).status, 401, path);
  const { roles, authentication } = (await (await fetch(`${app.url}/api/meta`)).json()) as {
    roles: Record<string, boolean>;
    authentication: Record<string, unknown>;
  };
  assert.deepEqual(Object.values(roles), [false, false, false]);
  assert.deepEqual([authentication['methods'], authentication['requiresBearerToken']], [[], true]);
});

overHttp('SEC-16 a page of another site reads nothing without a credential, whatever it loads it as', async (open) => {
  const app = await open();
  const ask = (path: string, headers: Readonly<Record<string, string>>) => fetch(app.url + path, { headers });
  for (const [site, mode, destination] of [
    ['cross-site', 'no-cors', 'image'],
    ['cross-site', 'navigate', 'document'],
    ['cross-site', 'navigate', 'iframe'],
    ['same-site', 'no-cors', 'script'],
  ] as const)
    for (const path of ['/api/agents', '/api/runs', '/openapi.json']) {
      const headers = { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': destination };
      const answer = await ask(path, headers);
      assert.equal(answer.status, 401, `${path} as ${destination}`);
      assert.equal(answer.headers.get('cross-origin-resource-policy'), 'same-origin');
    }
  assert.equal((await ask('/api/agents', { 'sec-fetch-site': 'same-origin' })).status, 200);
  // The page holds no data of its own: a link to it works.
  assert.equal((await ask('/docs', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' })).status, 200);
});
