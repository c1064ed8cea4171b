import type { ApiKeyScope, Role } from '../../../src/contract/authority.ts';
import { newId } from '../../../src/core/ids.ts';
import type { SessionRow } from '../../../src/db/tables/sessions.ts';
import type { ChatMessage } from '../../../src/engine/context/index.ts';
import { sessionStore } from '../../../src/features/sessions/index.ts';
import type { SessionDetailResponse, SessionRecord } from '../../../src/features/sessions/sessions.schema.ts';
import type { TestApp } from '../../support/app.ts';
import { runJson } from '../runs/run-calls.ts';

type Client = TestApp['client'];

/** Shared token of services whose tests make keys. */
export const token = 'shared-token-of-the-session-tests';

export const getSession = async (client: Client, sessionId: string): Promise<SessionDetailResponse> =>
  (await client.sessions.get({ params: { sessionId } })).body;

export const listSessions = async (
  client: Client,
  query: { agentName?: string; skip?: number; take?: number } = {},
): Promise<SessionRecord[]> => (await client.sessions.list({ query })).body;

export const removeSession = (client: Client, sessionId: string) => client.sessions.remove({ params: { sessionId } });

export const branch = async (
  client: Client,
  sessionId: string,
  newSessionId: string,
  upToSequence: number | null = null,
) => (await client.sessions.branch({ params: { sessionId }, body: { newSessionId, upToSequence } })).body;

/** One completed turn: two messages. */
export const say = (client: Client, sessionId: string, message = 'Hello', agent = 'helper') =>
  runJson(client, agent, { message, sessionId });

/** What the messages of a session say, by sequence; calls and results by their type. */
export const textsOf = ({ messages }: SessionDetailResponse): string[] =>
  (messages ?? []).map(({ contents }) => contents.map((part) => ('text' in part ? part.text : part.type)).join(' '));

/** All that only sessions leave in the store. */
export const sessionRows = async ({ store }: TestApp) => ({
  sessions: await store.count('sessions'),
  messages: await store.count('session messages'),
  segments: await store.count('shared stretches'),
  dropped: await store.count('dropped conversations'),
});

export const nothingLeft = { sessions: 0, messages: 0, segments: 0, dropped: 0 };

/** A session that has no turn yet; `version` 0 is one whose first turn is not saved. */
export const sessionRow = (id: string, updatedAt: number, version = 1): SessionRow => ({
  tenant_id: 'default',
  id,
  agent_name: 'helper',
  owner_id: null,
  conversation_id: `conversation-of-${id}`,
  version,
  message_count: 0,
  active_run_id: null,
  lock_until: null,
  last_run_id: null,
  created_at: updatedAt,
  updated_at: updatedAt,
  parent_session_id: null,
  door: null,
  parent_conversation_id: null,
  branch_from_sequence: null,
  summary: null,
});

/** A turn that another process saves, whatever it says; a session that is not there is opened for it. */
export const saveTurn = async (
  app: TestApp,
  id: string,
  contents: readonly ChatMessage['contents'][],
): Promise<void> => {
  const storage = app.store.open();
  const sessions = storage.stores(sessionStore);
  const now = app.clock.now();
  const there = await sessions.get('default', id);
  const row = there ?? sessionRow(id, now, 0);
  const message = { runId: null, createdAt: new Date(now).toISOString(), interrupted: false };
  const messages = contents.map((parts, index) => ({
    ...message,
    messageId: newId(),
    role: index % 2 === 0 ? ('User' as const) : ('Assistant' as const),
    contents: parts,
  }));
  await storage.write([
    ...(there === undefined ? [sessions.open(row)] : []),
    sessions.lock('default', id, 'elsewhere', now, now + 60_000),
    ...sessions.saveTurn(row, 'elsewhere', messages, null, now),
  ]);
};

export const makeKey = async (
  app: TestApp,
  name: string,
  role: Role = 'Operator',
  scopes: ApiKeyScope[] = ['RunsRead', 'RunsWrite', 'AgentsRead'],
): Promise<{ id: string; client: Client }> => {
  const { body } = await app.client.keys.create({ body: { name, role, scopes } });
  return { id: body.record.id, client: await app.clientFor(body.plaintextKey) };
};
