import type { SessionRequestRow } from '../../../db/tables/approvals.ts';
import type { ToolInvocationRow } from '../../../db/tables.ts';
import type { ChatMessage, OpenCall, ToolResultPart } from '../../../engine/context/index.ts';
import { callMessageOf, openCallsOf } from './open-calls.rules.ts';

/**
 * The answered requests of calls that are still open, the newest of equal ids: the run that had the answers failed before
 * the session got a result.
 */
export const lostRequests = (
  history: readonly ChatMessage[],
  rows: readonly SessionRequestRow[],
): readonly SessionRequestRow[] => {
  const askedBy = callMessageOf(history)?.runId ?? '';
  return openCallsOf(history).flatMap(
    // Models repeat the ids of their calls, so an older pause may have had the same; ids of runs order by time.
    ({ toolCallId }) =>
      rows.find((row) => row.tool_call_id === toolCallId && row.state === 'Answered' && row.run_id >= askedBy) ?? [],
  );
};

const unknownOutcome =
  'The outcome of the call is unknown: it may have been made, and the run that made it failed before it had the result.';

/** What the ledger knows of a call; a call without an entry was never begun. */
const knownOf = (entry: ToolInvocationRow | undefined): Pick<ToolResultPart, 'result' | 'errorMessage'> => {
  if (entry === undefined) return { result: null, errorMessage: 'The call was not executed.' };
  if (entry.state !== 'Settled') return { result: null, errorMessage: unknownOutcome };
  if (entry.succeeded === 0) return { result: null, errorMessage: entry.error ?? 'The call failed.' };
  if (entry.result !== null && entry.truncated === 0) return { result: entry.result, errorMessage: null };
  return { result: null, errorMessage: 'The call succeeded, but its result is lost.' };
};

/** The open calls, each answered with what is known of it; none is made again. */
export const lostCalls = (
  history: readonly ChatMessage[],
  answered: readonly SessionRequestRow[],
  made: readonly ToolInvocationRow[],
): OpenCall[] =>
  openCallsOf(history).map(({ toolCallId, toolName, arguments: args }) => {
    const row = answered.find((entry) => entry.tool_call_id === toolCallId);
    // A call that has asked for input has an entry for each time that it was made; ids order by time.
    const entry = made
      .filter(({ idempotency_key }) => idempotency_key === row?.idempotency_key)
      .reduce<ToolInvocationRow | undefined>(
        (last, one) => (last === undefined || one.id > last.id ? one : last),
        undefined,
      );
    return {
      call: { toolCallId, toolName, input: JSON.stringify(args) } as OpenCall['call'],
      idempotencyKey: row?.idempotency_key ?? '',
      answer: { type: 'ToolResult', toolCallId, toolName, ...knownOf(row === undefined ? undefined : entry) },
    };
  });
