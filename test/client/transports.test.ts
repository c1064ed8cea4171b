import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { createClient } from '../../src/client/client.ts';
import { httpTransport } from '../../src/client/http-transport.ts';
import { ProblemError } from '../../src/client/problem.ts';
import { AcpError, type ErrorCode } from '../../src/contract/errors.ts';
import { agent, collect, startService } from './service.ts';

const hasCode = (code: ErrorCode) => (error: unknown) => {
  assert.ok(error instanceof AcpError, String(error));
  assert.equal(error.code, code);
  return true;
};

const problemOf = async (work: Promise<unknown>): Promise<Record<string, unknown>> => {
  const error = await work.then(
    () => assert.fail('the call succeeded'),
    (cause: unknown) => cause,
  );
  assert.ok(error instanceof ProblemError, String(error));
  const { requestId, ...problem } = error.problem;
  assert.notEqual(requestId, '');
  return problem;
};

describe('both transports', () => {
  test('give the same answers and the same problems', async (t) => {
    const { clients } = await startService(t);
    const [[, http], [, local]] = clients as [(typeof clients)[number], (typeof clients)[number]];
    assert.equal((await http.agents.create({ body: agent })).status, 201);

    const calls = [
      (client: typeof http) => client.agents.list(),
      (client: typeof http) => client.agents.get({ params: { name: 'hello' } }),
      (client: typeof http) => client.agents.versions({ params: { name: 'hello' } }),
      (client: typeof http) => client.models.list(),
      (client: typeof http) => client.runs.list({ query: { take: 3, includeChildren: true } }),
    ];
    for (const call of calls) assert.deepEqual((await call(local)).body, (await call(http)).body);

    const failures = [
      (client: typeof http) => client.agents.get({ params: { name: 'nobody' } }),
      (client: typeof http) => client.agents.get({ params: { name: 'über/…' } }),
      (client: typeof http) => client.agents.create({ body: agent }),
      (client: typeof http) =>
        client.agents.create({ body: { ...agent, name: 'x', model: { provider: 'no', model: 'y' } } }),
      (client: typeof http) => client.agents.create({ body: { name: 'x' } as never }),
      (client: typeof http) => client.agents.create({ body: { ...agent, description: 'x'.repeat(1_100_000) } }),
      (client: typeof http) => client.runs.list({ query: { status: 'Sleeping' as never } }),
      (client: typeof http) => client.runs.get({ params: { runId: 'abc' } }),
      (client: typeof http) => client.runs.start({ params: { name: 'hello' }, body: {} }),
    ];
    for (const call of failures) assert.deepEqual(await problemOf(call(local)), await problemOf(call(http)));
  });

  test('stream a run with the id in a header, and give one JSON answer where it is asked for', async (t) => {
    const { clients } = await startService(t);
    await clients[0]?.[1].agents.create({ body: agent });
    for (const [name, client] of clients) {
      const started = await client.runs.start({ params: { name: 'hello' }, body: { message: 'hi' } });
      assert.ok(started.frames !== undefined, name);
      const frames = await collect(started.frames);
      assert.deepEqual(
        frames.map(({ id }) => id),
        frames.map((_frame, index) => index),
      );
      assert.equal(frames.at(-1)?.event, 'run.completed');
      assert.match(frames[0]?.data ?? '', new RegExp(`"runId":"${started.headers['x-run-id']}"`));

      const answered = await client.runs.start({ params: { name: 'hello' }, body: { message: 'hi', stream: false } });
      assert.ok(answered.status === 200 && answered.frames === undefined);
      assert.equal(answered.body.output, 'Hello');
    }
  });

  test('end with the reason of the signal, before and while frames arrive', async (t) => {
    const { clients } = await startService(t);
    await clients[0]?.[1].agents.create({ body: agent });
    for (const [, client] of clients) {
      const reason = new Error('enough');
      await assert.rejects(client.agents.list({ signal: AbortSignal.abort(reason) }), reason);
      const leave = new AbortController();
      const { frames, headers } = await client.runs.start({
        params: { name: 'hello' },
        body: { message: 'stall' },
        signal: leave.signal,
      });
      assert.ok(frames !== undefined);
      const reading = (async () => {
        for await (const frame of frames) if (frame.event === 'run.started') leave.abort(reason);
      })();
      await assert.rejects(reading, reason);
      await client.runs.cancel({ params: { runId: headers['x-run-id'] ?? '' } });
    }
  });
});

const listening = async (t: { after(work: () => Promise<void>): void }, listener: RequestListener): Promise<string> => {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

describe('the HTTP transport', () => {
  const callOnce = async (url: string, token?: string): Promise<unknown> => {
    const transport = httpTransport({ url, token });
    try {
      return await createClient(transport).agents.list();
    } finally {
      await transport.close();
    }
  };

  test('says that nothing listens, that the host is unknown, and that another program answers', async (t) => {
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    closed.close();
    await once(closed, 'close');
    await assert.rejects(callOnce(`http://127.0.0.1:${port}`), hasCode('cannot-connect'));

    const page = await listening(t, (_request, response) => response.end('<html>Welcome</html>'));
    await assert.rejects(callOnce(page), hasCode('cannot-connect'));
    const broken = await listening(t, (_request, response) => response.writeHead(502).end('Bad gateway'));
    await assert.rejects(callOnce(broken), hasCode('provider-error'));
    const cutting = await listening(t, (request) => request.socket.destroy());
    await assert.rejects(callOnce(cutting), hasCode('cannot-connect'));
  });

  test('does not follow a redirect, with which a token would travel on', async (t) => {
    const seen: (string | undefined)[] = [];
    const elsewhere = await listening(t, (request, response) => {
      seen.push(request.headers.authorization);
      response.end('[]');
    });
    const url = await listening(t, (_request, response) => response.writeHead(307, { location: elsewhere }).end());
    await assert.rejects(callOnce(url, 'secret'), AcpError);
    assert.deepEqual(seen, []);
  });

  test('keeps the prefix of the address, encodes parameters, sends the token and keeps connections', async (t) => {
    const seen: string[] = [];
    const sockets = new Set<unknown>();
    const url = await listening(t, (request, response) => {
      sockets.add(request.socket);
      seen.push(`${request.method} ${request.url} ${request.headers.authorization}`);
      response.writeHead(200, { 'content-type': 'application/json' }).end('[]');
    });
    const transport = httpTransport({ url: `${url}/acp/`, token: 't' });
    const client = createClient(transport);
    await client.agents.versions({ params: { name: 'a/b c?' } });
    await client.runs.list({ query: { label: 'a:b&c', take: 5 } });
    await transport.close();
    assert.deepEqual(seen, [
      'GET /acp/api/agents/a%2Fb%20c%3F/versions Bearer t',
      'GET /acp/api/runs?label=a%3Ab%26c&take=5 Bearer t',
    ]);
    assert.equal(sockets.size, 1);
  });

  test('refuses addresses that are no service, and credentials in them', () => {
    for (const url of ['nonsense', 'ftp://127.0.0.1', 'http://user:secret@127.0.0.1'])
      assert.throws(
        () => httpTransport({ url }),
        (error) => {
          assert.ok(error instanceof AcpError);
          assert.ok(!error.message.includes('secret'));
          return hasCode('validation-failed')(error);
        },
      );
  });
});
