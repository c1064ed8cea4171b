import { type ContentCipher, isDecryptionFailure, isMarked } from '../../core/content-cipher.ts';
import { storedText } from '../../core/documents/stored-text.ts';
import type { Tables } from '../tables.ts';

/**
 * Every column that holds what people, models and tools said, with the key of its row beside the tenant. Anything else
 * is searched, sorted or counted in SQL, and stays plain. `tenant` says where a row's tenant is found: in a column that
 * begins the primary key, in one that does not, or with the run or the conversation that the row belongs to.
 * Design: docs/design/encryption.md.
 */
const protectedTables = {
  run_inputs: { tenant: 'Run', key: ['run_id'], columns: ['messages', 'context'] },
  run_events: { tenant: 'Run', key: ['run_id', 'first_sequence'], columns: ['events'] },
  run_steps: { tenant: 'Run', key: ['run_id', 'sequence'], columns: ['content'] },
  run_model_calls: { tenant: 'Run', key: ['run_id'], columns: ['calls'] },
  run_traces: { tenant: 'Column', key: ['run_id'], columns: ['spans'] },
  tool_invocations: { tenant: 'Column', key: ['run_id', 'id'], columns: ['arguments', 'result', 'error'] },
  session_messages: { tenant: 'Conversation', key: ['conversation_id', 'sequence'], columns: ['message'] },
  sessions: { tenant: 'Key', key: ['id'], columns: ['summary'] },
  approvals: { tenant: 'Key', key: ['id'], columns: ['arguments', 'presentation'] },
  approval_handovers: { tenant: 'Column', key: ['run_id'], columns: ['context'] },
  session_requests: { tenant: 'Key', key: ['session_id', 'run_id', 'id'], columns: ['asked'] },
  jobs: { tenant: 'Column', key: ['id'], columns: ['payload'] },
  job_items: { tenant: 'Column', key: ['job_id', 'seq'], columns: ['input'] },
  schedules: { tenant: 'Key', key: ['name'], columns: ['payload'] },
  webhooks: { tenant: 'Key', key: ['name'], columns: ['headers'] },
  // Headers name the run, by which an erasure finds its answers.
  idempotency_keys: { tenant: 'Key', key: ['key'], columns: ['body'] },
  response_cache: { tenant: 'Column', key: ['id'], columns: ['answer'] },
  agent_files: { tenant: 'Key', key: ['owner', 'path'], columns: ['content'] },
  external_spans: { tenant: 'Key', key: ['trace_id', 'span_id'], columns: ['span'] },
  own_secrets: { tenant: 'Key', key: ['name'], columns: ['value'] },
  openai_responses: { tenant: 'Key', key: ['id'], columns: ['metadata'] },
  openai_conversations: { tenant: 'Key', key: ['id'], columns: ['metadata'] },
  mcp_grants: { tenant: 'Key', key: ['server_id'], columns: ['value'] },
  mcp_consents: { tenant: 'Column', key: ['state_hash'], columns: ['value'] },
  agent_states: { tenant: 'Key', key: ['owner'], columns: ['todos'] },
} as const satisfies {
  readonly [T in keyof Tables]?: {
    readonly tenant: 'Key' | 'Column' | 'Run' | 'Conversation';
    readonly key: readonly (keyof Tables[T])[];
    readonly columns: readonly (keyof Tables[T])[];
  };
};

export type ProtectedTable = keyof typeof protectedTables;

export interface ProtectedShape {
  readonly tenant: 'Key' | 'Column' | 'Run' | 'Conversation';
  /** Of the row, beside the tenant. */
  readonly key: readonly string[];
  readonly columns: readonly string[];
}

export const protectedTableNames = Object.keys(protectedTables) as readonly ProtectedTable[];
export const protectedShape = (table: ProtectedTable): ProtectedShape => protectedTables[table];

type KeyColumn<T extends ProtectedTable> = (typeof protectedTables)[T]['key'][number] & keyof Tables[T];

/**
 * Rows on their way into the store and out of it. A row may lack any column but those of its key; what is no text, or
 * not protected, is not touched. `open` throws `decryption-failed`.
 */
export interface ProtectedRows {
  readonly cipher: ContentCipher;
  seal<T extends ProtectedTable, R extends Pick<Tables[T], KeyColumn<T>>>(table: T, tenantId: string, row: R): R;
  open<T extends ProtectedTable, R extends Pick<Tables[T], KeyColumn<T>>>(table: T, tenantId: string, row: R): R;
  /** For lists, which one row without its key must not end: what cannot be decrypted is null. */
  openList<T extends ProtectedTable, R extends Pick<Tables[T], KeyColumn<T>>>(
    table: T,
    tenantId: string,
    rows: readonly R[],
  ): OpenedList<R>;
  /** A whole row of any table, also of one that has nothing to open. */
  openAny(table: keyof Tables, tenantId: string, row: object): object;
}

export interface OpenedList<R> {
  readonly rows: readonly R[];
  /** How many rows lack something, and why the first one does; null: all is there. */
  readonly unreadable: { readonly count: number; readonly error: unknown } | null;
}

type Values = Readonly<Record<string, unknown>>;

const changed = (
  table: ProtectedTable,
  row: object,
  change: (column: string, key: () => unknown[], text: string) => string | null,
): object => {
  const { key, columns } = protectedTables[table];
  let copy: Record<string, unknown> | null = null;
  for (const column of columns) {
    const text = (row as Values)[column];
    if (typeof text !== 'string') continue;
    const value = change(column, () => key.map((name) => (row as Values)[name]), text);
    if (value === text) continue;
    copy ??= { ...row };
    copy[column] = value;
  }
  return copy ?? row;
};

/** Whether a plain row has a value that a reader would take for a sealed one; nearly none has. */
const readsAsMarked = (table: ProtectedTable, row: object): boolean => {
  for (const column of protectedTables[table].columns) {
    const text = (row as Values)[column];
    if (typeof text === 'string' && isMarked(text)) return true;
  }
  return false;
};

const isProtected = (table: keyof Tables): table is ProtectedTable => Object.hasOwn(protectedTables, table);

export const createProtectedRows = (cipher: ContentCipher): ProtectedRows => {
  const openColumn = (table: ProtectedTable, tenantId: string, column: string, key: () => unknown[], text: string) =>
    cipher.open({ table, column, tenantId, row: key() }, text);
  const opened = (table: ProtectedTable, tenantId: string, row: object): object =>
    changed(table, row, (column, key, text) => openColumn(table, tenantId, column, key, text));
  /** With null for what cannot be decrypted, and the reason of the first. */
  const readable = (table: ProtectedTable, tenantId: string, row: object): { row: object; error: unknown } => {
    let failure: unknown = null;
    const opened = changed(table, row, (column, key, text) => {
      try {
        return openColumn(table, tenantId, column, key, text);
      } catch (error) {
        if (!isDecryptionFailure(error)) throw error;
        failure ??= error;
        return null;
      }
    });
    return { row: opened, error: failure };
  };
  return {
    cipher,
    seal(table, tenantId, row) {
      if (cipher.activeKeyId === null && !readsAsMarked(table, row)) return row;
      return changed(table, row, (column, key, text) =>
        cipher.seal({ table, column, tenantId, row: key() }, storedText(text)),
      ) as typeof row;
    },
    open: (table, tenantId, row) => opened(table, tenantId, row) as typeof row,
    openList<R extends object>(table: ProtectedTable, tenantId: string, rows: readonly R[]): OpenedList<R> {
      const read = rows.map((row) => readable(table, tenantId, row));
      const failures = read.flatMap(({ error }) => (error === null ? [] : [error]));
      const unreadable = failures.length === 0 ? null : { count: failures.length, error: failures[0] };
      return { rows: read.map(({ row }) => row as R), unreadable };
    },
    openAny: (table, tenantId, row) => (isProtected(table) ? opened(table, tenantId, row) : row),
  };
};
