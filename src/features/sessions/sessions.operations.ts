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
    summary: 'List sessions, the last updated first',
    description:
      'Entries come without messages; ask for one session to read them. Where sessions have owners, callers below the management role see their own.',
    query: Type.Object({ agentName: Type.Optional(Type.String()), ...pagingQuery }),
    responses: { 200: Type.Array(SessionRecord) },
    errors: ['run-not-allowed'],
    cli: { columns: ['id', 'agentName', 'messageCount', 'version', 'updatedAt', 'ownerId', 'parentSessionId'] },
  },
  get: {
    ...read,
    path: '/api/sessions/{sessionId}',
    summary: 'Show a session with its messages',
    description:
      'The history is the one that the next run would continue, with tool calls and what waits for an answer.',
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
    description:
      'Messages, files, todo entries and attachments of the session go with it, in one transaction. A session that a run holds is refused until that run has ended.',
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
    description:
      'The new session shares the earlier messages, and both go on independently from there. It takes the id that the body names, or one that the service makes.',
    params: SessionId,
    body: SessionBranchRequest,
    responses: { 201: SessionBranchResult },
    errors: ['sequence-out-of-range', 'session-not-found', 'session-exists', 'branch-not-supported'],
  },
});
