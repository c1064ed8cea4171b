import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSite, type ServiceProcess, type Site } from '../support.ts';
import { call, exchange, openSocket, received } from '../wire.ts';

const model = { provider: 'demo', model: 'm' };
const MiB = 1_048_576;

interface Attack {
  readonly request: string;
  readonly headers?: readonly string[];
  readonly body?: string | Uint8Array;
  /** Status, then the problem's code where there is one. */
  readonly expected: readonly [status: number, code?: string];
  /** What the answer must contain. */
  readonly says?: RegExp;
}

const run = 'POST /api/agents/talker/run';
const save = 'POST /api/agents';
const invalid = [400, 'validation-failed'] as const;
const nothing = [404, 'not-found'] as const;
const malformed = [400, 'request-malformed'] as const;

const nested = (depth: number): string => `{"message":"x","parameters":${'['.repeat(depth)}${']'.repeat(depth)}}`;
const agentBody = (name: string): string => JSON.stringify({ name, model });
/** A JSON body of exactly so many bytes. */
const sized = (bytes: number, more = ''): string => {
  const frame = `{"message":""${more}}`;
  return frame.replace('""', `"${'x'.repeat(bytes - frame.length)}"`);
};

const bodies: Readonly<Record<string, Attack>> = {
  'JSON that ends too soon': { request: run, body: '{"message":', expected: [400, 'malformed-json'] },
  'two documents': { request: run, body: '{"message":"a"}{"message":"b"}', expected: [400, 'malformed-json'] },
  'a number where text belongs': { request: run, body: '{"message":5}', expected: invalid, says: /message/ },
  'an array where an object belongs': { request: run, body: '[]', expected: invalid },
  'a misspelt member': { request: run, body: '{"message":"x","sesionId":"a"}', expected: invalid, says: /sesionId/ },
  'a member for the prototype': { request: run, body: '{"message":"x","__proto__":{"a":1}}', expected: invalid },
  'deep nesting': { request: run, body: nested(100), expected: invalid, says: /deeper/ },
  'very deep nesting': { request: run, body: nested(500_000), expected: invalid, says: /deeper/ },
  'invalid UTF-8': {
    request: run,
    body: Buffer.from([0x7b, 0x22, 0x6d, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
    expected: [400, 'malformed-json'],
    says: /UTF-8/,
  },
  'no content type': {
    request: run,
    headers: ['Content-Type: '],
    body: '{}',
    expected: [415, 'unsupported-media-type'],
  },
  'a compressed body': {
    request: run,
    headers: ['Content-Encoding: gzip'],
    body: '\x1f\x8b\x08',
    expected: [415, 'unsupported-media-type'],
  },
  'a save of 1 MiB and a byte': { request: save, body: sized(MiB + 1), expected: [413, 'payload-too-large'] },
  'a save of 1 MiB is read': { request: save, body: sized(MiB), expected: [400] },
  'a run of 4 MiB and a byte': { request: run, body: sized(4 * MiB + 1), expected: [413, 'payload-too-large'] },
  'a run of 4 MiB is read': { request: run, body: sized(4 * MiB, ',"stream":false'), expected: [200] },
  'a chunked body without end': {
    request: run,
    headers: ['Transfer-Encoding: chunked'],
    body: `${(4 * MiB + 1).toString(16)}\r\n${'x'.repeat(4 * MiB + 1)}\r\n`,
    expected: [413, 'payload-too-large'],
  },
  'a length that no memory has': {
    request: run,
    headers: ['Content-Length: 9007199254740991', 'Expect: 100-continue'],
    expected: [413, 'payload-too-large'],
  },
};

// A name that no agent can have is unknown like any other.
const unknownAgent = [404, 'agent-not-found'] as const;

const paths: Readonly<Record<string, Attack>> = {
  'dots in the path': { request: 'GET /api/agents/../../../etc/passwd', expected: nothing },
  'encoded dots': { request: 'GET /api/agents/%2e%2e%2f%2e%2e%2fetc%2fpasswd', expected: unknownAgent },
  'encoded dots alone': { request: 'GET /api/agents/%2e%2e', expected: unknownAgent },
  'dots for a run': { request: 'GET /api/runs/..%2f..%2fmeta', expected: invalid },
  'a zero byte': { request: 'GET /api/agents/talker%00.json', expected: unknownAgent },
  'a very long name': { request: `GET /api/agents/${'a'.repeat(10_000)}`, expected: unknownAgent },
  'a URL beyond every limit': { request: `GET /${'a'.repeat(70_000)}`, expected: [431, 'headers-too-large'] },
  'broken percent-encoding': { request: 'GET /api/agents/%zz', expected: invalid },
  'encoding that is no UTF-8': { request: 'GET /api/agents/%ff%fe', expected: invalid },
  'a line break in a name': { request: 'GET /api/agents/a%0d%0aSet-Cookie:%20a=b', expected: unknownAgent },
  'a name of the language': { request: 'GET /api/agents/constructor', expected: unknownAgent },
  'a static file outside': { request: 'GET /docs/../../package.json', expected: nothing },
  'a static file outside, encoded': { request: 'GET /docs/%2e%2e%2f%2e%2e%2fpackage.json', expected: nothing },
  'SQL in a filter': { request: `GET /api/runs?agentName='%20or%201=1--`, expected: [200], says: /\r\n\r\n\[\]$/ },
  'SQL in a label': { request: `GET /api/runs?label=a%22%27)%3Bdrop:1`, expected: [200], says: /\r\n\r\n\[\]$/ },
  'a page size that is no number': { request: 'GET /api/runs?take=many', expected: invalid },
  'a broken query': { request: 'GET /api/runs?label=%zz', expected: invalid },
};

const names: Readonly<Record<string, Attack>> = Object.fromEntries(
  ['..', '../x', 'a/b', 'a\u0000', '.hidden', 'a b', 'ä', 'a\r\nb', '__proto__', 'a'.repeat(129)].map((name) => [
    `an agent named ${JSON.stringify(name.slice(0, 20))}`,
    { request: save, body: agentBody(name), expected: [400, 'definition-invalid'] },
  ]),
);

const somewhere = '/api/runs/00000000-0000-7000-8000-000000000000';
const heads: Readonly<Record<string, Attack>> = {
  'a session id with a line break': { request: run, body: '{"message":"x","sessionId":"a\\r\\nb"}', expected: invalid },
  'a line feed in a header': { request: 'GET /api/meta', headers: ['X-A: a\nX-B: b'], expected: [400] },
  'a control character in a header': { request: 'GET /api/meta', headers: ['X-A: a\u0001b'], expected: malformed },
  'a header name with a space': { request: 'GET /api/meta', headers: ['X A: b'], expected: malformed },
  'headers beyond the limit': {
    request: 'GET /api/meta',
    headers: [`X-A: ${'a'.repeat(70_000)}`],
    expected: [431, 'headers-too-large'],
  },
  'two lengths': { request: run, headers: ['Content-Length: 2', 'Content-Length: 3'], body: '{}', expected: malformed },
  'a length and chunks': {
    request: run,
    headers: ['Content-Length: 2', 'Transfer-Encoding: chunked'],
    body: '0\r\n\r\n',
    expected: malformed,
  },
  'an idempotency key beyond the limit': {
    request: run,
    headers: [`Idempotency-Key: ${'k'.repeat(256)}`],
    body: '{"message":"x"}',
    expected: [400, 'idempotency-key-invalid'],
  },
  'a negative place in a log': { request: `GET ${somewhere}/events`, headers: ['Last-Event-ID: -1'], expected: [400] },
  'a place that is no number': { request: `GET ${somewhere}/events`, headers: ['Last-Event-ID: 1e3'], expected: [400] },
  'another host': { request: 'GET /api/agents', headers: ['Host: evil.example'], expected: [403, 'origin-denied'] },
  'another origin': { request: 'GET /api/agents', headers: ['Origin: http://evil.example'], expected: [403] },
  'a forwarded caller': { request: 'GET /api/agents', headers: ['X-Forwarded-For: 127.0.0.1'], expected: [403] },
  'an unknown method': { request: 'BREW /api/meta', expected: malformed },
};

describe('hostile input', () => {
  let site: Site;
  let service: ServiceProcess;
  /** Callers that send their headers a byte at a time, from before the first test on. */
  let dripping: readonly { readonly answer: Promise<string> }[];

  const drip = async (): Promise<{ answer: Promise<string> }> => {
    const socket = await openSocket(service.url);
    socket.write('GET /api/meta HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ');
    const timer = setInterval(() => socket.write('a'), 1000);
    socket.once('close', () => clearInterval(timer));
    return { answer: received(socket) };
  };

  before(async () => {
    site = openSite();
    service = await site.serve();
    dripping = await Promise.all(Array.from({ length: 200 }, drip));
    const created = await call(`${service.url}/api/agents`, { body: { name: 'talker', model } });
    assert.equal(created.status, 201, created.text);
  });

  after(() => site.close());

  const send = ({ request, headers = [], body = '' }: Attack): Promise<string> => {
    const given = (name: string): boolean => headers.some((line) => line.toLowerCase().startsWith(`${name}:`));
    const defaults = [
      ['host', 'Host: 127.0.0.1'],
      ['content-type', 'Content-Type: application/json'],
      ['connection', 'Connection: close'],
      ...(given('transfer-encoding') ? [] : [['content-length', `Content-Length: ${Buffer.byteLength(body)}`]]),
    ] as const;
    const missing = defaults.filter(([name]) => !given(name as string)).map(([, line]) => line);
    return exchange(service.url, [`${request} HTTP/1.1`, ...missing, ...headers, '', ''].join('\r\n'), body);
  };

  for (const [kind, attacks] of Object.entries({ bodies, paths, names, heads }))
    test(`${kind} are refused in words that help an honest caller and nobody else`, async (t) => {
      for (const [name, attack] of Object.entries(attacks))
        await t.test(name, async () => {
          const answer = await send(attack);
          const [status, code] = attack.expected;
          assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
          if (code !== undefined) assert.match(answer, new RegExp(`"code":"${code}"`));
          if (attack.says !== undefined) assert.match(answer, attack.says);
          // One answer, with the headers of the service only, and nothing of its insides.
          assert.equal(answer.split('HTTP/1.1 ').length, 2);
          assert.doesNotMatch(answer, /\r\nset-cookie:/i);
          assert.doesNotMatch(answer, /SQLITE|\.ts:\d|node_modules|root:/);
        });
    });

  test('a caller that asks before it sends its body is told to go on, or is refused without sending it', async () => {
    const ask = async (bytes: number): Promise<string> => {
      const socket = await openSocket(service.url);
      socket.write(
        `${run} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ${bytes}\r\nExpect: 100-continue\r\n\r\n`,
      );
      socket.once('data', (part) => {
        if (String(part).startsWith('HTTP/1.1 100')) socket.write('{"message":"x","stream":false}');
        else socket.end();
      });
      return received(socket);
    };
    assert.match(await ask(30), /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
    assert.match(await ask(5 * MiB), /^HTTP\/1\.1 413 /);
  });

  test('names of the language are names like any other', async () => {
    for (const name of ['constructor', 'toString', 'hasOwnProperty']) {
      assert.equal((await call(`${service.url}/api/agents`, { body: { name, model } })).status, 201);
      const read = await call(`${service.url}/api/agents/${name}`);
      assert.equal(read.json<{ descriptor: { name: string } }>().descriptor.name, name);
      const answer = await call(`${service.url}/api/agents/${name}/run`, { body: { message: 'x', stream: false } });
      assert.equal(answer.status, 200, answer.text);
    }
  });

  test('requests sent together are answered in their order, whatever they are', async () => {
    const request = (line: string, body = '', more = ''): string =>
      `${line} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;
    const answers = await exchange(
      service.url,
      request('GET /api/meta') +
        request('GET /api/agents/%2e%2e') +
        request(run, '{"message":"x","stream":false}') +
        request(run, '{"message":') +
        request(run, '{"message":"streamed"}') +
        request('GET /health/live', '', 'Connection: close\r\n'),
    );
    const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));
    assert.deepEqual(statuses, [200, 404, 200, 400, 200, 200]);
    assert.ok(answers.indexOf('event: run.completed') < answers.lastIndexOf('HTTP/1.1'));
  });

  test('bytes of another protocol are answered or dropped, never waited for', async () => {
    for (const bytes of [
      Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
      'GET /\r\n\r\n',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      '\r\n\r\n\r\n\r\nnonsense\r\n\r\n',
    ])
      assert.match(await exchange(service.url, bytes), /^(HTTP\/1\.1 (400|404|505) |$)/);
  });

  test('callers that never finish their request are ended, and keep nobody else waiting', async () => {
    const answers = await Promise.all(dripping.map(({ answer }) => answer));
    for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 408 .*"code":"request-timeout"/s);
  });

  test('after all that the service is well: no internal error, no stray run, a sound store', async () => {
    assert.equal((await call(`${service.url}/health/ready`)).status, 200);
    assert.deepEqual(
      service.log().filter(({ level }) => level === 'error' || level === 'fatal'),
      [],
    );
    const runs = (await call(`${service.url}/api/runs?take=200`)).json<{ status: string }[]>();
    assert.deepEqual(
      runs.map(({ status }) => status),
      Array(7).fill('Completed'),
    );
    assert.equal((await service.stop()).code, 0);
    await site.checkStore();
  });
});
