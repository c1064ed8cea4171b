import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { RunRecord } from '../../../src/features/runs/runs.schema.ts';
import type { AppSetup, OpenApp, TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';

/** A call of `gpt-x` with 1000 tokens in and 500 out costs 2 EUR. */
const prices = { Currency: 'EUR', openai: { 'gpt-x': { Input: 1000, Output: 2000 } } };

type Settings = NonNullable<AppSetup['host']>;

export const openTraces = (open: OpenApp, { host, service, ...more }: AppSetup = {}): Promise<TestApp> =>
  open({
    ...more,
    service: { Pricing: prices, ...service },
    host: { ...host, Traces: { Enabled: true, ...(host?.['Traces'] as Settings | undefined) } },
  });

export interface TestSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly [member: string]: unknown;
}

type Value = string | number | boolean | readonly string[];

const encoded = (value: Value): object => {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return { intValue: String(value) };
  return { arrayValue: { values: value.map((text) => ({ stringValue: text })) } };
};

export const attributesOf = (members: Readonly<Record<string, Value>>): object[] =>
  Object.entries(members).map(([key, value]) => ({ key, value: encoded(value) }));

export const newTraceId = (): string => randomBytes(16).toString('hex');
export const newSpanId = (): string => randomBytes(8).toString('hex');
const nanos = (at: number): string => `${at}000000`;

export interface SpanSetup {
  readonly traceId: string;
  readonly parent?: TestSpan;
  readonly operation?: string;
  /** Milliseconds after the trace's begin. */
  readonly from: number;
  readonly to: number;
  readonly begin: number;
  readonly isError?: boolean;
  readonly attributes?: Readonly<Record<string, Value>>;
}

export const span = ({ traceId, parent, operation, from, to, begin, isError, attributes }: SpanSetup): TestSpan => ({
  traceId,
  spanId: newSpanId(),
  ...(parent === undefined ? {} : { parentSpanId: parent.spanId }),
  name: operation ?? 'GET /',
  kind: 1,
  startTimeUnixNano: nanos(begin + from),
  endTimeUnixNano: nanos(begin + to),
  ...(isError === true ? { status: { code: 2 } } : {}),
  attributes: attributesOf({
    ...(operation === undefined ? {} : { 'gen_ai.operation.name': operation }),
    ...attributes,
  }),
});

export const bodyOf = (spans: readonly object[], service = 'planner-service') => ({
  resourceSpans: [
    { resource: { attributes: attributesOf({ 'service.name': service }) }, scopeSpans: [{ scope: {}, spans }] },
  ],
});

export interface TracesAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: answers are read as an exporter reads them.
  readonly body: any;
}

export interface PostOptions {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends a body as it is. */
export const postBytes = async (
  { url }: Pick<TestApp, 'url'>,
  bytes: string | Uint8Array<ArrayBuffer>,
  { token, headers }: PostOptions = {},
): Promise<TracesAnswer> => {
  const answer = await fetch(`${url}/v1/traces`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: bytes,
  });
  const read = Buffer.from(await answer.arrayBuffer());
  const isJson = answer.headers.get('content-type')?.includes('json') === true;
  return {
    status: answer.status,
    headers: answer.headers,
    bytes: read,
    body: isJson ? JSON.parse(read.toString()) : null,
  };
};

export const post = (app: Pick<TestApp, 'url'>, spans: readonly object[], options?: PostOptions) =>
  postBytes(app, JSON.stringify(bodyOf(spans)), options);

/** Sends spans, all of which are taken. */
export const accept = async (
  app: Pick<TestApp, 'url'>,
  spans: readonly object[],
  options?: PostOptions,
): Promise<void> => {
  const { status, body } = await post(app, spans, options);
  assert.deepEqual([status, body], [200, {}]);
};

export const externalRuns = async ({ client }: Pick<TestApp, 'client'>): Promise<readonly RunRecord[]> =>
  (await client.runs.list({ query: { kind: 'External', take: 200 } })).body;

/** What the service says of spans that it could not make runs of. */
export const failuresOf = ({ log }: Pick<TestApp, 'log'>) =>
  log.filter(({ message: text }) => text.startsWith('Spans from outside'));

/** Lets the time pass in which the rest of a trace would come, and waits for its runs. */
export const settled = async (app: TestApp, count: number, passing = '13s'): Promise<readonly RunRecord[]> => {
  await app.clock.advance(passing === '13s' ? 13_000 : 6 * 60_000);
  return eventually('the runs', async () => {
    const runs = await externalRuns(app);
    assert.deepEqual(failuresOf(app), []);
    return runs.length >= count ? runs : undefined;
  });
};

const message = (role: string, content: string) =>
  JSON.stringify([{ role, parts: [{ type: 'text', content }], finish_reason: 'stop' }]);

/** An agent that calls a model, a tool, another agent, and the model again. */
export const planner = (begin: number, traceId = newTraceId()) => {
  const on = { traceId, begin };
  const request = span({ ...on, from: 0, to: 1000 });
  const usage = { 'gen_ai.usage.input_tokens': 1000, 'gen_ai.usage.output_tokens': 500 };
  const model = { 'gen_ai.provider.name': 'openai', 'gen_ai.request.model': 'gpt-x', ...usage };
  const agent = span({
    ...on,
    ...{ parent: request, operation: 'invoke_agent', from: 10, to: 900 },
    attributes: { 'gen_ai.agent.name': 'planner', 'gen_ai.conversation.id': 'chat-7' },
  });
  const first = span({
    ...on,
    ...{ parent: agent, operation: 'chat', from: 20, to: 100 },
    attributes: { ...model, 'gen_ai.input.messages': message('user', 'Plan my trip') },
  });
  const tool = span({
    ...on,
    ...{ parent: agent, operation: 'execute_tool', from: 110, to: 200 },
    attributes: {
      'gen_ai.tool.name': 'search',
      'gen_ai.tool.call.id': 'call_1',
      'gen_ai.tool.call.arguments': '{"city":"Rome"}',
      'gen_ai.tool.call.result': '{"hotels":3}',
    },
  });
  const child = span({
    ...on,
    ...{ parent: agent, operation: 'invoke_agent', from: 210, to: 400, isError: true },
    attributes: { 'gen_ai.agent.name': 'booker', 'error.type': 'timeout' },
  });
  const below = span({
    ...on,
    ...{ parent: child, operation: 'chat', from: 220, to: 390 },
    attributes: {
      'gen_ai.system': 'openai',
      'gen_ai.response.model': 'gpt-x',
      'gen_ai.usage.prompt_tokens': 1000,
      'gen_ai.usage.completion_tokens': 500,
    },
  });
  const last = span({
    ...on,
    ...{ parent: agent, operation: 'chat', from: 410, to: 880 },
    attributes: { ...model, 'gen_ai.output.messages': message('assistant', 'You fly to Rome.') },
  });
  return {
    traceId,
    request,
    agent,
    first,
    tool,
    child,
    below,
    last,
    all: [request, agent, first, tool, child, below, last],
  };
};
