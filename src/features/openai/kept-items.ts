import type { ChatMessage } from '../../engine/context/index.ts';
import { hexOf, runOfItem } from './items.ts';
import type { InputItem } from './responses.schema.ts';

/* What a conversation has already, of what is sent to it. */

interface CallsOfHistory {
  readonly names: ReadonlyMap<string, string>;
  /** Those that wait for a result, each with the run that has made it. */
  readonly open: Map<string, string | null>;
  /** Ids of those that have a result. */
  readonly answered: ReadonlySet<string>;
}

export const callsOf = (history: readonly ChatMessage[]): CallsOfHistory => {
  const names = new Map<string, string>();
  const open = new Map<string, string | null>();
  const answered = new Set<string>();
  for (const { role, contents, runId } of history) {
    // Calls of a message before it are not waited for any more.
    if (role === 'Assistant') open.clear();
    for (const part of contents)
      if (part.type === 'ToolCall') {
        names.set(part.toolCallId, part.toolName);
        open.set(part.toolCallId, runId);
      } else if (part.type === 'ToolResult') {
        open.delete(part.toolCallId);
        answered.add(part.toolCallId);
      }
  }
  return { names, open, answered };
};

/**
 * Says of an item whether a history has it, as from a program that sends back what it was sent; of a call also whether its
 * result is there (`Done`) or has yet to come (`Waiting`).
 */
export type IsKept = (item: InputItem) => 'Waiting' | 'Done' | null;

/** Items are told by their ids, and calls that wait by theirs, since not every program keeps those of items. */
export const keptItems = (history: readonly ChatMessage[]): IsKept => {
  const runs = new Set(history.flatMap(({ runId }) => (runId === null ? [] : [hexOf(runId)])));
  const { open, answered } = callsOf(history);
  const callKept = (callId: string, run: string | null, isOfHistory: boolean): ReturnType<IsKept> => {
    const openIn = open.get(callId);
    // Models repeat the ids of their calls: one of an earlier run is another call.
    const isWaiting = openIn !== undefined && (run === null || openIn === null || run === hexOf(openIn));
    if (isWaiting) return 'Waiting';
    if (!isOfHistory) return null;
    return answered.has(callId) ? 'Done' : 'Waiting';
  };
  return ({ id, type, call_id }) => {
    const callId = call_id ?? '';
    const run = typeof id === 'string' ? runOfItem(id) : null;
    const isOfHistory = run !== null && runs.has(run);
    if (type === 'function_call') return callKept(callId, run, isOfHistory);
    // What a call waits for is new, whatever id a program gives it.
    const isNew = type === 'function_call_output' && open.has(callId);
    return isOfHistory && !isNew ? 'Done' : null;
  };
};
