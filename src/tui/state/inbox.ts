import type { PendingApproval } from '../../features/approvals/approvals.schema.ts';
import { type Choice, choiceIndex } from './choice.ts';

/** Tool calls that wait for a person. */
export interface Inbox extends Choice<PendingApproval> {
  readonly loaded: boolean;
  /** Why the list cannot be read, such as a missing scope; empty when it can. */
  readonly refusal: string;
}

export const emptyInbox: Inbox = { rows: [], loaded: false, refusal: '', selectedId: null };

/** Takes a decided call out at once; the next look at the service confirms it. */
export const withoutApproval = (inbox: Inbox, id: string): Inbox => {
  const at = choiceIndex(inbox);
  const rows = inbox.rows.filter((row) => row.id !== id);
  return { ...inbox, rows, selectedId: rows[Math.min(at, rows.length - 1)]?.id ?? null };
};
