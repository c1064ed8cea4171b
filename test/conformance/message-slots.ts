import type { Slot } from './second-tenant.slots.ts';

/** The agent that the target offers to other systems. */
export const offeredAgent = 'code-agent';

const version = '2026-07-28';

/** A message of the stateless generation of the Model Context Protocol, as the body and the headers of a request. */
export const mcpMessage = (method: string, params: Readonly<Record<string, unknown>>, name?: string) => ({
  body: {
    jsonrpc: '2.0',
    id: 1,
    method,
    params: {
      ...params,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': version,
        'io.modelcontextprotocol/clientInfo': { name: 'conformance', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
      },
    },
  },
  headers: {
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': version,
    'mcp-method': method,
    ...(name === undefined ? {} : { 'mcp-name': name }),
  },
});

export const a2aMessage = (method: string, params: Readonly<Record<string, unknown>>) => ({
  body: { jsonrpc: '2.0', id: 1, method, params },
  headers: { 'a2a-version': '1.0' },
});

/** Where messages of protocols name a task, which is a run: the API description does not look into them. */
export const messageSlots: readonly Slot[] = [
  ...['tasks/get', 'tasks/update', 'tasks/cancel'].map(
    (method): Slot => ({
      name: `mcp ${method} taskId`,
      method: 'POST',
      kind: 'runs',
      isUuid: false,
      isMessage: true,
      request: (id) => ({ path: '/mcp', ...mcpMessage(method, { taskId: id, inputResponses: {} }, id) }),
    }),
  ),
  ...['GetTask', 'CancelTask', 'SubscribeToTask'].map(
    (method): Slot => ({
      name: `a2a ${method} id`,
      method: 'POST',
      kind: 'runs',
      isUuid: false,
      isMessage: true,
      request: (id) => ({ path: `/a2a/${offeredAgent}`, ...a2aMessage(method, { id }) }),
    }),
  ),
];
