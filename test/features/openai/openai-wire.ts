import type { TestApp } from '../../support/app.ts';
import { token } from './openai-client.ts';

/* What a program gets that speaks to the API without a client: status, headers, and a body as it is. */

// biome-ignore lint/suspicious/noExplicitAny: answers of many kinds, of which a test asserts on the members that it means.
export type Body = any;
export type Json = Readonly<Record<string, unknown>>;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Null: it is no JSON. */
  readonly body: Body;
}

interface SendOptions {
  readonly method?: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export const send = async (
  app: TestApp,
  path: string,
  body: Json | null = null,
  { method = body === null ? 'GET' : 'POST', key = token, headers: more = {} }: SendOptions = {},
): Promise<Answer> => {
  const response = await fetch(`${app.url}/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...more },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const { status, headers } = response;
  const isJson = headers.get('content-type')?.startsWith('application/json') === true;
  return { status, headers, text, body: isJson ? JSON.parse(text) : null };
};

export const remove = (app: TestApp, path: string, key?: string): Promise<Answer> =>
  send(app, path, null, { method: 'DELETE', ...(key === undefined ? {} : { key }) });
export const chat = (app: TestApp, more: Json = {}, options: SendOptions = {}): Promise<Answer> =>
  send(app, '/chat/completions', { model: 'helper', messages: [{ role: 'user', content: 'Hello' }], ...more }, options);
export const respond = (app: TestApp, more: Json = {}, options: SendOptions = {}): Promise<Answer> =>
  send(app, '/responses', { model: 'helper', input: 'Hello', ...more }, options);

/** The data of a stream, apart from its end mark. */
export const dataOf = ({ text }: Answer): Body[] =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data));

/** Of a run that failed there is only its id to know the response by. */
export const responseIdOf = ({ headers }: Pick<Answer, 'headers'>): string =>
  `resp_${headers.get('x-run-id')?.replaceAll('-', '')}`;

export const codeOf = ({ status, body }: Answer): unknown[] => [status, body?.error?.code];

export const sessionIds = async (app: TestApp): Promise<string[]> =>
  (await app.client.sessions.list()).body.map(({ id }) => id).sort();
