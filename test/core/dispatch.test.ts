import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import Type from 'typebox';
import { httpTransport } from '../../src/client/http-transport.ts';
import { inProcessTransport } from '../../src/client/in-process-transport.ts';
import { ProblemError } from '../../src/client/problem.ts';
import type { Transport } from '../../src/client/transport.ts';
import type { Role } from '../../src/contract/authority.ts';
import { AcpError } from '../../src/contract/errors.ts';
import { defineOperations, noContent } from '../../src/contract/operation.ts';
import { closed } from '../../src/contract/schema.ts';
import type { Caller, IdempotentCall, UnreadCall } from '../../src/core/context.ts';
import { createDispatch } from '../../src/core/dispatch.ts';
import type { RequestLimitOptions } from '../../src/http/request-limit.ts';
import { admin, openRaw, startServer } from '../http/support.ts';

const change = { tag: 'Things', role: 'Operator', scope: 'RunsWrite', method: 'POST', errors: [] } as const;
const params = Type.Object({ name: Type.String({ pattern: '^[a-z]+$' }) });

const table = {
  things: defineOperations({
    change: {
      ...change,
      path: '/api/things/{name}',
      summary: 'Change a thing',
      params,
      body: closed({ count: Type.Integer(), force: Type.Optional(Type.Boolean()) }),
      raised: [{ member: ['force'], value: true, role: 'Admin', scope: 'PlatformAdmin' }],
      maxBodyBytes: 64,
      responses: { 204: null },
    },
    upload: {
      ...change,
      path: '/api/things/{name}/file',
      summary: 'Give a thing a file',
      params,
      upload: { part: 'file', description: 'The file' },
      responses: { 204: null },
    },
    order: {
      ...change,
      path: '/api/things',
      summary: 'Order a thing once',
      headers: Type.Object({ 'idempotency-key': Type.Optional(Type.String()) }),
      idempotency: true,
      body: closed({ count: Type.Integer() }),
      responses: { 204: null },
    },
    about: {
      ...change,
      method: 'GET',
      path: '/api/about',
      summary: 'Tell whoever asks',
      role: null,
      scope: null,
      responses: { 204: null },
    },
    call: {
      ...change,
      path: '/api/things/{name}/calls',
      summary: 'Call a thing with a signature',
      role: null,
      scope: null,
      signed: true,
      params: Type.Object({ name: Type.String() }),
      headers: Type.Object({ 'x-signature': Type.Optional(Type.String()) }),
      responses: { 200: Type.Object({ body: Type.String(), signature: Type.String() }) },
    },
  }),
};

// Longer than any test takes: a window ends only where a test lets it.
const hour = 3_600_000;

/** A service whose pipeline notes what it passes; the caller's role and the readiness are the test's to change. */
const watched = () => {
  const state: { role: Role | null; ready: boolean } = { role: 'Admin', ready: true };
  let steps: string[] = [];
  const step = (name: string): void => void steps.push(name);
  const caller: Caller = {
    tenantId: 'default',
    principal: {
      ...admin.principal,
      get role() {
        step('authority');
        return state.role;
      },
    },
  };
  const answer = async () => {
    step('handler');
    return noContent();
  };
  const order = async ({ once }: IdempotentCall) => {
    step('handler');
    return once === null ? noContent() : await once('ada', async () => noContent());
  };
  const call = async ({ readBody }: UnreadCall, { headers }: { headers: { 'x-signature'?: string } }) => {
    step('handler');
    const body = Buffer.from(await readBody(64)).toString();
    return { status: 200, body: { body, signature: headers['x-signature'] ?? 'none' } };
  };
  const dispatch = createDispatch(
    table,
    { things: { change: answer, upload: answer, about: answer, order, call } },
    {
      idempotency:
        ({ key, tenantId, method, path, body }) =>
        (ownerId, first) => {
          step(`once ${[key, tenantId, method, path, Buffer.from(body).toString(), ownerId].join(' ')}`);
          return first();
        },
      assertReady() {
        step('readiness');
        if (!state.ready) throw new AcpError('migrating', 'Not yet.');
      },
      metrics: {
        refused: (error) => step(error instanceof AcpError && error.status === 403 ? 'refused' : 'failed'),
        limited: () => step('limited'),
        waited: () => step('waited'),
      },
    },
  );
  const passed = (): string[] => {
    const taken = steps;
    steps = [];
    return taken;
  };
  return { state, caller, dispatch, step, passed };
};

type Watched = ReturnType<typeof watched>;

const serve = (
  t: TestContext,
  { dispatch, caller, step }: Watched,
  limit: Partial<RequestLimitOptions> | null = null,
) =>
  startServer(
    t,
    {},
    {
      dispatch,
      authenticate(request) {
        if (request.header('authorization') === 'Bearer bad')
          throw new AcpError('unauthenticated', 'A valid credential is required.');
        return caller;
      },
      requestLimit:
        limit === null
          ? null
          : {
              permitLimit: 1,
              windowMs: hour,
              queueLimit: 0,
              partition: 'Tenant',
              clientAddress() {
                step('address');
                return '192.0.2.1';
              },
              ...limit,
            },
    },
  );

const transports: Readonly<Record<string, (t: TestContext, service: Watched) => Promise<Transport>>> = {
  http: async (t, service) => httpTransport({ url: (await serve(t, service)).url }),
  'in process': async (_t, { dispatch, caller }) => inProcessTransport(dispatch, caller),
};

const tooLarge = { count: 1, text: 'x'.repeat(100) };

for (const [name, open] of Object.entries(transports))
  test(`a call passes the same steps in the same order, and its authority is checked once [${name}]`, async (t) => {
    const service = watched();
    const { state, passed } = service;
    const transport = await open(t, service);
    t.after(() => transport.close());
    const outcome = async (thing: string, body: unknown): Promise<[string, ...string[]]> => {
      const operation = table.things.change;
      const call = { id: 'things.change', operation, params: { name: thing }, query: {}, headers: {}, body };
      const said = await transport.call(call).then(
        ({ status }) => String(status),
        (error: unknown) => (error instanceof ProblemError ? `${error.code}: ${error.problem.detail}` : String(error)),
      );
      return [said, ...passed()];
    };

    state.role = 'Reader';
    state.ready = false;
    assert.deepEqual(await outcome('A!', tooLarge), [
      'insufficient-role: This operation needs the role Operator.',
      'authority',
      'refused',
    ]);
    state.role = 'Operator';
    assert.deepEqual(await outcome('A!', tooLarge), ['migrating: Not yet.', 'authority', 'readiness', 'failed']);
    state.ready = true;
    const checked = ['authority', 'readiness'];
    assert.deepEqual(await outcome('A!', tooLarge), [
      'payload-too-large: The body is larger than 64 bytes.',
      ...checked,
      'failed',
    ]);
    const [path, ...ofPath] = await outcome('A!', { count: 'x', force: true });
    assert.match(path, /^validation-failed: name /);
    assert.deepEqual(ofPath, [...checked, 'failed']);
    const [member, ...ofMember] = await outcome('a', { count: 'x', force: true });
    assert.match(member, /^validation-failed: count /, 'a body that does not fit says nothing about authority');
    assert.deepEqual(ofMember, [...checked, 'failed']);
    assert.deepEqual(await outcome('a', { count: 1, force: true }), [
      'insufficient-role: force true needs the role Admin.',
      ...checked,
      'authority',
      'refused',
    ]);
    assert.deepEqual(await outcome('a', { count: 1 }), ['204', ...checked, 'handler']);
    state.role = 'Admin';
    assert.deepEqual(await outcome('a', { count: 1, force: true }), ['204', ...checked, 'authority', 'handler']);
  });

for (const [name, open] of Object.entries(transports))
  test(`a key is put to use after all checks, where the handler knows whose the answer is [${name}]`, async (t) => {
    const service = watched();
    const { state, passed } = service;
    const transport = await open(t, service);
    t.after(() => transport.close());
    const outcome = async (headers: object, body: unknown): Promise<string[]> => {
      const operation = table.things.order;
      const call = { id: 'things.order', operation, params: {}, query: {}, headers: { ...headers }, body };
      await transport.call(call).catch(() => undefined);
      return passed();
    };
    const keyed = { 'idempotency-key': 'k' };
    const checked = ['authority', 'readiness'];
    assert.deepEqual(await outcome({}, { count: 1 }), [...checked, 'handler']);
    assert.deepEqual(await outcome(keyed, { count: 1 }), [
      ...checked,
      'handler',
      'once k default POST /api/things {"count":1} ada',
    ]);
    assert.deepEqual(await outcome(keyed, { count: 'x' }), [...checked, 'failed']);
    state.role = 'Reader';
    assert.deepEqual(await outcome(keyed, { count: 1 }), ['authority', 'refused']);
  });

for (const [name, open] of Object.entries(transports))
  test(`a signed call is handed over as it was sent, to a handler that reads it itself [${name}]`, async (t) => {
    const service = watched();
    const { state, passed } = service;
    const transport = await open(t, service);
    t.after(() => transport.close());
    const outcome = async (body: string, headers: object = {}): Promise<unknown[]> => {
      const operation = table.things.call;
      const call = { id: 'things.call', operation, params: { name: 'A!' }, query: {}, headers: { ...headers }, body };
      const said = await transport.call(call).then(
        ({ body: answer }) => answer,
        (error: unknown) => (error instanceof ProblemError ? error.code : String(error)),
      );
      return [said, ...passed()];
    };
    const steps = ['readiness', 'handler'];
    const body = '{"not": "parsed" ';
    assert.deepEqual(await outcome(body, { 'x-signature': 's' }), [{ body, signature: 's' }, ...steps]);
    assert.deepEqual(await outcome(''), [{ body: '', signature: 'none' }, ...steps]);
    assert.deepEqual(await outcome('x'.repeat(65)), ['payload-too-large', ...steps, 'failed']);
    state.role = 'Reader';
    assert.deepEqual(await outcome('x'), [{ body: 'x', signature: 'none' }, ...steps], 'nobody asks for a role');
    state.ready = false;
    assert.deepEqual(await outcome('x'), ['migrating', 'readiness', 'failed']);
  });

test('a signed operation leaves callers and body to its signature, or is none', () => {
  const { call } = table.things;
  const handlers = { things: { call: async () => noContent() } };
  assert.doesNotThrow(() => createDispatch({ things: { call } }, handlers));
  for (const more of [
    { role: 'Reader', scope: 'RunsRead' },
    { anyCaller: true },
    { body: closed({}) },
    { upload: { part: 'file', description: 'The file' } },
  ] as const)
    assert.throws(() => createDispatch({ things: { call: { ...call, ...more } } }, handlers), /to its signature/);
});

/** The first line of the answer to a request whose body is announced, and held back until it is asked for. */
const announced = async (
  t: TestContext,
  port: number,
  path: string,
  { type = 'application/json', length = 1_000_000 } = {},
): Promise<{ line: string; text: string }> => {
  const connection = await openRaw(t, port);
  const head = [`POST ${path} HTTP/1.1`, 'Host: x', `Content-Type: ${type}`, `Content-Length: ${length}`];
  connection.send(`${[...head, 'Expect: 100-continue'].join('\r\n')}\r\n\r\n`);
  const text = await connection.until(/^HTTP\/1.1 .*?\r\n\r\n/s);
  return { line: text.slice(0, text.indexOf('\r\n')), text };
};

const form = { type: 'multipart/form-data; boundary=b' };

test('nothing is read of a caller without authority: 403 is before 413, before 100 Continue, and before a file', async (t) => {
  const service = watched();
  const { port } = await serve(t, service);
  service.state.role = 'Reader';
  for (const options of [{}, { length: 10 }])
    assert.match((await announced(t, port, '/api/things/a', options)).line, / 403 /);
  assert.match((await announced(t, port, '/api/things/a/file', form)).line, / 403 /);
  service.state.role = 'Operator';
  assert.match((await announced(t, port, '/api/things/a')).line, / 413 /);
  assert.match((await announced(t, port, '/api/things/a', { length: 10 })).line, / 100 /, 'now it is asked for');
  assert.match((await announced(t, port, '/api/things/a/file', form)).line, / 100 /);
});

test('RATE-3 RATE-6 the limit is after 403, which is not counted, and before 503, 413, 400 and a file', async (t) => {
  const service = watched();
  const { state, passed } = service;
  const { port } = await serve(t, service, { permitLimit: 4 });
  const answered = async (path: string, options?: Parameters<typeof announced>[3]) => {
    const { text } = await announced(t, port, path, options);
    return `${text.slice(9, 12)} ${/\r\nratelimit: "requests";r=(\d+)/.exec(text)?.[1] ?? 'none'}`;
  };
  state.role = 'Reader';
  assert.equal(await answered('/api/things/a'), '403 none', 'a caller who may not ask is not counted');
  state.role = 'Operator';
  state.ready = false;
  assert.equal(await answered('/api/things/a'), '503 3');
  state.ready = true;
  assert.equal(await answered('/api/things/a'), '413 2', 'a refusal tells what is left, too');
  assert.equal(await answered('/api/things/A!', { length: 0 }), '400 1');
  assert.equal(await answered('/api/things/a/file', { ...form, type: 'text/plain' }), '415 0');
  passed();
  for (const path of ['/api/things/a', '/api/things/A!', '/api/things/a/file'])
    assert.equal(await answered(path), '429 0');
  assert.deepEqual(passed(), Array(3).fill(['authority', 'limited', 'failed']).flat());
  state.role = 'Reader';
  assert.equal(await answered('/api/things/a'), '403 none', 'without a permit, authority is still what is told first');
});

test('RATE-3 RATE-4 addresses are counted before the credential, and neither for what is open to everybody', async (t) => {
  const service = watched();
  const { url } = await serve(t, service, { partition: 'RemoteAddress' });
  const ask = async (path: string, token: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const method = path === '/api/about' ? 'GET' : 'POST';
    const answer = await fetch(url + path, { method, headers, ...(method === 'GET' ? {} : { body: '{"count":1}' }) });
    await answer.arrayBuffer();
    return answer.status;
  };
  assert.deepEqual([await ask('/api/about', 'good'), service.passed()], [204, ['handler']]);
  assert.deepEqual([await ask('/api/things/a', 'bad'), service.passed()], [401, ['address', 'failed']]);
  assert.deepEqual([await ask('/api/things/a', 'bad'), service.passed()], [429, ['address', 'limited', 'failed']]);
  assert.deepEqual([await ask('/api/about', 'good'), service.passed()], [204, ['handler']]);
});

test('RATE-5 a caller who waits for a turn passes the rest of the pipeline then, and the wait is measured', async (t) => {
  const service = watched();
  const { url } = await serve(t, service, { windowMs: 400, queueLimit: 1 });
  const ask = () =>
    fetch(`${url}/api/things/a`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"count":1}',
    });
  const [first, second] = await Promise.all([ask(), ask()]);
  assert.deepEqual([first.status, second.status], [204, 204]);
  assert.deepEqual(service.passed().slice(-3), ['waited', 'readiness', 'handler']);
});

test('RATE-5 whoever goes away while waiting leaves the place to the next, and is not answered', async (t) => {
  const service = watched();
  const { url, port, server } = await serve(t, service, { queueLimit: 1 });
  const head = 'POST /api/things/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n';
  const send = async () => {
    const connection = await openRaw(t, port);
    connection.send(`${head}{"count":1}`);
    // Answered after it: the service has seen what was sent before.
    await fetch(`${url}/health/live`).then((answer) => answer.arrayBuffer());
    return connection;
  };
  await (await send()).until(/ 204 /);
  const leaving = await send();
  leaving.socket.destroy();
  await leaving.closed();
  await fetch(`${url}/health/live`).then((answer) => answer.arrayBuffer());
  const next = await send();
  void server.close();
  assert.match(await next.until(/^HTTP\/1.1 \d+ /), / 503 /, 'it waited, and is told that the service stops');
  assert.equal(service.passed().filter((name) => name === 'handler').length, 1);
});
