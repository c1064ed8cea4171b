import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';

/** The proxies that can be tried: how each is started, and with which settings from a line of its own to those of the guide. */
interface Proxy {
  readonly program: string;
  readonly args: (folder: string) => readonly string[];
  /** Name of the file that holds the settings. */
  readonly file: string;
  /** The fewest settings that send requests on. */
  readonly least: (port: number, upstream: number) => string;
  /** The settings of `docs/security.md`, without TLS. */
  readonly advised: (block: string, port: number, upstream: number) => string;
  readonly language: string;
}

const nginxFile = (server: string): string => `daemon off;
master_process off;
pid nginx.pid;
error_log stderr error;
events {}
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
${server}
}
`;
const caddyFile = (site: string): string => `{
  admin off
  auto_https off
}
${site}
`;

const proxies: readonly Proxy[] = [
  {
    program: 'nginx',
    args: (folder) => ['-p', folder, '-c', join(folder, 'proxy.conf'), '-e', 'stderr'],
    file: 'proxy.conf',
    least: (port, upstream) =>
      nginxFile(`server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${upstream}; } }`),
    advised: (block, port, upstream) =>
      nginxFile(
        block
          .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
          .replace(/ssl_certificate.*;/g, '')
          .replace('127.0.0.1:7070', `127.0.0.1:${upstream}`),
      ),
    language: 'nginx',
  },
  {
    program: 'caddy',
    args: (folder) => ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'],
    file: 'Caddyfile',
    // The Host of the service, so that nothing but Caddy's own headers tells of it.
    least: (port, upstream) => caddyFile(`http://127.0.0.1:${port} {\n  reverse_proxy 127.0.0.1:${upstream}\n}`),
    advised: (block, port, upstream) =>
      caddyFile(
        block
          .replace('acp.example.org {', `http://:${port} {\n  bind 127.0.0.1`)
          .replace('127.0.0.1:7070', `127.0.0.1:${upstream}`),
      ),
    language: 'caddyfile',
  },
];

const isInstalled = (program: string): boolean =>
  spawnSync(program, [program === 'nginx' ? '-v' : 'version'], { stdio: 'ignore' }).error === undefined;

const freePort = async (): Promise<number> => {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  return typeof address === 'object' && address !== null ? address.port : assert.fail('no port');
};

const blockOf = (language: string): string => {
  const guide = readFileSync(join(import.meta.dirname, '../../docs/security.md'), 'utf8');
  return new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(guide)?.[1] ?? assert.fail(`no ${language} in the guide`);
};

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Not `fetch`: it does not let its caller say which host it means. */
const ask = (port: number, path: string, headers: Record<string, string>, body?: string): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST';
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (part: string) => {
        text += part;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
      answer.on('error', reject);
    });
    sent.on('error', reject);
    sent.end(body);
  });

/** Starts the proxy and waits until it passes something on. */
const start = async (t: TestContext, proxy: Proxy, settings: string, port: number): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-proxy-'));
  writeFileSync(join(folder, proxy.file), settings);
  let said = '';
  const child: ChildProcess = spawn(proxy.program, proxy.args(folder), {
    env: { HOME: folder, PATH: process.env['PATH'], XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (part: Buffer) => {
      said += part.toString();
    });
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  });
  await eventually(`${proxy.program} passes on a request`, async () => {
    assert.equal(child.exitCode, null, said);
    const up = await ask(port, '/health/live', { host: 'acp.example.org' }).catch(() => null);
    return up?.status === 200;
  });
};

const token = 'a-shared-token-behind-a-proxy';

for (const proxy of proxies) {
  const skip = isInstalled(proxy.program) ? false : `${proxy.program} is not installed`;

  test(`SEC-5 SEC-16 nobody is local or anonymous through ${proxy.program} as it is`, { skip }, async (t) => {
    const app = await openApp(t, 'http');
    const upstream = Number(new URL(app.url).port);
    const port = await freePort();
    await start(t, proxy, proxy.least(port, upstream), port);
    for (const path of ['/api/agents', '/openapi.json']) {
      const { status, text } = await ask(port, path, { host: `127.0.0.1:${port}` });
      assert.equal(status, 403, text);
      assert.match(text, /"remote-access-denied"/);
      assert.equal((await ask(upstream, path, { host: `127.0.0.1:${upstream}` })).status, 200);
    }
  });

  test(`SEC-5 SEC-9 the settings of the guide for ${proxy.program} serve callers with a credential`, {
    skip,
  }, async (t) => {
    const app = await openApp(t, 'http', {
      token,
      host: { AllowRemoteAccess: true, AnonymousLoopback: false, AuthToken: token, TrustedProxies: ['127.0.0.1'] },
      agents: [{ name: 'helper' }],
    });
    const upstream = Number(new URL(app.url).port);
    const port = await freePort();
    await start(t, proxy, proxy.advised(blockOf(proxy.language), port, upstream), port);
    const host = 'acp.example.org';
    assert.equal((await ask(port, '/api/agents', { host })).status, 401);
    const authorization = `Bearer ${token}`;
    const listed = await ask(port, '/api/agents', { host, authorization });
    assert.equal(listed.status, 200);
    assert.match(listed.text, /"helper"/);
    const body = JSON.stringify({ message: 'Hello' });
    const headers = { host, authorization, 'content-type': 'application/json' };
    const run = await ask(port, '/api/agents/helper/run', headers, body);
    assert.equal(run.status, 200, run.text);
    assert.match(run.text, /^event: run\.completed$/m);
  });
}
