import { isDeepStrictEqual } from 'node:util';
import type { RunRecord } from '../../features/runs/runs.schema.ts';
import { type Choice, choiceIndex, moveChoice } from './choice.ts';
import { filterKey, noFilter, type RunFilter } from './run-filter.ts';
import { isOpen } from './run-status.ts';

/** What an open run does at the moment, from its events. */
export interface Activity {
  readonly text: string;
  /** End of the message that it writes; empty while it does something else. */
  readonly written: string;
  readonly totalTokens: number | null;
  readonly totalCost: number | null;
  readonly currency: string | null;
}

export interface RunList extends Choice<RunRecord> {
  readonly filter: RunFilter;
  /** False until the first page of this filter has come. */
  readonly loaded: boolean;
  /** True when there are no older runs than those here. */
  readonly complete: boolean;
  readonly activity: ReadonlyMap<string, Activity>;
}

export interface RunPage {
  readonly key: string;
  readonly skip: number;
  readonly take: number;
  readonly rows: readonly RunRecord[];
}

// Rows are kept in memory; whoever looks for older runs narrows the filter.
const maxListedRuns = 10_000;
/** Rows that are read before the chosen one comes near the end of what is here. */
const ahead = 60;

export const emptyList = (filter: RunFilter = noFilter): RunList => ({
  filter,
  rows: [],
  loaded: false,
  complete: false,
  selectedId: null,
  activity: new Map(),
});

const newestPage = (list: RunList, { rows, take }: RunPage): RunList => {
  const oldest = rows.at(-1)?.id ?? '';
  if (rows.length < take) return { ...list, rows, loaded: true, complete: true };
  // More new runs than one page holds: what lies between is not known, so the rest is read again when it is needed.
  const hasGap = (list.rows[0]?.id ?? '') < oldest;
  if (hasGap) return { ...list, rows, loaded: true, complete: false };
  return { ...list, rows: [...rows, ...list.rows.filter(({ id }) => id < oldest)], loaded: true };
};

const olderPage = (list: RunList, { rows, take }: RunPage): RunList => {
  const oldest = list.rows.at(-1)?.id ?? '';
  // Rows move down while new runs start, so a page may begin with some that are known.
  const all = [...list.rows, ...rows.filter(({ id }) => id < oldest)];
  return { ...list, rows: all, complete: rows.length < take || all.length >= maxListedRuns };
};

/** Takes in a page; one of another filter is too late. */
export const addPage = (list: RunList, page: RunPage): RunList => {
  if (page.key !== filterKey(list.filter)) return list;
  // Most looks find nothing new, and then nothing is drawn.
  const isKnown = list.loaded && page.skip === 0 && page.rows.length > 0;
  if (isKnown && isDeepStrictEqual(page.rows, list.rows.slice(0, page.rows.length))) return list;
  return page.skip === 0 ? newestPage(list, page) : olderPage(list, page);
};

/** Moves the choice by rows. It stays with its run when others come; `-Infinity` goes back to the newest. */
export const moveInList = (list: RunList, by: number): RunList =>
  by === Number.NEGATIVE_INFINITY ? { ...list, selectedId: null } : moveChoice(list, by);

export const wantsOlder = (list: RunList): boolean =>
  list.loaded && !list.complete && choiceIndex(list) > list.rows.length - ahead;

export const replaceRun = (list: RunList, run: RunRecord): RunList => {
  if (!list.rows.some(({ id }) => id === run.id)) return list;
  const activity = new Map(list.activity);
  if (!isOpen(run)) activity.delete(run.id);
  return { ...list, activity, rows: list.rows.map((row) => (row.id === run.id ? run : row)) };
};
