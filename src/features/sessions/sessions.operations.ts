import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { pagingQuery } from '../../contract/schema.ts';
import { SessionBranchRequest, SessionBranchResult, SessionDetailResponse, SessionRecord } from './sessions.schema.ts';

const read = { tag: 'Sessions', role: 'Reader', scope: 'RunsRead' } as const;
const write = { tag: 'Sessions', role: 'Operator', scope: 'RunsWrite' } as const;
// No pattern: an id that no session can have is as unknown as any other.
const SessionId = Type.Object({ sessionId: Type.String() });

export const sessionOperations = defineOperations({
  list: {
    ...read,
    method: 'GET',
    path: '/api/sessions',
    summary: 'List sessions, the last updated first',
    query: Type.Object({ agentName: Type.Optional(Type.String()), ...pagingQuery }),
    responses: { 200: Type.Array(SessionRecord) },
    errors: ['run-not-allowed'],
    cli: { columns: ['id', 'agentName', 'messageCount', 'version', 'updatedAt', 'ownerId', 'parentSessionId'] },
  },
  get: {
    ...read,
    method: 'GET',
    path: '/api/sessions/{sessionId}',
    summary: 'Show a session with its messages',
    params: SessionId,
    responses: { 200: SessionDetailResponse },
    errors: ['session-not-found'],
    cli: { handWritten: true },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/sessions/{sessionId}',
    summary: 'Delete a session and what it holds; its runs stay',
    params: SessionId,
    responses: { 204: null },
    errors: ['session-not-found', 'session-busy'],
    cli: { command: 'sessions delete', done: 'Deleted session {sessionId}.' },
  },
  branch: {
    ...write,
    method: 'POST',
    path: '/api/sessions/{sessionId}/branch',
    summary: 'Open a new session with the history up to a message',
    params: SessionId,
    body: SessionBranchRequest,
    responses: { 201: SessionBranchResult },
    errors: ['sequence-out-of-range', 'session-not-found', 'session-exists', 'branch-not-supported'],
  },
});
