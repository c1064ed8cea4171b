import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Finding } from '../../src/cli/diagnosis/finding.ts';
import { runningServiceFindings } from '../../src/cli/diagnosis/running-service.ts';
import { startServer } from '../providers/http/loopback-server.ts';

type Answers = Readonly<Record<string, readonly [status: number, body: unknown]>>;

const meta = {
  version: '1.2.3',
  storage: { provider: 'Sqlite' },
  authentication: { methods: ['ApiKey'], allowRemoteAccess: false },
};
const problem = (status: number, code: string) =>
  [
    status,
    { type: `urn:acp:problem:${code}`, title: code, status, detail: code, code, requestId: 'r', instance: '/' },
  ] as const;

/** What doctor reports of a service that answers so, by its checks. */
const reported = async (answers: Answers): Promise<readonly string[]> => {
  const server = await startServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, server.url);
    // What a service remembers of its providers is no trial of them.
    const isRemembered = pathname === '/api/models/health' && searchParams.get('refresh') !== 'true';
    const [status, body] = isRemembered ? problem(500, 'internal') : (answers[pathname] ?? [200, []]);
    const type = status === 200 ? 'application/json' : 'application/problem+json';
    response.writeHead(status, { 'content-type': type }).end(JSON.stringify(body));
  });
  try {
    const findings: Finding[] = [];
    for await (const finding of runningServiceFindings({ url: server.url, token: undefined }, (error) => String(error)))
      findings.push(finding);
    return findings.map(({ status, check, message }) => `${status} ${check}: ${message}`);
  } finally {
    await server.close();
  }
};

const diagnostics = {
  configuration: [{ key: 'Service:A', resolved: false, hint: 'Set it.' }],
  pendingMigrations: ['0001-a'],
  draining: true,
  canConnect: false,
  persistenceProvider: 'Sqlite',
  worker: { enabled: true, activeJobs: 2 },
  modules: [],
};

test('doctor reports what is wrong with a running service, and asks the rest all the same', async () => {
  const findings = await reported({
    '/api/meta': [200, meta],
    '/api/diagnostics': [200, diagnostics],
    '/api/tools': problem(500, 'internal'),
  });
  assert.deepEqual(findings.slice(2), [
    'fail store: Sqlite: the service does not reach it',
    'warn migrations: pending: 0001-a',
    'ok worker: on, 2 jobs in progress',
    'ok modules: none',
    'warn service: it is stopping',
    'warn config: Service:A has no value there: Set it.',
    'warn providers: none; no agent of this service can run',
    findings.find((text) => text.startsWith('fail tools: ')),
    'ok agents: none',
  ]);
});

test('doctor says what its credential may not read, for each refusal of it', async () => {
  for (const [status, code] of [
    [401, 'unauthenticated'],
    [403, 'forbidden'],
    [404, 'unknown-url'],
  ] as const) {
    const refusal = problem(status, code);
    const findings = await reported({
      '/api/meta': [200, meta],
      '/api/diagnostics': refusal,
      '/api/models/health': refusal,
      '/api/tools': refusal,
      '/api/agents': refusal,
    });
    assert.deepEqual(
      findings.slice(2).map((text) => text.split(':')[0]),
      ['skip diagnostics', 'skip providers', 'skip tools', 'skip agents'],
      String(status),
    );
  }
});
