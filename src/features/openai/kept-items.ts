import type { ChatMessage } from '../../engine/context/index.ts';
import { hexOf, runOfItem } from './items.ts';
import type { InputItem } from './responses.schema.ts';

/* What a conversation has already, of what is sent to it. */

interface CallsOfHistory {
  readonly names: ReadonlyMap<string, string>;
  /** Ids of those that wait for a result. */
  readonly open: Set<string>;
}

export const callsOf = (history: readonly ChatMessage[]): CallsOfHistory => {
  const names = new Map<string, string>();
  const open = new Set<string>();
  for (const { role, contents } of history) {
    // Calls of a message before it are not waited for any more.
    if (role === 'Assistant') open.clear();
    for (const part of contents)
      if (part.type === 'ToolCall') {
        names.set(part.toolCallId, part.toolName);
        open.add(part.toolCallId);
      } else if (part.type === 'ToolResult') open.delete(part.toolCallId);
  }
  return { names, open };
};

/** Says of an item whether a history has it, as from a program that sends back what it was sent. */
export type IsKept = (item: InputItem) => 'Waiting' | 'Done' | null;

/** Items are told by their ids, and calls that wait by theirs, since not every program keeps those of items. */
export const keptItems = (history: readonly ChatMessage[]): IsKept => {
  const runs = new Set(history.flatMap(({ runId }) => (runId === null ? [] : [hexOf(runId)])));
  const { open } = callsOf(history);
  return ({ id, type, call_id: callId }) => {
    const isOpen = typeof callId === 'string' && open.has(callId);
    if (type === 'function_call' && isOpen) return 'Waiting';
    // What a call waits for is new, whatever id a program gives it.
    if (type === 'function_call_output' && isOpen) return null;
    const run = typeof id === 'string' ? runOfItem(id) : null;
    return run !== null && runs.has(run) ? 'Done' : null;
  };
};
