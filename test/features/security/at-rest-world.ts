import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '../../../src/client/client.ts';
import type { AgentSetup, AppSetup, OpenApp, TestApp } from '../../support/app.ts';
import { calls, queueWaiting, respond } from '../approvals/approval-world.ts';
import { fileOf } from '../attachments/files.ts';
import { runJson, tool } from '../runs/run-calls.ts';

/** Stands in everything that people, models and tools say here, and in no name. */
export const marker = 'Zanzibar-4711';

const key = (fill: number): string => Buffer.alloc(32, fill).toString('base64');
export const keys = { a: key(1), b: key(2) };

/** Every protected column, as `table.column`. */
export const protectedColumns = [
  'run_inputs.messages',
  'run_inputs.context',
  'run_events.events',
  'run_model_calls.calls',
  'run_traces.spans',
  'tool_invocations.arguments',
  'tool_invocations.result',
  'tool_invocations.error',
  'session_messages.message',
  'sessions.summary',
  'approvals.arguments',
  'approvals.presentation',
  'approval_handovers.context',
  'idempotency_keys.body',
  'response_cache.answer',
  'agent_files.content',
  'agent_states.todos',
] as const;

const local = { provider: 'local', model: 'any' };

const agents = (toolNames: readonly string[]): AgentSetup[] => [
  { name: 'helper', model: local, toolNames, memory: { enableTodo: true, enableFileMemory: true } },
  { name: 'cached', model: { ...local, responseCache: { enabled: true } } },
  {
    name: 'summing',
    model: local,
    compaction: { strategy: 'Summarization', triggerMessages: 3, minimumPreservedGroups: 1 },
  },
];

/** A service whose agents keep something in every place; `seen` is called while a tool runs. */
export const openWorld = (
  open: OpenApp,
  atRest: Record<string, unknown> | null,
  more: AppSetup = {},
  seen: () => Promise<void> = async () => undefined,
): Promise<TestApp> => {
  const inputSchema = { type: 'object' } as const;
  const tools = [
    tool(
      'search',
      async () => {
        await seen();
        return `found ${marker}`;
      },
      { inputSchema },
    ),
    tool('fail', () => Promise.reject(new Error('never shown')), { inputSchema }),
    tool('pay', async () => `paid ${marker}`, { inputSchema, requiresApproval: true, effect: 'Destructive' }),
  ];
  return open({
    simulator: { respond },
    tools,
    module: {
      approvalPresenters: [
        {
          toolName: 'pay',
          present: async () => ({ entityType: null, entityId: null, entityName: null, message: `Pay ${marker}?` }),
        },
      ],
    },
    agents: more.folder === undefined ? agents(tools.map(({ name }) => name)) : [],
    ...more,
    service: {
      ...(atRest === null ? {} : { AtRest: atRest }),
      Observability: { SuccessSampleRatio: 1, RecordSensitiveData: true },
      RunContinuation: { Enabled: true },
      RunReconciliation: { Enabled: true },
      ...more.service,
    },
  });
};

// Longer than a chunk of a sealed file, with the marker in each.
export const attached = `${marker} and more. `.repeat(12_000);

export interface Made {
  readonly sessionRun: string;
  readonly approvalId: string;
  readonly attachmentId: string;
}

/** Something in every place. */
export const fill = async (app: TestApp): Promise<Made> => {
  const { client } = app;
  const message = calls(
    ['search', { q: marker }],
    ['fail', { q: marker }],
    ['file_write', { path: 'a.txt', content: `kept ${marker}` }],
    ['todo_write', { todos: [{ text: `do ${marker}`, status: 'pending' }] }],
  );
  const first = await runJson(client, 'helper', { message, sessionId: 's', culture: 'de-AT' });
  await runJson(client, 'helper', { message: `Hi ${marker}`, sessionId: 's' });
  for (const text of ['one', 'two', 'three'])
    await runJson(client, 'summing', { message: `${text} ${marker}`, sessionId: 'sum' });
  for (const headers of [{ 'idempotency-key': 'k' }, {}]) await runJson(client, 'cached', `Hi ${marker}`, { headers });
  const { rows } = await queueWaiting(app, 's2', ['pay', { amount: 5, note: marker }]);
  const { body } = await client.attachments.upload({ query: {}, file: fileOf(attached, 'a.txt', 50_000) });
  return { sessionRun: first.runId, approvalId: rows[0]?.id ?? '', attachmentId: body.id };
};

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

/** Files of the data folder that have the marker in their bytes. */
export const filesWithMarker = (app: TestApp): string[] =>
  filesBelow(join(app.folder, 'data')).filter((path) => readFileSync(path).includes(marker));

export const dataFiles = (app: TestApp): string[] => filesBelow(join(app.folder, 'data'));

/** Status and code of a refused call. */
export const refused = async (call: Promise<unknown>): Promise<string> => {
  try {
    await call;
  } catch (error) {
    const { status, code } = error as { readonly status?: number; readonly code?: string };
    return `${status} ${code}`;
  }
  return assert.fail('the call was expected to be refused');
};

export const inputOf = async (client: Client, runId: string): Promise<string> =>
  JSON.stringify((await client.runs.input({ params: { runId } })).body.messages);
