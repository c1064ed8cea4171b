import { isRecord } from '../../contract/record.ts';

type Wire = Readonly<Record<string, unknown>>;

const states = [
  'SUBMITTED',
  'WORKING',
  'COMPLETED',
  'FAILED',
  'CANCELED',
  'REJECTED',
  'INPUT_REQUIRED',
  'AUTH_REQUIRED',
] as const;
export type TaskState = (typeof states)[number];

/** Nothing more comes of these by itself. */
const over: ReadonlySet<TaskState> = new Set([
  'COMPLETED',
  'FAILED',
  'CANCELED',
  'REJECTED',
  'INPUT_REQUIRED',
  'AUTH_REQUIRED',
]);

/** A task of another system, by what it has said of it. */
export interface KnownTask {
  readonly id: string;
  readonly contextId: string | null;
  readonly state: TaskState;
}

export type ReplyPart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'data'; readonly data: unknown }
  | {
      readonly kind: 'file';
      readonly name: string | null;
      readonly mediaType: string | null;
      /** Base64; null: it is elsewhere. */
      readonly bytes: string | null;
      readonly url: string | null;
    };

const textOrNull = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** `TASK_STATE_INPUT_REQUIRED` of version 1.0 is `input-required` of 0.3. */
const stateOf = (status: unknown): TaskState | null => {
  const word = isRecord(status) && typeof status['state'] === 'string' ? status['state'] : '';
  const plain = word
    .replace(/^TASK_STATE_/, '')
    .replaceAll('-', '_')
    .toUpperCase();
  return states.find((state) => state === plain) ?? null;
};

/** A part of either version; null: it is none. */
const readPart = (part: unknown): ReplyPart | null => {
  if (!isRecord(part)) return null;
  if (typeof part['text'] === 'string') return { kind: 'text', text: part['text'] };
  if (part['data'] !== undefined) return { kind: 'data', data: part['data'] };
  const file = isRecord(part['file']) ? part['file'] : part;
  const bytes = textOrNull(file['bytes'] ?? file['raw']);
  const url = textOrNull(file['uri'] ?? file['url']);
  if (bytes === null && url === null) return null;
  const name = textOrNull(file['name'] ?? file['filename']);
  return { kind: 'file', name, mediaType: textOrNull(file['mimeType'] ?? file['mediaType']), bytes, url };
};

const readParts = (holder: unknown): readonly ReplyPart[] =>
  isRecord(holder) && Array.isArray(holder['parts'])
    ? holder['parts'].map(readPart).filter((part) => part !== null)
    : [];

/** Texts of one artifact are pieces of one text: agents keep them as they have streamed them. */
const appendPart = (parts: ReplyPart[], part: ReplyPart): void => {
  const last = parts.at(-1);
  if (part.kind === 'text' && last?.kind === 'text')
    parts[parts.length - 1] = { kind: 'text', text: last.text + part.text };
  else parts.push(part);
};

type Said = readonly ['task' | 'message' | 'status' | 'artifact', Wire];

/** What a result is. Version 1.0 wraps it under its name, 0.3 gives it a `kind`, and some methods answer with a bare task. */
const saidIn = (result: Wire): Said | null => {
  const { task, message, statusUpdate, artifactUpdate, kind } = result;
  if (isRecord(task)) return ['task', task];
  if (isRecord(statusUpdate)) return ['status', statusUpdate];
  if (isRecord(artifactUpdate)) return ['artifact', artifactUpdate];
  if (isRecord(message)) return ['message', message];
  if (kind === 'message') return ['message', result];
  if (kind === 'status-update') return ['status', result];
  if (kind === 'artifact-update') return ['artifact', result];
  return isRecord(result['status']) && typeof result['id'] === 'string' ? ['task', result] : null;
};

/**
 * Puts together what another agent says of one message, in either version of the protocol: a message, or a task with what
 * comes of it.
 */
export const createTaskReading = () => {
  let task: KnownTask | null = null;
  let message: readonly ReplyPart[] | null = null;
  let statusParts: readonly ReplyPart[] = [];
  let historyParts: readonly ReplyPart[] = [];
  const artifacts = new Map<string, ReplyPart[]>();
  // What a stream says after a cut may be a piece of a text whose beginning nobody has heard.
  let isWhole = true;

  const keep = (artifact: unknown, append: boolean): boolean => {
    if (!isRecord(artifact)) return false;
    const id = typeof artifact['artifactId'] === 'string' ? artifact['artifactId'] : '';
    const before = append ? artifacts.get(id) : undefined;
    const parts: ReplyPart[] = before ?? [];
    for (const part of readParts(artifact)) appendPart(parts, part);
    artifacts.set(id, parts);
    return true;
  };
  const status = (id: string, contextId: unknown, told: unknown): boolean => {
    const state = stateOf(told);
    if (state === null) return false;
    task = { id, contextId: textOrNull(contextId) ?? task?.contextId ?? null, state };
    statusParts = isRecord(told) ? readParts(told['message']) : [];
    return true;
  };
  const wholeTask = (told: Wire): boolean => {
    const id = textOrNull(told['id']);
    if (id === null || !status(id, told['contextId'], told['status'])) return false;
    if (Array.isArray(told['artifacts'])) {
      artifacts.clear();
      for (const artifact of told['artifacts']) keep(artifact, false);
    }
    isWhole = true;
    const history: readonly unknown[] = Array.isArray(told['history']) ? told['history'] : [];
    const last = history.findLast((one) => isRecord(one) && (one['role'] === 'ROLE_AGENT' || one['role'] === 'agent'));
    historyParts = readParts(last);
    return true;
  };

  const hasEnded = (): boolean => message !== null || (task !== null && over.has(task.state));

  return {
    /** False: it is nothing that the protocol has. */
    take(result: Wire): boolean {
      const said = saidIn(result);
      if (said === null) return false;
      const [what, told] = said;
      if (what === 'message') {
        message = readParts(told);
        isWhole = true;
        return true;
      }
      if (what === 'task') return wholeTask(told);
      const id = textOrNull(told['taskId']);
      if (id === null || (task !== null && task.id !== id)) return false;
      return what === 'status'
        ? status(id, told['contextId'], told['status'])
        : keep(told['artifact'], told['append'] === true);
    },
    get task(): KnownTask | null {
      return task;
    },
    /** Something may have been said that was not heard: it is not over before the task is told as a whole. */
    missed(): void {
      isWhole = false;
    },
    /** Nothing more comes, whether or not all of it was heard. */
    get hasEnded(): boolean {
      return hasEnded();
    },
    get isOver(): boolean {
      return isWhole && hasEnded();
    },
    /** What was answered: a message, or what the task made; where it made nothing, what is said of it last. */
    parts(): readonly ReplyPart[] {
      if (message !== null) return message;
      const made = [...artifacts.values()].flat();
      if (made.length > 0) return made;
      return statusParts.length > 0 ? statusParts : historyParts;
    },
  };
};

export type TaskReading = ReturnType<typeof createTaskReading>;
