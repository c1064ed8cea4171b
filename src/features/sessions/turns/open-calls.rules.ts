import { createHash } from 'node:crypto';
import { AcpError } from '../../../contract/errors.ts';
import type { SessionRequestRow } from '../../../db/tables/approvals.ts';
import type { ChatMessage, ContentPart, OpenCall } from '../../../engine/context/index.ts';
import type { SessionTurn } from '../../../engine/record/index.ts';

export type ToolCallPart = Extract<ContentPart, { type: 'ToolCall' }>;

/** The last assistant message with calls. */
export const callMessageOf = (messages: readonly ChatMessage[]): ChatMessage | undefined =>
  messages.findLast(({ role, contents }) => role === 'Assistant' && contents.some((part) => part.type === 'ToolCall'));

/** Calls of the last assistant message with calls that have no result yet, in the model's order. */
export const openCallsOf = (messages: readonly ChatMessage[]): readonly ToolCallPart[] => {
  const message = callMessageOf(messages);
  if (message === undefined) return [];
  const at = messages.indexOf(message);
  const answered = new Set(
    messages
      .slice(at + 1)
      .flatMap(({ contents }) => contents.flatMap((part) => (part.type === 'ToolResult' ? [part.toolCallId] : []))),
  );
  return message.contents.filter(
    (part): part is ToolCallPart => part.type === 'ToolCall' && !answered.has(part.toolCallId),
  );
};

/** What the model reads of a call that a person turned down. */
export const rejection = (reason: string | null | undefined): string => {
  const words = (reason ?? '').trim();
  return words === '' ? 'Not approved: the user declined the call.' : `Not approved: ${words}`;
};

/** A call that is answered without being made. */
export const refusedPart = ({ toolCallId, toolName }: { toolCallId: string; toolName: string }, errorMessage: string) =>
  ({ type: 'ToolResult', toolCallId, toolName, result: null, errorMessage }) as const;

export const changedError = (sessionId: string): AcpError =>
  new AcpError('session-conflict', `Session "${sessionId}" has changed since its calls were put to a decision.`);

/** Calls whose request was left for later, as client-side ones of a turn with approvals, get their key here. */
const laterKey = (runId: string, toolCallId: string): string =>
  createHash('sha256').update(`${runId}\n${toolCallId}`).digest('hex').slice(0, 40);

/** The open calls of the session, each with the answer that `answerOf` knows; calls without a request are made. */
export const answeredCalls = (
  session: SessionTurn,
  open: readonly SessionRequestRow[],
  answerOf: (row: SessionRequestRow) => OpenCall['answer'],
): OpenCall[] => {
  const calls = openCallsOf(session.history);
  const rowOf = new Map(open.map((row) => [row.tool_call_id, row]));
  if (calls.length === 0 || open.some((row) => !calls.some((call) => call.toolCallId === row.tool_call_id)))
    throw changedError(session.sessionId);
  return calls.map(({ toolCallId, toolName, arguments: args }) => {
    const row = rowOf.get(toolCallId);
    const call = { toolCallId, toolName, input: JSON.stringify(args) } as OpenCall['call'];
    return row === undefined
      ? { call, idempotencyKey: laterKey(open[0]?.run_id ?? '', toolCallId), answer: 'execute' }
      : { call, idempotencyKey: row.idempotency_key, answer: answerOf(row) };
  });
};
