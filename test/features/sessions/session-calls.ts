import type { ApiKeyScope, Role } from '../../../src/contract/authority.ts';
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

export const count = (app: TestApp, from: string): number =>
  app.rows<{ count: number }>(`select count(*) as count from service_${from}`)[0]?.count ?? -1;

/** Rows of every table that only sessions fill. */
export const sessionRows = (app: TestApp) => ({
  sessions: count(app, 'sessions'),
  messages: count(app, 'session_messages'),
  segments: count(app, 'conversation_segments'),
  dropped: count(app, 'dropped_conversations'),
});

export const nothingLeft = { sessions: 0, messages: 0, segments: 0, dropped: 0 };

export const makeKey = async (
  app: TestApp,
  name: string,
  role: Role = 'Operator',
  scopes: ApiKeyScope[] = ['RunsRead', 'RunsWrite', 'AgentsRead'],
): Promise<{ id: string; client: Client }> => {
  const { body } = await app.client.keys.create({ body: { name, role, scopes } });
  return { id: body.record.id, client: await app.clientFor(body.plaintextKey) };
};
