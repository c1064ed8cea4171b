import type { Logger } from '../../core/logger.ts';
import { problemCode, type StoredRunError } from '../run-failure.ts';

/** A run as the log reports its end. Properties that are null or left out are unknown, or do not apply. */
export interface LoggedRunEnd {
  readonly runId: string;
  readonly tenantId: string;
  readonly agent: string;
  readonly status: string;
  readonly durationMs: number;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  /** Decimal, in the configured currency. */
  readonly cost: number | null;
  readonly error: Pick<StoredRunError, 'class' | 'type'> | null;
  /** What failed, where no other line has it. */
  readonly cause?: unknown;
  readonly requestId?: string | undefined;
  readonly traceId?: string | undefined;
  readonly parentRunId?: string | null;
  readonly kind?: string;
  /** What the store did not take. */
  readonly warnings?: readonly string[];
}

const sentences: Readonly<Record<string, string>> = {
  Completed: 'A run completed',
  Failed: 'A run failed',
  Canceled: 'A run was canceled',
  AwaitingApproval: 'A run waits for approvals',
  AwaitingInput: 'A run waits for results of its client',
};

/** One line at Information for each end of a run, in whichever process it executed, and for each pause. */
export const logRunEnd = (log: Pick<Logger, 'info'>, end: LoggedRunEnd): void => {
  const { runId, tenantId, agent, status, durationMs, inputTokens, outputTokens, cost, error, cause } = end;
  log.info(
    {
      runId,
      tenantId,
      agent,
      status,
      durationMs,
      inputTokens,
      outputTokens,
      cost,
      ...(error === null ? {} : { errorCode: problemCode(error.class, error.type), errorType: error.type }),
      ...(end.kind === undefined || end.kind === 'Agent' ? {} : { kind: end.kind }),
      ...(end.parentRunId === undefined || end.parentRunId === null ? {} : { parentRunId: end.parentRunId }),
      ...(end.warnings === undefined || end.warnings.length === 0 ? {} : { warnings: end.warnings }),
      ...(end.requestId === undefined ? {} : { requestId: end.requestId }),
      ...(end.traceId === undefined ? {} : { traceId: end.traceId }),
      ...(cause === undefined ? {} : { error: cause }),
    },
    sentences[status] ?? 'A run has ended',
  );
};
