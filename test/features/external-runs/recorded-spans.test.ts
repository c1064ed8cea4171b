import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { RunRecord } from '../../../src/features/runs/runs.schema.ts';
import { overHttp, type TestApp } from '../../support/app.ts';
import { assertWholeLog, collect } from '../runs/run-calls.ts';
import { recordedRuns } from './recorded-runs.ts';
import { newTraceId, openTraces, postBytes, settled } from './traces-world.ts';

/*
 * Spans that libraries have sent, each an agent that asks a model about the weather, calls a tool and answers: 1000 tokens in,
 * 400 of them from the cache, and 50 out, 20 of them for thinking, a call. Anthropic: 300 read and 100 written of the 1000.
 */

interface Recording {
  readonly service: string;
  readonly spans: readonly {
    readonly scope: string;
    readonly name: string;
    /** Number of the span above, from 1. */
    readonly parent?: number;
    readonly from: number;
    readonly to: number;
    readonly status?: number;
    readonly exception?: string;
    readonly attributes: Readonly<Record<string, unknown>>;
  }[];
}

const folder = new URL('recorded/', import.meta.url);

const encoded = (value: unknown): object => {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  if (Array.isArray(value)) return { arrayValue: { values: value.map(encoded) } };
  return {};
};

const pairs = (members: Readonly<Record<string, unknown>>) =>
  Object.entries(members).map(([key, value]) => ({ key, value: encoded(value) }));

const spanId = (number: number): string => number.toString(16).padStart(16, '0');

const requestOf = ({ service, spans }: Recording, begin: number) => {
  const traceId = newTraceId();
  const scopeSpans = spans.map((span, index) => ({
    scope: { name: span.scope },
    spans: [
      {
        ...{ traceId, spanId: spanId(index + 1), name: span.name, kind: 1 },
        ...(span.parent === undefined ? {} : { parentSpanId: spanId(span.parent) }),
        startTimeUnixNano: `${begin + span.from}000000`,
        endTimeUnixNano: `${begin + span.to}000000`,
        ...(span.status === undefined ? {} : { status: { code: span.status } }),
        ...(span.exception === undefined
          ? {}
          : { events: [{ name: 'exception', attributes: pairs({ 'exception.type': span.exception }) }] }),
        attributes: pairs(span.attributes),
      },
    ],
  }));
  return { resourceSpans: [{ resource: { attributes: pairs({ 'service.name': service }) }, scopeSpans }] };
};

const prices = {
  ...{ Currency: 'EUR', openai: { 'gpt-4o-mini': { Input: 1000, CachedInput: 500, Output: 2000 } } },
  anthropic: { 'claude-sonnet-4-5': { Input: 3000, CachedInput: 300, Output: 15_000 } },
  google: { 'gemini-2.5-flash': { Input: 100, CachedInput: 10, Output: 1000 } },
};

const textIn = (value: unknown): string | null => {
  const texts = [...JSON.stringify(value).matchAll(/"text":("(?:[^"\\]|\\.)*")/g)].map(([, text]) =>
    JSON.parse(text ?? '""'),
  );
  return texts.length === 0 ? null : texts.join(' ');
};

/** What a user of the library would look for in its run. */
const seen = async ({ client }: TestApp, run: RunRecord, all: readonly RunRecord[]) => {
  const on = { params: { runId: run.id } };
  const events = assertWholeLog(await collect((await client.runs.events(on)).frames ?? []));
  const tools = (await client.runs.tools(on)).body;
  const input = await client.runs.input(on).catch(() => null);
  const { usage } = run;
  return {
    agent: [all.find(({ id }) => id === run.parentRunId)?.agentName, run.agentName].filter(Boolean).join(' > '),
    status: run.error === null ? run.status : `${run.status} ${run.error.type}`,
    model: `${run.modelProvider}/${run.modelId}`,
    tokens:
      usage === null ? null : [usage.inputTokens, usage.cachedInputTokens, usage.outputTokens, usage.reasoningTokens],
    cost: run.cost?.totalCost ?? null,
    conversation: run.labels?.['conversation'] ?? null,
    tools: tools.map(({ toolName, arguments: given, result, error }) => [toolName, given, error ?? result]),
    said: [textIn(input?.body ?? {}), events.at(-1)?.['output'] ?? null],
  };
};

const runsOf = async (app: TestApp, recording: Recording): Promise<readonly object[]> => {
  const { status, body } = await postBytes(app, JSON.stringify(requestOf(recording, app.clock.now() - 10_000)));
  assert.deepEqual([status, body], [200, {}]);
  await settled(app, 1);
  const { body: all } = await app.client.runs.list({ query: { kind: 'External', includeChildren: true, take: 200 } });
  return Promise.all([...all].reverse().map((run) => seen(app, run, all)));
};

test('every recording has what its runs look like', () => {
  const files = readdirSync(folder).map((name) => name.replace('.json', ''));
  assert.deepEqual(files.sort(), Object.keys(recordedRuns).sort());
});

for (const [name, expected] of Object.entries(recordedRuns))
  overHttp(`spans as ${name} sends them are the runs that it tells of`, async (open) => {
    const app = await openTraces(open, { service: { Pricing: prices } });
    const recording = JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8')) as Recording;
    assert.deepEqual(await runsOf(app, recording), expected);
  });
