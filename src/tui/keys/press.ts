import type { PendingApproval } from '../../features/approvals/approvals.schema.ts';
import type { RunRecord } from '../../features/runs/runs.schema.ts';
import { safeLine } from '../../text/text-width.ts';
import { chosenRow, moveChoice } from '../state/choice.ts';
import { chosenItem, moveInEvents, moveInTree, type OpenRun, openRun, shownRun, showRun } from '../state/open-run.ts';
import { moveInList } from '../state/run-list.ts';
import { isOpen } from '../state/run-status.ts';
import type { Overlay, ScreenState } from '../state/screen-state.ts';
import { waitingRun } from '../state/waiting-run.ts';
import { approvalText, helpText, itemText, lastTop, recordText } from '../view/long-text.ts';
import { askAnswers } from './answer.keys.ts';
import { pressInJob, pressInJobs } from './job.keys.ts';
import type { Key } from './key.ts';
import { askFilter, pressInPrompt } from './prompt.keys.ts';
import { ask, askText, movement, notice, overlaid, reasonLabel, type Step, stay } from './step.ts';

const runName = ({ agentName, id }: RunRecord): string => `${safeLine(agentName)} …${id.slice(-6)}`;

/** Keys that mean the same wherever a run is chosen. */
const pressOnRun = (state: ScreenState, run: RunRecord | null, key: Key): Step | null => {
  if (run === null) return null;
  const name = runName(run);
  if (key.text === 'y') return { state, request: { kind: 'copy', text: run.id } };
  if (key.text === 'Y' && run.sessionId === null) return notice(state, `${name} has no session.`);
  if (key.text === 'Y' && run.sessionId !== null) return { state, request: { kind: 'copy', text: run.sessionId } };
  if (key.text === 'o') return { state, request: { kind: 'open', runId: run.id } };
  if (key.text === 's') return ask(state, { kind: 'score', runId: run.id, name });
  if (key.text !== 'c') return null;
  if (!isOpen(run)) return notice(state, `${name} is not running any more.`);
  const question = `Cancel ${name} and everything it called?`;
  return ask(state, { kind: 'confirm', question, request: { kind: 'cancel', runId: run.id, name } });
};

const pressInRuns = (state: ScreenState, key: Key): Step => {
  const by = movement(state, key);
  if (by !== null) return stay({ ...state, runs: moveInList(state.runs, by) });
  const run = chosenRow(state.runs);
  if (key.name === 'enter' && run !== null)
    return stay({ ...state, screen: 'run', cameFrom: 'runs', open: openRun(run.id, run) });
  if (key.name === 'tab') return stay({ ...state, screen: 'approvals' });
  if (key.text === 'f') return ask(state, { kind: 'filters', row: 0 });
  if (key.text === '/') return askFilter(state, 'agentName');
  return pressOnRun(state, run, key) ?? stay(state);
};

const decide = (state: ScreenState, { id, toolName, agentName }: PendingApproval, key: Key): Step | null => {
  const tool = safeLine(toolName);
  if (key.text === 'a') {
    const question = `Approve ${tool} for ${safeLine(agentName)}?`;
    const request = { kind: 'decide', approvalId: id, toolName: tool, approved: true, reason: '' } as const;
    return ask(state, { kind: 'confirm', question, request });
  }
  if (key.text === 'r') {
    return askText(state, reasonLabel, { kind: 'rejection', approvalId: id, toolName: tool });
  }
  return null;
};

const pressInApprovals = (state: ScreenState, key: Key): Step => {
  const by = movement(state, key);
  if (by !== null) return stay({ ...state, inbox: moveChoice(state.inbox, by) });
  if (key.name === 'tab') return stay({ ...state, screen: 'jobs' });
  if (key.name === 'escape') return stay({ ...state, screen: 'runs' });
  const approval = chosenRow(state.inbox);
  if (approval === null) return stay(state);
  if (key.name === 'enter') return overlaid(state, `Call of ${safeLine(approval.toolName)}`, approvalText(approval));
  if (key.text === 'o')
    return stay({ ...state, screen: 'run', cameFrom: 'approvals', open: openRun(approval.runId, null) });
  return decide(state, approval, key) ?? stay(state);
};

const enterInRun = (state: ScreenState, open: OpenRun): Step => {
  if (open.focus === 'tree') return stay({ ...state, open: { ...open, focus: 'events' } });
  const item = chosenItem(open);
  const child = item?.data['childRunId'];
  if (typeof child === 'string') return stay({ ...state, open: showRun(open, child) });
  return item === null ? stay(state) : overlaid(state, item.event, itemText(item));
};

const pressInRun = (state: ScreenState, key: Key): Step => {
  const { open } = state;
  if (open === null || key.name === 'escape') return stay({ ...state, screen: state.cameFrom, open: null });
  const by = movement(state, key);
  const inTree = open.focus === 'tree';
  if (by !== null) return stay({ ...state, open: inTree ? moveInTree(open, by) : moveInEvents(open, by) });
  if (key.name === 'tab') {
    const focus = inTree || open.tree.length < 2 ? 'events' : 'tree';
    return stay({ ...state, open: { ...open, focus } });
  }
  if (key.name === 'enter') return enterInRun(state, open);
  const run = shownRun(open);
  const waiting = waitingRun(open, state.inbox);
  if (key.text === 'a' && waiting !== null) return askAnswers(state, waiting);
  if (key.text === 'i') return overlaid(state, `Run ${open.runId}`, recordText(run ?? { id: open.runId }, open.scores));
  return pressOnRun(state, run, key) ?? stay(state);
};

const pressInOverlay = (state: ScreenState, overlay: Overlay, key: Key): Step => {
  if (key.name === 'escape' || key.name === 'enter' || key.text === 'q' || key.text === '?')
    return stay({ ...state, overlay: null });
  const by = movement(state, key);
  if (by === null) return stay(state);
  const top = Math.min(Math.max(overlay.top + by, 0), lastTop(overlay, state.size));
  return stay({ ...state, overlay: { ...overlay, top } });
};

const screens: Readonly<Record<ScreenState['screen'], (state: ScreenState, key: Key) => Step>> = {
  runs: pressInRuns,
  approvals: pressInApprovals,
  jobs: pressInJobs,
  job: pressInJob,
  run: pressInRun,
};

/** What a key does, wherever the screens stand; a pure function. */
export const press = (state: ScreenState, key: Key): Step => {
  if (key.name === 'interrupt') return { state, request: { kind: 'quit' } };
  if (state.overlay !== null) return pressInOverlay(state, state.overlay, key);
  if (state.prompt !== null) return pressInPrompt(state, state.prompt, key);
  if (key.text === 'q') return { state, request: { kind: 'quit' } };
  if (key.text === '?') return overlaid(state, 'Keys', helpText);
  return screens[state.screen](state, key);
};
