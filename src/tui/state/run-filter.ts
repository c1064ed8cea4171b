import { joined } from '../../text/format.ts';
import { type ShownStatus, statusLabel } from './run-status.ts';

/** How far back runs are listed, in milliseconds; null: without a limit. */
export const periods = {
  'any time': null,
  'last 15 minutes': 900_000,
  'last hour': 3_600_000,
  'last 24 hours': 86_400_000,
  'last 7 days': 604_800_000,
} as const;
export type Period = keyof typeof periods;

export interface RunFilter {
  readonly status: ShownStatus | null;
  readonly agentName: string;
  readonly label: string;
  readonly sessionId: string;
  readonly period: Period;
  /** Runs that other runs called are listed as well. */
  readonly includeChildren: boolean;
}

export const noFilter: RunFilter = {
  status: null,
  agentName: '',
  label: '',
  sessionId: '',
  period: 'any time',
  includeChildren: false,
};

/** In the order of the panel. */
export const filterMembers = ['status', 'agentName', 'label', 'sessionId', 'period', 'includeChildren'] as const;
export type FilterMember = (typeof filterMembers)[number];

/** Names one filter among all: what was read for another one is thrown away. */
export const filterKey = (filter: RunFilter): string => JSON.stringify(filter);

/** The query of `runs.list`, without paging. */
export const filterQuery = (
  { status, agentName, label, sessionId, period, includeChildren }: RunFilter,
  now: number,
) => {
  const span = periods[period];
  return {
    ...(status === null ? {} : { status }),
    // Whoever looks for what waits for a person does not look for what was answered.
    ...(status === 'AwaitingApproval' || status === 'AwaitingInput' ? { continued: false } : {}),
    ...(agentName === '' ? {} : { agentName }),
    ...(label === '' ? {} : { label }),
    ...(sessionId === '' ? {} : { sessionId }),
    ...(span === null ? {} : { startedAfter: new Date(now - span).toISOString() }),
    ...(includeChildren ? { includeChildren } : {}),
  };
};

/** What is filtered, for the head of the list; empty when nothing is. */
export const describeFilter = (filter: RunFilter): string =>
  joined(
    [
      filter.status === null ? '' : statusLabel(filter.status),
      filter.agentName === '' ? '' : `agent ${filter.agentName}`,
      filter.label === '' ? '' : `label ${filter.label}`,
      filter.sessionId === '' ? '' : `session ${filter.sessionId}`,
      filter.period === noFilter.period ? '' : filter.period,
      filter.includeChildren ? 'with sub-runs' : '',
    ],
    ', ',
  );
