import type { RunRecord, RunStatus } from '../../features/runs/runs.schema.ts';

const labels: Readonly<Record<RunStatus, string>> = {
  Queued: 'queued',
  Running: 'running',
  Completed: 'completed',
  Failed: 'failed',
  Canceled: 'canceled',
  AwaitingInput: 'needs input',
  AwaitingApproval: 'needs approval',
};

export const statusLabel = (status: RunStatus): string => labels[status];

/** True while events may still come. A run that waits for a person is closed; its answer starts another one. */
export const isOpen = ({ status }: Pick<RunRecord, 'status'>): boolean => status === 'Queued' || status === 'Running';
