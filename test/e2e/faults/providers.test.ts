import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Scenario, SimulatedFault } from '../../support/providers/scenario.ts';
import { type ProviderSimulator, startProviderSimulator } from '../../support/providers/simulator.ts';
import { unfinishedRuns } from '../records.ts';
import { openSite, type ServiceProcess, type Site, until } from '../support.ts';
import { call, type EventStream, openStream } from '../wire.ts';

interface Death {
  readonly agent: string;
  /** What the provider does; it may do it before the fault's name can reach it. */
  readonly fault?: SimulatedFault;
  readonly errorClass: string;
  readonly type: string;
  /** Problem of a JSON caller. */
  readonly code: string;
  /** Some text reaches a streaming caller first. */
  readonly begins?: true;
  readonly retryAfter?: string;
}

const unavailable = { errorClass: 'ProviderUnavailable', type: 'provider_unavailable', code: 'provider-unavailable' };
const failed = { errorClass: 'ProviderError', type: 'provider_error', code: 'provider-error' };
const late = { errorClass: 'Timeout', type: 'provider_timeout', code: 'provider-timeout' };
const limited = { errorClass: 'RateLimited', type: 'provider_rate_limited', code: 'provider-rate-limited' };

const deaths: Readonly<Record<string, Death>> = {
  refused: { agent: 'gone', ...unavailable },
  slammed: { agent: 'slam', ...unavailable },
  'cut-at-once': { agent: 'local', fault: { kind: 'cut', after: 0 }, ...unavailable },
  'cut-in-the-middle': { agent: 'local', fault: { kind: 'cut', after: 4 }, begins: true, ...unavailable },
  'ended-in-the-middle': { agent: 'local', fault: { kind: 'end', after: 4 }, begins: true, ...unavailable },
  malformed: { agent: 'local', fault: { kind: 'malformed', after: 4 }, begins: true, ...failed },
  'stalled-at-once': { agent: 'local', fault: { kind: 'stall', after: 0 }, ...late },
  'stalled-in-the-middle': { agent: 'local', fault: { kind: 'stall', after: 4 }, begins: true, ...late },
  'status-500': { agent: 'local', fault: { kind: 'status', status: 500 }, ...failed },
  'status-401': { agent: 'local', fault: { kind: 'status', status: 401, vendor: 'bad-key' }, ...failed },
  'status-429': {
    agent: 'local',
    fault: { kind: 'status', status: 429, vendor: 'rate-limit', headers: { 'retry-after': '7' } },
    retryAfter: '7',
    ...limited,
  },
  'anthropic-cut': { agent: 'anthropic', fault: { kind: 'cut', after: 5 }, begins: true, ...unavailable },
  'anthropic-overloaded': {
    agent: 'anthropic',
    fault: { kind: 'status', status: 529, vendor: 'overloaded' },
    ...failed,
  },
};

const answer: Scenario['answer'] = { text: Array.from({ length: 12 }, (_, index) => `word${index} `) };

const faultOf = (body: unknown): SimulatedFault | undefined =>
  deaths[/death:([a-z0-9-]+)/.exec(JSON.stringify(body))?.[1] ?? '']?.fault;

describe('a provider that dies', () => {
  let site: Site;
  let service: ServiceProcess;
  let simulator: ProviderSimulator;
  let slam: Server;

  before(async () => {
    simulator = await startProviderSimulator({
      frameDelayMs: 2,
      respond: ({ body }) => {
        const fault = faultOf(body);
        return fault === undefined ? { answer } : { answer, fault };
      },
    });
    // Takes every connection and drops it before a byte of an answer.
    slam = createServer((socket) => socket.once('data', () => socket.destroy()));
    slam.listen(0, '127.0.0.1');
    await once(slam, 'listening');
    const { port } = slam.address() as { port: number };
    site = openSite({
      service: {
        // Here each failure is looked at by itself, many in a row.
        CircuitBreaker: { Enabled: false },
        Providers: {
          Compatible: {
            local: { Endpoint: `${simulator.url}/v1`, Timeout: '300ms' },
            patient: { Endpoint: `${simulator.url}/v1` },
            slam: { Endpoint: `http://127.0.0.1:${port}/v1` },
            // Port 1 is nobody's on a machine that anyone uses today.
            gone: { Endpoint: 'http://127.0.0.1:1/v1' },
          },
          Anthropic: { ApiKey: 'sk-test-0123456789', Endpoint: simulator.url, MaxRetries: 0 },
        },
      },
    });
    service = await site.serve();
    for (const provider of ['local', 'patient', 'slam', 'gone', 'anthropic']) {
      const body = { name: provider, model: { provider, model: 'm-1' } };
      const created = await call(`${service.url}/api/agents`, { body });
      assert.equal(created.status, 201, created.text);
    }
  });

  after(async () => {
    assert.deepEqual(await unfinishedRuns(service), []);
    assert.equal((await service.stop()).code, 0);
    await site.checkStore();
    await site.close();
    await simulator.close();
    slam.close();
  });

  const stream = (agent: string, message: string, query = ''): Promise<EventStream> =>
    openStream(`${service.url}/api/agents/${agent}/run${query}`, { body: { message } });
  const recordOf = async (runId: unknown) =>
    (await call(`${service.url}/api/runs/${runId}`)).json<{
      status: string;
      error: { class: string; type: string } | null;
    }>();

  for (const [name, death] of Object.entries(deaths)) {
    test(`RUN-26 ${name}: a stream gets the error, then the terminal frame`, async () => {
      const opened = await stream(death.agent, `death:${name}`);
      assert.equal(await opened.ended, 'end');
      const [error, terminal] = opened.frames.slice(-2);
      assert.deepEqual([error?.event, error?.id, terminal?.event], ['error', null, 'run.failed']);
      const shown = JSON.parse(error?.data ?? '') as { code: string; errorType: string; message: string };
      assert.deepEqual([shown.code, shown.errorType], [death.code, death.type]);
      assert.match(shown.message, new RegExp(`"${death.agent}"`));
      const logged = opened.frames.filter(({ id }) => id !== null).map(({ id }) => id);
      assert.deepEqual(logged, [...logged.keys()]);
      assert.equal(
        opened.frames.some(({ event }) => event === 'message.delta'),
        death.begins === true,
      );
      const { status, error: recorded } = await recordOf(opened.runId);
      assert.deepEqual([status, recorded?.class, recorded?.type], ['Failed', death.errorClass, death.type]);
    });

    test(`RUN-20 RUN-71 ${name}: a JSON caller gets a problem in the service's own words`, async () => {
      const problem = await call(`${service.url}/api/agents/${death.agent}/run`, {
        body: { message: `death:${name}`, stream: false },
      });
      assert.equal(problem.status, 502, problem.text);
      const { code, errorType } = problem.json();
      assert.deepEqual([code, errorType], [death.code, death.type]);
      assert.equal(problem.headers['retry-after'], death.retryAfter);
      // Of the provider's own words identifiers alone are told, in the place that is theirs.
      const own = { ...problem.json(), provider: null };
      assert.doesNotMatch(JSON.stringify(own), /ECONN|simulated|overloaded_error|Incorrect API key/i);
      assert.doesNotMatch(problem.text, /ECONN|simulated|Incorrect API key/i);
      assert.equal((await recordOf(problem.headers['x-run-id'])).status, 'Failed');
    });
  }

  test('RUN-41 a cancel closes the connection to a provider that says nothing', async () => {
    for (const agent of ['patient', 'anthropic']) {
      const opened = await stream(agent, 'death:stalled-in-the-middle');
      await opened.first('message.delta');
      const { aborted } = simulator.lastRequest();
      const canceled = await call(`${service.url}/api/runs/${opened.runId}/cancel`, { method: 'POST' });
      assert.equal(canceled.status, 202);
      assert.equal(await opened.ended, 'end');
      assert.equal(opened.frames.at(-1)?.event, 'run.canceled');
      await aborted;
    }
  });

  test('RUN-10 a client that leaves with onDisconnect=cancel takes the connection to the provider with it', async () => {
    const earlier = simulator.requests.length;
    const opened = await stream('patient', 'death:stalled-at-once', '?onDisconnect=cancel');
    const { aborted } = await until('a request to the provider', () => simulator.requests[earlier]);
    opened.leave();
    await aborted;
    await until('the end of the run', async () => (await recordOf(opened.runId)).status === 'Canceled');
  });

  test('a provider process that is killed fails the run; the next run finds its successor', async () => {
    const main = join(import.meta.dirname, '../../support/providers/simulator-main.ts');
    const start = async (port: string) => {
      const child = spawn(process.execPath, [main, '--delay', '10', '--chunks', '100', '--port', port], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const [line] = (await once(child.stdout, 'data')) as [Buffer];
      const exited = once(child, 'exit');
      const kill = async (): Promise<void> => {
        child.kill('SIGKILL');
        await exited;
      };
      return { url: new URL(line.toString().trim()), kill };
    };
    const first = await start('0');
    const name = 'mortal';
    const other = openSite({
      service: { Providers: { Compatible: { [name]: { Endpoint: `${first.url.origin}/v1` } } } },
    });
    try {
      const server = await other.serve();
      const body = { name, model: { provider: name, model: 'm-1' } };
      assert.equal((await call(`${server.url}/api/agents`, { body })).status, 201);
      const run = () => openStream(`${server.url}/api/agents/${name}/run`, { body: { message: 'hello' } });
      const opened = await run();
      await opened.atLeast(5);
      await first.kill();
      assert.equal(await opened.ended, 'end');
      assert.match(opened.frames.at(-1)?.data ?? '', /"type":"provider_unavailable"/);
      const second = await start(first.url.port);
      try {
        const again = await run();
        assert.equal(await again.ended, 'end');
        assert.equal(again.frames.at(-1)?.event, 'run.completed');
      } finally {
        await second.kill();
      }
    } finally {
      await first.kill();
      await other.close();
    }
  });
});
