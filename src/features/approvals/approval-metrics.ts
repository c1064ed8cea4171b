import type { Logger } from '../../core/logger.ts';
import { storeValues } from '../../core/telemetry/store-values.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { ApprovalStore } from './approvals.store.ts';

export interface ApprovalMetricsDeps {
  readonly telemetry: Telemetry;
  readonly store: Pick<ApprovalStore, 'pendingCount'>;
  readonly lifecycle: { readonly draining: boolean };
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
}

// A short query over an index, for a number that people look at in minutes.
const everyMs = 15_000;

/** What was decided on calls that had to be approved, and how long they waited. Times are epoch milliseconds. */
export const createApprovalMetrics = ({ telemetry: { metrics }, store, now, ...deps }: ApprovalMetricsDeps) => {
  const approvals = metrics.counter(
    'acp.approvals',
    'Calls that were decided on, or that nobody decided on in time.',
    '{call}',
    ['acp.approval.status', 'acp.approval.channel', 'gen_ai.tool.name'],
  );
  const wait = metrics.histogram(
    'acp.approval.wait',
    'Time from the request of an approval to its decision.',
    's',
    [],
    // People decide: from a second to a week.
    [1, 5, 15, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600],
  );
  const pending = storeValues(metrics, { ...deps, everyMs }, async () => [await store.pendingCount(now())]);
  metrics.gauge('acp.approvals.pending', 'Calls in the mailbox that wait for a decision.', '{call}', [], () =>
    pending().map((value) => ({ value, values: [] })),
  );
  return {
    decided(
      call: { readonly tool_name: string; readonly created_at: number },
      status: 'Approved' | 'Rejected',
      channel: 'in_band' | 'mailbox',
      at: number,
    ): void {
      approvals.add(1, [status, channel, call.tool_name]);
      wait.record(Math.max(0, at - call.created_at) / 1000, []);
    },
    /** Nobody decided in time. */
    expired: (call: { readonly tool_name: string }): void => approvals.add(1, ['Expired', 'mailbox', call.tool_name]),
  };
};

export type ApprovalMetrics = ReturnType<typeof createApprovalMetrics>;
