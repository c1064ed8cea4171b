import type { Frame } from '../../contract/operation.ts';
import type { RunRecord } from '../../features/runs/runs.schema.ts';
import type { RunScore } from '../../features/scores/scores.schema.ts';
import { runTree, type TreeRow } from '../../text/run-tree.ts';
import { movedIndex } from './choice.ts';
import { addFrames, emptyTimeline, type Timeline, type TimelineItem } from './timeline.ts';

/** How the event stream of the run on screen stands. */
export interface StreamState {
  readonly status: 'opening' | 'live' | 'reconnecting' | 'ended' | 'failed';
  readonly message: string;
}

/** A run that was opened, with the tree it belongs to. */
export interface OpenRun {
  /** The run whose events are shown. */
  readonly runId: string;
  readonly tree: readonly TreeRow[];
  readonly focus: 'events' | 'tree';
  readonly timeline: Timeline;
  readonly stream: StreamState;
  /** Key of the chosen item; null: the latest, whichever it is. */
  readonly cursor: string | null;
  /** Of the run, newest first. */
  readonly scores: readonly RunScore[];
  /** True when a later run of its session was seen: calls of this one wait no more. */
  readonly wentOn: boolean;
}

const opening: StreamState = { status: 'opening', message: '' };

const atRun = (runId: string) =>
  ({
    runId,
    timeline: emptyTimeline,
    stream: opening,
    cursor: null,
    scores: [],
    wentOn: false,
  }) satisfies Partial<OpenRun>;

/** `run` is null where only the id is known. */
export const openRun = (runId: string, run: RunRecord | null): OpenRun => ({
  ...atRun(runId),
  tree: run === null ? [] : runTree([run]),
  focus: 'events',
});

export const shownRun = ({ tree, runId }: OpenRun): RunRecord | null =>
  tree.find(({ node }) => node.id === runId)?.node ?? null;

/** Shows the events of another run of the tree. */
export const showRun = (open: OpenRun, runId: string): OpenRun =>
  open.runId === runId ? open : { ...open, ...atRun(runId) };

/** The place of the shown run in its tree. */
export const treeIndex = ({ tree, runId }: OpenRun): number =>
  Math.max(
    0,
    tree.findIndex(({ node }) => node.id === runId),
  );

export const moveInTree = (open: OpenRun, by: number): OpenRun =>
  showRun(open, open.tree[movedIndex(open.tree, treeIndex(open), by)]?.node.id ?? open.runId);

export const receiveTree = (open: OpenRun, runs: readonly RunRecord[]): OpenRun => {
  const tree = runTree(runs);
  return { ...open, tree, focus: tree.length > 1 ? open.focus : 'events' };
};

export const receiveFrames = (open: OpenRun, frames: readonly Frame[]): OpenRun => ({
  ...open,
  timeline: addFrames(open.timeline, frames),
});

export const cursorIndex = ({ cursor, timeline: { items } }: OpenRun): number => {
  if (cursor === null) return items.length - 1;
  const at = items.findIndex(({ key }) => key === cursor);
  // The oldest items of a long run are dropped; the choice then moves to the oldest that is left.
  return at === -1 ? 0 : at;
};

export const chosenItem = (open: OpenRun): TimelineItem | null => open.timeline.items[cursorIndex(open)] ?? null;

/** Moves the choice by items; at the end it follows what comes. */
export const moveInEvents = (open: OpenRun, by: number): OpenRun => {
  const { items } = open.timeline;
  const index = movedIndex(items, cursorIndex(open), by);
  return { ...open, cursor: index >= items.length - 1 ? null : (items[index]?.key ?? null) };
};
