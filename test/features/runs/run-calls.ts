import assert from 'node:assert/strict';
import type { Client, ClientInput } from '../../../src/client/client.ts';
import { ProblemError } from '../../../src/client/problem.ts';
import type { Frame } from '../../../src/contract/operation.ts';
import type { AgentRunRequest } from '../../../src/contract/run-request.ts';
import type { ToolDefinition } from '../../../src/engine/tools/tool.ts';
import type { runOperations } from '../../../src/features/runs/runs.operations.ts';
import type { AgentRunResponse, RunRecord } from '../../../src/features/runs/runs.schema.ts';
import type { TestApp } from '../../support/app.ts';

type StartInput = ClientInput<(typeof runOperations)['start']>;
type StartOptions = Omit<StartInput, 'params' | 'body'>;

/** An event as its data says it; tests look at single members. */
export interface LoggedEvent {
  readonly runId: string;
  readonly sequence: number;
  readonly type: string;
  readonly timestamp: string;
  // biome-ignore lint/suspicious/noExplicitAny: members differ by type, and a test asserts on the ones it means.
  readonly [member: string]: any;
}

const terminal = new Set([
  'run.completed',
  'run.failed',
  'run.canceled',
  'run.awaiting-input',
  'run.awaiting-approval',
]);

export const start = (client: Client, agent: string, body: string | AgentRunRequest, options: StartOptions = {}) =>
  client.runs.start({
    params: { name: agent },
    body: typeof body === 'string' ? { message: body } : body,
    ...options,
  });

export interface StartedStream {
  readonly runId: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly frames: AsyncIterable<Frame>;
}

/** Starts a run and leaves its stream to be read. */
export const stream = async (
  client: Client,
  agent: string,
  body: string | AgentRunRequest,
  options: StartOptions = {},
): Promise<StartedStream> => {
  const reply = await start(client, agent, body, options);
  assert.ok(reply.frames !== undefined, 'the answer is an event stream');
  return { runId: reply.headers['x-run-id'] ?? '', headers: reply.headers, frames: reply.frames };
};

export const collect = async (frames: AsyncIterable<Frame>): Promise<Frame[]> => {
  const collected: Frame[] = [];
  for await (const frame of frames) collected.push(frame);
  return collected;
};

/** The data of the frames that belong to the log. */
export const eventsOf = (frames: readonly Frame[]): LoggedEvent[] =>
  frames.filter((frame) => frame.id !== undefined).map((frame) => JSON.parse(frame.data) as LoggedEvent);

export const typesOf = (events: readonly LoggedEvent[]): string[] => events.map((event) => event.type);

/** A whole log: sequences from 0 without a gap, frame and data agree, one terminal event and that is last. */
export const assertWholeLog = (frames: readonly Frame[]): LoggedEvent[] => {
  const logged = frames.filter((frame) => frame.id !== undefined);
  const events = eventsOf(frames);
  assert.ok(events.length > 0, 'the log has events');
  for (const [index, event] of events.entries()) {
    assert.equal(logged[index]?.id, index, 'sequences have no gap');
    assert.equal(event.sequence, index);
    assert.equal(event.type, logged[index]?.event);
    assert.equal(event.runId, events[0]?.runId);
    assert.match(event.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  }
  const ends = events.filter((event) => terminal.has(event.type));
  assert.equal(ends.length, 1, 'one terminal event');
  assert.equal(ends[0], events.at(-1), 'the terminal event is last');
  return events;
};

/** Streams a run to its end and checks its log. */
export const runStream = async (
  client: Client,
  agent: string,
  body: string | AgentRunRequest,
  options: StartOptions = {},
): Promise<{ runId: string; frames: Frame[]; events: LoggedEvent[]; headers: Readonly<Record<string, string>> }> => {
  const { runId, frames, headers } = await stream(client, agent, body, options);
  const collected = await collect(frames);
  return { runId, frames: collected, events: assertWholeLog(collected), headers };
};

/** One JSON answer of a run that completes. */
export const runJson = async (
  client: Client,
  agent: string,
  body: string | AgentRunRequest,
  options: StartOptions = {},
): Promise<AgentRunResponse & { readonly headers: Readonly<Record<string, string>> }> => {
  const request = typeof body === 'string' ? { message: body } : body;
  const reply = await start(client, agent, { ...request, stream: false }, options);
  assert.equal(reply.status, 200);
  assert.ok(reply.frames === undefined && 'output' in reply.body);
  return { ...reply.body, headers: reply.headers };
};

/** Queues a run; its id. */
export const enqueue = async (
  client: Client,
  agent: string,
  body: string | AgentRunRequest,
  headers: StartOptions['headers'] = {},
): Promise<string> => {
  const reply = await start(client, agent, body, { headers: { prefer: 'respond-async', ...headers } });
  assert.equal(reply.status, 202);
  return reply.body.runId;
};

/** The frames of the events operation, from the start or after a sequence, until the stream ends. */
export const readEvents = async (client: Client, runId: string, lastEventId?: number | string): Promise<Frame[]> => {
  const headers = lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) };
  const { frames } = await client.runs.events({ params: { runId }, headers });
  return collect(frames);
};

/** Waits for the end of a run by following its log; its events, checked. */
export const followToEnd = async (client: Client, runId: string): Promise<LoggedEvent[]> =>
  assertWholeLog(await readEvents(client, runId));

export const getRun = async (client: Client, runId: string): Promise<RunRecord> =>
  (await client.runs.get({ params: { runId } })).body;

export const listRuns = async (
  client: Client,
  query: NonNullable<Parameters<Client['runs']['list']>[0]>['query'] = {},
): Promise<RunRecord[]> => (await client.runs.list({ query })).body;

/** The problem that a call ends with; fails when it ends without one. */
export const refusal = async (call: Promise<unknown>): Promise<ProblemError['problem']> => {
  try {
    await call;
  } catch (error) {
    if (error instanceof ProblemError) return error.problem;
    throw error;
  }
  return assert.fail('the call was expected to be refused');
};

/** A point that a test opens by hand: what waits for it goes on then. */
export class Gate {
  readonly #reached = Promise.withResolvers<void>();
  readonly #opened = Promise.withResolvers<void>();

  /** Resolves once somebody waits at the gate. */
  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  open(): void {
    this.#opened.resolve();
  }

  /** Ends at once when the signal is aborted, as a well-behaved tool does. */
  async pass(signal?: AbortSignal): Promise<void> {
    this.#reached.resolve();
    if (signal === undefined) return this.#opened.promise;
    signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const abort = (): void => aborted.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      await Promise.race([this.#opened.promise, aborted.promise]);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }
}

/** A tool without arguments. */
export const tool = (
  name: string,
  execute: NonNullable<ToolDefinition['execute']>,
  more: Partial<ToolDefinition> = {},
): ToolDefinition => ({
  name,
  description: `The tool ${name}`,
  inputSchema: { type: 'object', properties: {}, additionalProperties: false },
  execute,
  ...more,
});

/** A script in which the model calls tools and then says something with the last result. */
export const callsTools = (...names: string[]) => [
  {
    when: { call: 1 },
    reply: { text: 'I look.', toolCalls: names.map((name) => ({ name, arguments: {} })) },
  },
  { reply: { text: 'Done: {{last}}' } },
];

/** An agent that holds its run open inside the tool `wait` until the gate is opened. */
export const waitingSetup = (gate: Gate) => ({
  tools: [
    tool('wait', async (_args, { signal }) => {
      await gate.pass(signal);
      return 'waited';
    }),
  ],
  script: [
    { when: { tool: 'wait' }, reply: { text: 'It is over.' } },
    { when: { message: '/^wait/' }, reply: { text: 'Let me wait.', toolCalls: [{ name: 'wait', arguments: {} }] } },
    { reply: { text: 'Hello there.' } },
  ],
  agents: [{ name: 'helper', toolNames: ['wait'] }],
});

/** Reads frames until one of the type has come; the rest of the stream stays to be read. */
export const readUntil = async (frames: AsyncIterator<Frame>, type: string): Promise<Frame[]> => {
  const seen: Frame[] = [];
  for (let next = await frames.next(); next.done !== true; next = await frames.next()) {
    seen.push(next.value);
    if (next.value.event === type) return seen;
  }
  return assert.fail(`the stream ended before ${type}: ${seen.map((frame) => frame.event).join(', ')}`);
};

/** Status and problem or body of a plain HTTP request, for what the typed client does not send. */
export const post = async (
  app: TestApp,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> =>
  fetch(`${app.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
