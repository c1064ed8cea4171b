import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { pagingQuery } from '../../contract/schema.ts';
import { SessionBranchRequest, SessionBranchResult, SessionDetailResponse, SessionRecord } from './sessions.schema.ts';

const read = { tag: 'Sessions', role: 'Reader', scope: 'RunsRead', method: 'GET' } as const;
const write = { tag: 'Sessions', role: 'Operator', scope: 'RunsWrite' } as const;
// No pattern: an id that no session can have is as unknown as any other.
const SessionId = Type.Object({ sessionId: Type.String() });

export const sessionOperations = defineOperations({
  list: {
    ...read,
    path: '/api/sessions',
    summary: 'List sessions, most recently updated first',
    description:
      'Entries omit messages; get a single session to read them. If sessions have owners, callers below the management role see only their own.',
    query: Type.Object({ agentName: Type.Optional(Type.String()), ...pagingQuery }),
    responses: { 200: Type.Array(SessionRecord) },
    errors: ['run-not-allowed'],
    cli: { columns: ['id', 'agentName', 'messageCount', 'version', 'updatedAt', 'ownerId', 'parentSessionId'] },
  },
  get: {
    ...read,
    path: '/api/sessions/{sessionId}',
    summary: 'Show a session with its messages',
    description: 'The history is the one that the next run continues, with tool calls and open requests.',
    params: SessionId,
    responses: { 200: SessionDetailResponse },
    errors: ['session-not-found'],
    cli: { handWritten: true },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/sessions/{sessionId}',
    summary: 'Delete a session and its contents; its runs remain',
    description:
      'Messages, files, todo entries and attachments of the session are deleted with it in one transaction. The deletion is rejected while a run uses the session.',
    params: SessionId,
    responses: { 204: null },
    errors: ['session-not-found', 'session-busy'],
    cli: { command: 'sessions delete', done: 'Deleted session {sessionId}.' },
  },
  branch: {
    ...write,
    method: 'POST',
    path: '/api/sessions/{sessionId}/branch',
    summary: 'Create a session with the history up to a message',
    description:
      'The new session shares the earlier messages, and both continue independently. Its id comes from the body or is generated.',
    params: SessionId,
    body: SessionBranchRequest,
    responses: { 201: SessionBranchResult },
    errors: ['sequence-out-of-range', 'session-not-found', 'session-exists', 'branch-not-supported'],
  },
});
