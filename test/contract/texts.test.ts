import assert from 'node:assert/strict';
import type { Body } from '../conformance/api.ts';
import { resolve, smallestBody } from '../conformance/second-tenant.slots.ts';
import { runJson } from '../features/runs/run-calls.ts';
import { forEachDurableHttpService } from '../support/app.ts';

// As a URL and as JSON have them: neither takes half a surrogate pair as it is.
const inUrl = 'a%00b';
const inUrlHalf = 'a%ED%A0%80b';
const inBody = 'a\u0000b\uD800c';

/** They stop the service, or what the calls after them need. */
const left: ReadonlySet<string> = new Set(['emergency.stop', 'emergency.resume']);

/** What is there, so that a call comes to the store. */
const known: Readonly<Record<string, string>> = { agentName: 'helper', sessionId: 'kept', name: 'helper' };

interface Attempt {
  readonly name: string;
  readonly path: string;
  readonly body?: unknown;
}

/** A copy with one text in the place of another; every text of a body has its turn. */
const variants = (value: unknown, place = ''): [place: string, value: unknown][] => {
  if (typeof value === 'string') return [[place, inBody]];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    variants(member, `${place}.${key}`).map(([at, changed]): [string, unknown] => [
      at,
      Array.isArray(value)
        ? value.map((item, index) => (String(index) === key ? changed : item))
        : { ...value, [key]: changed },
    ]),
  );
};

const isPlainText = (document: Body, given: Body): boolean => {
  const schema = resolve(document, given);
  const options: readonly Body[] = schema.anyOf ?? [schema];
  return options.some(({ type, enum: closed }: Body) => closed === undefined && [type].flat().includes('string'));
};

/** Every place of an operation that takes a text, with U+0000 and half a surrogate pair in it. */
const attemptsOf = (document: Body, path: string, operation: Body, runId: string): readonly Attempt[] => {
  const parameters: readonly Body[] = (operation.parameters ?? []).map((one: Body) => resolve(document, one));
  const filled = (changed = '', value = ''): string =>
    path.replace(/\{(\w+)\}/g, (_braces, name: string) =>
      name === changed ? value : /^(a|b|runId)$/.test(name) ? runId : (known[name] ?? '1'),
    );
  const needed = parameters.filter(({ in: place, required }) => place === 'query' && required);
  const url = (changed: string, value: string, isQuery: boolean): string => {
    const query = [
      ...needed.filter(({ name }) => name !== changed).map(({ name }) => `${name}=1`),
      ...(isQuery ? [`${changed}=${value}`] : []),
    ].join('&');
    return `${isQuery ? filled() : filled(changed, value)}${query === '' ? '' : `?${query}`}`;
  };
  const json = operation.requestBody?.content?.['application/json']?.schema;
  const body = json === undefined ? undefined : smallestBody(document, operation.operationId, json, 'helper');
  const inParameters = parameters
    .filter(({ in: place }) => place === 'path' || place === 'query')
    .flatMap(({ name, in: place }) =>
      [inUrl, ...(place === 'query' ? [] : [inUrlHalf])].map((value) => ({
        name: `${operation.operationId} ${place} ${name} ${value}`,
        path: url(name, value, place === 'query'),
        body,
      })),
    );
  if (body === undefined) return inParameters;
  const properties: readonly [string, Body][] = Object.entries(resolve(document, json).properties ?? {});
  const more = properties
    .filter(([name, schema]) => body[name] === undefined && isPlainText(document, schema))
    .map(([name]): [string, unknown] => [`.${name}`, { ...body, [name]: inBody }]);
  return [
    ...inParameters,
    ...[...variants(body), ...more].map(([place, changed]) => ({
      name: `${operation.operationId} body ${place}`,
      path: url('', '', false),
      body: changed,
    })),
  ];
};

/** Answers of the store that was first. */
let expected: Readonly<Record<string, string>> | null = null;

forEachDurableHttpService(
  'every operation answers U+0000 and half a surrogate pair alike on every store, fails of neither, and shows what is stored',
  async (open) => {
    const app = await open({
      agents: [{ name: 'helper' }],
      host: { A2A: { Agents: ['helper'] }, McpServer: { Agents: ['helper'] }, Traces: { Enabled: true } },
    });
    const send = async (method: string, { name, path, body }: Attempt): Promise<string> => {
      const answer = await fetch(`${app.url}${path}`, {
        method,
        ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      });
      if (answer.headers.get('content-type')?.startsWith('text/event-stream') === true) {
        await answer.body?.cancel();
        return String(answer.status);
      }
      const text = await answer.text();
      if (answer.ok) assert.doesNotMatch(text, /\\u0000|\\ud800/i, name);
      const [, code] = /"code":"?([^",}]+)/.exec(answer.ok ? '' : text) ?? [];
      assert.ok(![500, 503].includes(answer.status), `${name}: ${answer.status} ${text}`);
      return code === undefined ? String(answer.status) : `${answer.status} ${code}`;
    };
    const { runId } = await runJson(app.client, 'helper', { message: 'Hi', sessionId: 'kept' });
    const document = (await (await fetch(`${app.url}/openapi.json`)).json()) as Body;
    const answers: Record<string, string> = {};
    for (const [path, methods] of Object.entries<Body>(document.paths))
      for (const [method, operation] of Object.entries<Body>(methods))
        if (!left.has(operation.operationId))
          for (const attempt of attemptsOf(document, path, operation, runId))
            answers[attempt.name] = await send(method.toUpperCase(), attempt);
    assert.ok(Object.keys(answers).length > 400);
    expected ??= answers;
    assert.deepEqual(answers, expected);
  },
);
