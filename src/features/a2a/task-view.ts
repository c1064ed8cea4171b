import type { ChatMessage, ContentPart } from '../../contract/chat-message.ts';
import type { Frame } from '../../contract/operation.ts';
import type { Json } from '../../contract/schema.ts';
import type { AttachmentRow, RunRow } from '../../db/tables.ts';
import { decodePack } from '../../engine/record/index.ts';
import { type RunRecords, storedWarnings } from '../runs/index.ts';
import type { Artifact, Part, Task, TaskMessage } from './a2a.schema.ts';
import type { A2AMessageStore } from './a2a-messages.store.ts';
import { dataAlone } from './message-content.ts';
import { changedAt, isFinal, runStateOf, type TaskIds, taskStatus } from './task-state.rules.ts';
import { TaskUpdates } from './task-updates.ts';

export interface TaskViewDeps {
  readonly records: Pick<RunRecords, 'packs' | 'recordedInput'>;
  readonly filesOf: (tenantId: string, runId: string) => Promise<readonly AttachmentRow[]>;
  readonly messages: Pick<A2AMessageStore, 'messageOf'>;
}

/** What a reader of a task asks for. */
export interface TaskAsked {
  /** Newest messages that are told; null: all. */
  readonly historyLength: number | null;
  readonly withArtifacts: boolean;
  /** Address of the service, below which files are. */
  readonly base: string;
}

// Rows of a log that are read at once.
const packsPerRead = 64;

export const taskIds = (row: Pick<RunRow, 'id' | 'session_id'>): TaskIds => ({
  taskId: row.id,
  contextId: row.session_id ?? '',
});

const fileUrl = (base: string, id: string): string => `${base}/api/attachments/${id}`;

const parsed = (text: string): Json | undefined => {
  try {
    return JSON.parse(text) as Json;
  } catch {
    // A guard may have left other than JSON of it.
    return undefined;
  }
};

/** A part as its sender gave it, as far as the record of the run has it. */
const sentPart = (part: ContentPart, base: string): Part | null => {
  if (part.type === 'Text') return part.text === '' || part.text === dataAlone ? null : { text: part.text };
  if (part.type === 'Document') {
    const data = parsed(part.text);
    return data === undefined ? { text: part.text } : { data, mediaType: 'application/json' };
  }
  if (part.type !== 'Attachment') return null;
  return { url: fileUrl(base, part.attachmentId), filename: part.fileName, mediaType: part.mediaType };
};

const sentMessage = (ids: TaskIds, message: Pick<ChatMessage, 'messageId' | 'contents'>, base: string): TaskMessage => {
  const parts = message.contents.flatMap((part) => sentPart(part, base) ?? []);
  const texts = parts.filter(({ text }) => text !== undefined);
  return {
    messageId: message.messageId,
    ...ids,
    role: 'ROLE_USER',
    // Its words first, as most have sent them.
    parts: [...texts, ...parts.filter(({ text }) => text === undefined)],
  };
};

/** Tasks as callers see them, made of what is stored of their runs. */
export const createTaskView = ({ records, filesOf, messages }: TaskViewDeps) => {
  const files = async ({ tenant_id: tenantId, id }: RunRow, base: string): Promise<readonly Artifact[]> =>
    (await filesOf(tenantId, id)).map((row) => ({
      artifactId: `file-${row.id}`,
      name: row.file_name,
      parts: [{ url: fileUrl(base, row.id), filename: row.file_name, mediaType: row.media_type }],
    }));

  /** The stored log from one event on. */
  const frames = async function* (row: RunRow, from: number): AsyncGenerator<readonly Frame[], void> {
    for (let next = from; ; ) {
      const packs = await records.packs(row.tenant_id, row.id, next, packsPerRead);
      for (const { firstSequence, lastSequence, events } of packs) {
        yield decodePack(row.id, firstSequence, events, next);
        next = lastSequence + 1;
      }
      if (packs.length < packsPerRead) return;
    }
  };

  /** The task as far as its log is stored. Of a run that is over the last event says all. */
  const updatesOf = async (row: RunRow, answersJson: boolean): Promise<TaskUpdates> => {
    const updates = new TaskUpdates(taskIds(row), answersJson, row.created_at);
    const from = row.completed_at === null ? 0 : Math.max(0, row.event_count - 1);
    for await (const batch of frames(row, from)) for (const frame of batch) updates.read(frame);
    return updates;
  };

  /** Reads the log up to and with one event; false: it does not go so far. */
  const readUpTo = async (row: RunRow, updates: TaskUpdates, last: number): Promise<boolean> => {
    if (last < updates.next) return true;
    for await (const batch of frames(row, updates.next))
      for (const frame of batch) {
        updates.read(frame);
        if (frame.id === last) return true;
      }
    return false;
  };

  const history = async (row: RunRow, answer: Artifact | null, asked: TaskAsked): Promise<readonly TaskMessage[]> => {
    const ids = taskIds(row);
    const input = await records.recordedInput(row.tenant_id, row.id);
    const sent = input?.messages.findLast(({ role }) => role === 'User');
    const told: TaskMessage[] = [];
    if (sent !== undefined) {
      const messageId = (await messages.messageOf(row.tenant_id, row.id)) ?? sent.messageId;
      told.push(
        sentMessage(ids, { messageId, contents: sent.contents as readonly ContentPart[] as ContentPart[] }, asked.base),
      );
    }
    if (answer !== null && row.status === 'Completed')
      told.push({ messageId: `${row.id}-output`, ...ids, role: 'ROLE_AGENT', parts: answer.parts });
    return asked.historyLength === null ? told : told.slice(-asked.historyLength);
  };

  /** The task at a moment that its updates stand for. */
  const at = async (row: RunRow, updates: TaskUpdates, asked: TaskAsked): Promise<Task> => {
    const ids = taskIds(row);
    const { output } = updates;
    const warnings = storedWarnings(row);
    const made = asked.withArtifacts && isFinal(updates.status.state) ? await files(row, asked.base) : [];
    const artifacts = asked.withArtifacts ? [...(output === null ? [] : [output]), ...made] : [];
    const told = asked.historyLength === 0 ? [] : await history(row, output, asked);
    return {
      id: ids.taskId,
      contextId: ids.contextId,
      status: updates.status,
      ...(artifacts.length === 0 ? {} : { artifacts }),
      ...(told.length === 0 ? {} : { history: told }),
      metadata: {
        'acp.runId': row.id,
        'acp.agent': row.agent_name,
        ...(warnings.length === 0 ? {} : { 'acp.warnings': warnings.join(', ') }),
      },
    };
  };

  return {
    files,
    updatesOf,
    readUpTo,
    at,
    /** As its row and its log are now; the row decides, since a log may be gone before it. */
    async of(row: RunRow, answersJson: boolean, asked: TaskAsked): Promise<Task> {
      const task = await at(row, await updatesOf(row, answersJson), asked);
      return { ...task, status: taskStatus(taskIds(row), runStateOf(row), changedAt(row)) };
    },
  };
};

export type TaskView = ReturnType<typeof createTaskView>;
