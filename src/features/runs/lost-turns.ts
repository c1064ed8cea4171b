import { AcpError } from '../../contract/errors.ts';
import type { Statement } from '../../db/statement.ts';
import type { RunRow } from '../../db/tables.ts';
import type { ChatMessage } from '../../engine/context/index.ts';
import { newMessage } from '../../engine/context/index.ts';
import { keptMessages, type RunJournal } from '../../engine/record/index.ts';
import type { TurnStore } from './run-turns.store.ts';
import type { RunStore } from './runs.store.ts';

interface LostTurnDeps {
  readonly store: Pick<RunStore, 'get' | 'recordedInput'>;
  readonly turns: Pick<TurnStore, 'steps' | 'lastPacks'>;
  readonly journal: Pick<RunJournal, 'stepsDropped'>;
  readonly now: () => number;
}

/** What the session keeps of the turn of a run whose process ended before the run did. */
export interface LostTurn {
  /** Empty: nothing of the turn is stored. */
  readonly messages: readonly ChatMessage[];
  /** Goes with them: no other run continues a turn that its session has. */
  readonly statements: readonly Statement[];
}

const noTurn: LostTurn = { messages: [], statements: [] };

type PackedEvent = readonly [type: string, at: number, members: Readonly<Record<string, unknown>>];

const isText = (type: string): boolean => type === 'message.delta' || type === 'message.completed';
// A text that is followed by one of these is not the last of its turn.
const endsText = (type: string): boolean => type.startsWith('tool.') || type.startsWith('run.');

/** The text of the answer that the run was at, as far as the log has it; the events come last first. */
const partialText = (events: readonly PackedEvent[]): { readonly id: string; readonly text: string } | null => {
  let id: string | null = null;
  let text = '';
  for (const [type, , members] of events) {
    if (endsText(type)) break;
    if (!isText(type)) continue;
    if (id !== null && members['messageId'] !== id) break;
    if (type === 'message.completed') {
      if (members['finishReason'] === 'ToolCalls') break;
      if (id === null) return { id: String(members['messageId']), text: String(members['text'] ?? '') };
      break;
    }
    id = String(members['messageId']);
    text = `${String(members['text'] ?? '')}${text}`;
  }
  return id === null || text === '' ? null : { id, text };
};

/** The turns of runs whose process is gone, as their sessions keep them: what a canceled run leaves there. */
export const createLostTurns = ({ store, turns, journal, now }: LostTurnDeps) => {
  const messagesOf = async (row: RunRow): Promise<readonly ChatMessage[]> => {
    const { tenant_id: tenantId, id } = row;
    const input = await store.recordedInput(tenantId, id);
    const given = input?.context.given;
    const told = given?.instructions === true ? input?.messages.slice(1) : input?.messages;
    const steps = await turns.steps(tenantId, id);
    const messages = keptMessages(steps, told ?? [], given?.history ?? 0, newMessage(id, id, 'Tool', now(), []));
    if (messages.length === 0) return [];
    const partial = partialText(await turns.lastPacks(tenantId, id));
    if (partial !== null && !messages.some(({ messageId }) => messageId === partial.id))
      messages.push(
        newMessage(id, partial.id, 'Assistant', row.started_at ?? now(), [{ type: 'Text', text: partial.text }]),
      );
    const last = messages.findLastIndex(({ role, runId }) => role === 'Assistant' && runId === id);
    const message = messages[last];
    if (message !== undefined) messages[last] = { ...message, interrupted: true };
    return messages;
  };

  /** Of a run that is still open; a turn that cannot be decrypted holds up no start. */
  const of = async (row: RunRow): Promise<LostTurn> => {
    if (row.parent_run_id !== null || row.session_id === null || row.status !== 'Running') return noTurn;
    try {
      return { messages: await messagesOf(row), statements: [journal.stepsDropped(row.id)] };
    } catch (error) {
      if (error instanceof AcpError && error.code === 'decryption-failed') return noTurn;
      throw error;
    }
  };

  return {
    of,
    async ofRun(tenantId: string, runId: string): Promise<LostTurn> {
      const row = await store.get(tenantId, runId);
      return row === undefined ? noTurn : of(row);
    },
  };
};

export type LostTurns = ReturnType<typeof createLostTurns>;
