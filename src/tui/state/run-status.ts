import type { RunRecord, RunStatus } from '../../features/runs/runs.schema.ts';

/** A run whose calls were answered waits for nobody: another one went on with them. */
export type ShownStatus = RunStatus | 'Continued';

export const shownStatus = ({ status, continuedBy }: Pick<RunRecord, 'status' | 'continuedBy'>): ShownStatus =>
  continuedBy !== null && (status === 'AwaitingApproval' || status === 'AwaitingInput') ? 'Continued' : status;

const labels: Readonly<Record<ShownStatus, string>> = {
  Queued: 'queued',
  Running: 'running',
  Completed: 'completed',
  Failed: 'failed',
  Canceled: 'canceled',
  AwaitingInput: 'needs input',
  AwaitingApproval: 'needs approval',
  Continued: 'continued',
};

export const statusLabel = (status: ShownStatus): string => labels[status];

/** True while events may still come. A run that waits for a person is closed; its answer starts another one. */
export const isOpen = ({ status }: Pick<RunRecord, 'status'>): boolean => status === 'Queued' || status === 'Running';
