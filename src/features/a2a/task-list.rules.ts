import type { TaskState } from './a2a.schema.ts';
import { A2AError } from './a2a-errors.ts';

/** Rows of runs that a state stands for; null: no task ever has it. */
export const runsInState = (
  state: TaskState,
): { readonly status: string; readonly rejected: boolean | null } | null => {
  if (state === 'TASK_STATE_SUBMITTED') return { status: 'Queued', rejected: null };
  if (state === 'TASK_STATE_WORKING') return { status: 'Running', rejected: null };
  if (state === 'TASK_STATE_COMPLETED') return { status: 'Completed', rejected: null };
  if (state === 'TASK_STATE_CANCELED') return { status: 'Canceled', rejected: null };
  if (state === 'TASK_STATE_REJECTED') return { status: 'Failed', rejected: true };
  return state === 'TASK_STATE_FAILED' ? { status: 'Failed', rejected: false } : null;
};

/** Where a page ends: the time and the id of its last task. */
export interface PageEnd {
  readonly changedAt: number;
  readonly id: string;
}

export const pageToken = ({ changedAt, id }: PageEnd): string =>
  Buffer.from(`${changedAt} ${id}`).toString('base64url');

/** Null: the first page. Throws -32602 for what is no token of this service. */
export const pageEnd = (token: string | undefined): PageEnd | null => {
  if (token === undefined || token === '') return null;
  const match = /^(\d{1,15}) ([0-9a-f-]{36})$/.exec(Buffer.from(token, 'base64url').toString('latin1'));
  const [, changedAt, id] = match ?? [];
  if (changedAt === undefined || id === undefined)
    throw new A2AError('InvalidParams', 'pageToken is not one that this list has given.', {
      reason: 'PAGE_TOKEN_INVALID',
    });
  return { changedAt: Number(changedAt), id };
};

const defaultPageSize = 50;
const maxPageSize = 100;

export const pageSizeOf = (asked: number | undefined): number =>
  Math.min(Math.max(asked ?? defaultPageSize, 1), maxPageSize);
