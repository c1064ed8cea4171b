import assert from 'node:assert/strict';
import type { Client } from '../../../src/client/client.ts';
import type { ToolDefinition } from '../../../src/engine/tools/tool.ts';
import type { PendingApproval } from '../../../src/features/approvals/approvals.schema.ts';
import type { AgentSetup, AppSetup, OpenApp, TestApp } from '../../support/app.ts';
import { type TrailEntry, trail } from '../../support/audit-chain.ts';
import type { Scenario, SimulatedRequest } from '../../support/providers/scenario.ts';
import { enqueue, followToEnd, type LoggedEvent, tool } from '../runs/run-calls.ts';

export interface Called {
  readonly name: string;
  readonly arguments: unknown;
  readonly idempotencyKey: string;
  readonly runId: string;
}

export type Wanted = readonly [name: string, args?: unknown];

/** A message whose text is `call` and a JSON list makes these calls; afterwards the model says what came back. */
export const calls = (...wanted: Wanted[]): string =>
  `call ${JSON.stringify(wanted.map(([name, args]) => ({ name, arguments: args ?? {} })))}`;

interface Message {
  readonly role: string;
  readonly content: unknown;
}

export const messagesOf = (request: SimulatedRequest): readonly Message[] => request.body['messages'] as Message[];

const textOf = (content: unknown): string =>
  typeof content === 'string' ? content : (content as { text: string }[]).map(({ text }) => text).join('');

/** What the model was told since its last call, one text for each result. */
export const toolTexts = (request: SimulatedRequest): string[] => {
  const messages = messagesOf(request);
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  return messages.slice(last + 1).flatMap(({ role, content }) => (role === 'tool' ? [textOf(content)] : []));
};

let made = 0;

export const respond = (request: SimulatedRequest): Scenario => {
  const last = messagesOf(request).at(-1);
  const text = last === undefined ? '' : textOf(last.content);
  if (last?.role === 'user' && text.startsWith('call ')) {
    const wanted = JSON.parse(text.slice(5)) as { name: string; arguments: unknown }[];
    return {
      answer: {
        toolCalls: wanted.map(({ name, arguments: args }) => {
          made += 1;
          return { id: `call-${made}`, name, arguments: JSON.stringify(args) };
        }),
      },
    };
  }
  if (last?.role === 'tool') return { answer: { text: [toolTexts(request).join(' | ')] } };
  return { answer: { text: [`You said ${text}.`] } };
};

/** Tools that keep a list of what was really executed. */
export const openApprovals = async (
  open: OpenApp,
  setup: AppSetup & { readonly agent?: Partial<AgentSetup>; readonly more?: readonly ToolDefinition[] } = {},
): Promise<TestApp & { readonly done: Called[] }> => {
  const done: Called[] = [];
  const recorded = (name: string, more: Partial<ToolDefinition>): ToolDefinition => ({
    ...tool(name, async (args, context) => {
      done.push({ name, arguments: args, idempotencyKey: context.idempotencyKey, runId: context.runId });
      return `${name} done`;
    }),
    ...more,
  });
  const schema = { type: 'object', properties: { amount: { type: 'number' } } };
  const tools = setup.tools ?? [
    recorded('pay', { requiresApproval: true, effect: 'Destructive', inputSchema: schema }),
    recorded('wipe', { requiresApproval: true, effect: 'Destructive', inputSchema: { type: 'object' } }),
    recorded('look', {}),
  ];
  const { agent, more, ...rest } = setup;
  const helper = {
    name: 'helper',
    model: { provider: 'local', model: 'any' },
    toolNames: [...tools, ...(more ?? [])].map(({ name }) => name),
    ...agent,
  };
  const app = await open({
    simulator: { respond },
    ...rest,
    agents: setup.folder === undefined ? [helper, ...(setup.agents ?? [])] : [],
    tools: [...tools, ...(more ?? [])],
  });
  return Object.assign(app, { done });
};

export const pendingOf = async (client: Client): Promise<PendingApproval[]> =>
  (await client.approvals.list({ query: {} })).body;

/** Queues a run that ends waiting, and the rows of the mailbox that it made, oldest first. */
export const queueWaiting = async (
  app: TestApp,
  sessionId: string,
  ...wanted: Wanted[]
): Promise<{ runId: string; events: LoggedEvent[]; rows: PendingApproval[] }> => {
  const runId = await enqueue(app.client, 'helper', { message: calls(...wanted), sessionId });
  const events = await followToEnd(app.client, runId);
  assert.equal(events.at(-1)?.type, 'run.awaiting-approval');
  const rows = (await pendingOf(app.client)).filter((row) => row.runId === runId).reverse();
  return { runId, events, rows };
};

export const decide = async (
  client: Client,
  id: string,
  approved: boolean,
  reason?: string,
): Promise<PendingApproval> => {
  const body = { approved, ...(reason === undefined ? {} : { reason }) };
  return (await client.approvals.decide({ params: { id }, body })).body;
};

export const auditOf = async (app: TestApp, prefix: string): Promise<TrailEntry[]> =>
  (await trail(app)).filter(({ action }) => action.startsWith(prefix));
