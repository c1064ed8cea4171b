import process from 'node:process';

/** Address of the service, for the programs that the suite starts. */
export const serviceVariable = 'ACP_MCP_CONFORMANCE_URL';

export interface ApiReply<T> {
  readonly status: number;
  readonly body: T;
}

/** Asks the service that the suite talks to. Its caller is this machine, which needs no credential. */
export const ask = async <T = unknown>(
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<ApiReply<T>> => {
  const response = await fetch(`${process.env[serviceVariable]}${path}`, {
    method,
    headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    body: (text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text) as T,
  };
};

/** The same, where any other answer than success is a failure of the whole program. */
export const must = async <T = unknown>(method: string, path: string, body?: unknown): Promise<T> => {
  const reply = await ask<T>(method, path, body);
  if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`);
  return reply.body;
};

/** An agent as it is from now on. */
export const saveAgent = async (name: string, model: string, toolNames: readonly string[]): Promise<void> => {
  const definition = { name, model: { provider: 'demo', model }, toolNames };
  const { status } = await ask('GET', `/api/agents/${name}`);
  if (status === 404) await must('POST', '/api/agents', definition);
  else await must('PUT', `/api/agents/${name}`, definition);
};
