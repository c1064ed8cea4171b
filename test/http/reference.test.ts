import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AcpError } from '../../src/contract/errors.ts';
import { operationEntries } from '../../src/core/dispatch.ts';
import { buildOpenApi } from '../../src/http/openapi.ts';
import { problemOf, startServer, table } from './support.ts';

const ask = (url: string, path: string, authorization?: string) =>
  fetch(url + path, authorization === undefined ? {} : { headers: { authorization } });

test('GET /openapi.json is the description of the served table', async (t) => {
  const { url } = await startServer(t, {}, { prefix: '/acp' });
  const answer = await ask(url, '/acp/openapi.json');
  assert.equal(answer.headers.get('content-type'), 'application/json');
  const expected = buildOpenApi(operationEntries(table), { version: '1.2.3', prefix: '/acp', title: 'Test' });
  assert.deepEqual(await answer.json(), JSON.parse(JSON.stringify(expected)));
});

test('the description needs the role Reader', async (t) => {
  const { url } = await startServer(t);
  assert.equal((await ask(url, '/openapi.json', 'Bearer reader')).status, 200);
  assert.equal((await problemOf(await ask(url, '/openapi.json', 'Bearer nobody'))).code, 'insufficient-role');
  assert.equal((await problemOf(await ask(url, '/openapi.json', 'Bearer bad'))).code, 'unauthenticated');
});

test('the page and its parts come from the service, under a policy that lets nothing else in', async (t) => {
  const { url } = await startServer(t);
  const page = await ask(url, '/docs');
  const html = await page.text();
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; /);
  assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  const parts = [...html.matchAll(/(?:src|href)="(docs\/[^"]+)"/g)].map(([, path]) => path ?? '');
  assert.equal(parts.length, 4);
  assert.doesNotMatch(html, /https?:\/\/|<style|<script>| style=| on\w+=/);
  for (const part of parts) {
    const answer = await ask(url, `/${part}`);
    assert.equal(answer.status, 200, part);
    assert.match(answer.headers.get('content-type') ?? '', part.endsWith('.css') ? /^text\/css/ : /^text\/javascript/);
    assert.ok((await answer.arrayBuffer()).byteLength > 0);
  }
});

test('a browser is sent from the root to the page, and a program gets the problem of an unknown path', async (t) => {
  const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  for (const prefix of ['', '/acp']) {
    const { url } = await startServer(t, {}, { prefix });
    const visit = (path: string, accept: string) => fetch(url + path, { redirect: 'manual', headers: { accept } });
    for (const path of ['/', prefix === '' ? '/' : prefix]) {
      const sent = await visit(path, browser);
      assert.deepEqual([sent.status, sent.headers.get('location')], [302, `${prefix}/docs`], path);
      assert.equal((await fetch(new URL(`${prefix}/docs`, url))).status, 200);
      for (const accept of ['*/*', 'application/json', 'text/html;q=0, application/json'])
        assert.equal((await problemOf(await visit(path, accept))).status, 404, accept);
    }
    assert.equal((await problemOf(await visit('/elsewhere', browser))).status, 404);
  }
});

test('SEC-2 the page asks for no credential, yet keeps to the rules about who may connect', async (t) => {
  let code: 'unauthenticated' | 'remote-access-denied' | 'origin-denied' = 'unauthenticated';
  const authenticate = () => {
    throw new AcpError(code, 'No.');
  };
  const { url } = await startServer(t, {}, { authenticate });
  assert.equal((await ask(url, '/docs')).status, 200);
  for (code of ['remote-access-denied', 'origin-denied'] as const) {
    assert.equal((await ask(url, '/docs')).status, 403);
    assert.equal((await ask(url, '/docs/renderer.js')).status, 403);
  }
});
