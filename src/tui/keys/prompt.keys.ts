import { runStatuses } from '../../features/runs/runs.schema.ts';
import { completed, type Prompt, type ScoreValue, type TextPurpose, withoutLast } from '../state/prompt.ts';
import {
  type FilterMember,
  filterMembers,
  noFilter,
  type Period,
  periods,
  type RunFilter,
} from '../state/run-filter.ts';
import { emptyList } from '../state/run-list.ts';
import type { ScreenState } from '../state/screen-state.ts';
import { pressInAnswers, refuse } from './answer.keys.ts';
import type { Key } from './key.ts';
import { ask, askText, type Step, stay } from './step.ts';

type PromptOf<K extends Prompt['kind']> = Extract<Prompt, { kind: K }>;

const closed = (state: ScreenState): ScreenState => ({ ...state, prompt: null });

const withFilter = (state: ScreenState, filter: RunFilter): ScreenState => ({ ...state, runs: emptyList(filter) });

const confirm = (state: ScreenState, { request }: PromptOf<'confirm'>, key: Key): Step => {
  if (key.text === 'y' || key.text === 'Y') return { state: closed(state), request };
  if (key.text === 'n' || key.text === 'N' || key.name === 'escape') return stay(closed(state));
  return stay(state);
};

const scores: Readonly<Record<string, ScoreValue>> = {
  '1': { kind: 'Stars', value: 1 },
  '2': { kind: 'Stars', value: 2 },
  '3': { kind: 'Stars', value: 3 },
  '4': { kind: 'Stars', value: 4 },
  '5': { kind: 'Stars', value: 5 },
  '+': { kind: 'Binary', value: 1 },
  '-': { kind: 'Binary', value: 0 },
};

const score = (state: ScreenState, { runId, name }: PromptOf<'score'>, key: Key): Step => {
  if (key.name === 'escape') return stay(closed(state));
  const value = scores[key.text];
  if (value === undefined) return stay(state);
  return askText(state, 'Why? (enter: without a comment)', { kind: 'comment', runId, name, value });
};

const filterLabels = {
  agentName: 'Agent',
  label: 'Label (key or key:value)',
  sessionId: 'Session',
} as const;

export const askFilter = (state: ScreenState, member: keyof typeof filterLabels): Step =>
  askText(state, filterLabels[member], { kind: 'filter', member });

const turned = <T>(values: readonly T[], current: T, by: number): T =>
  values[(values.indexOf(current) + by + values.length) % values.length] ?? current;

const changeFilter = (state: ScreenState, member: FilterMember, by: number): Step => {
  const { filter } = state.runs;
  const changed = (change: Partial<RunFilter>): Step => stay(withFilter(state, { ...filter, ...change }));
  switch (member) {
    case 'status':
      return changed({ status: turned([null, ...runStatuses, 'Continued'] as const, filter.status, by) });
    case 'period':
      return changed({ period: turned(Object.keys(periods) as Period[], filter.period, by) });
    case 'includeChildren':
      return changed({ includeChildren: !filter.includeChildren });
    default:
      return askFilter(state, member);
  }
};

const filters = (state: ScreenState, prompt: PromptOf<'filters'>, key: Key): Step => {
  const { row } = prompt;
  const member = filterMembers[row] ?? 'status';
  const last = filterMembers.length - 1;
  switch (key.name === 'text' ? key.text : key.name) {
    case 'up':
    case 'k':
      return ask(state, { ...prompt, row: Math.max(0, row - 1) });
    case 'down':
    case 'j':
    case 'tab':
      return ask(state, { ...prompt, row: row === last ? 0 : row + 1 });
    case 'left':
    case 'h':
      return changeFilter(state, member, -1);
    case 'right':
    case 'l':
    case 'enter':
    case ' ':
      return changeFilter(state, member, 1);
    case 'x':
      return stay(withFilter(state, noFilter));
    case 'f':
    case 'escape':
    case 'q':
      return stay(closed(state));
    default:
      return stay(state);
  }
};

const submit = (state: ScreenState, purpose: TextPurpose, value: string): Step => {
  switch (purpose.kind) {
    case 'filter': {
      const text = purpose.member === 'agentName' ? completed(state.agentNames, value) : value;
      return stay(withFilter(closed(state), { ...state.runs.filter, [purpose.member]: text }));
    }
    case 'comment':
      return { state: closed(state), request: { ...purpose, kind: 'score', comment: value } };
    case 'refusal':
      return refuse(state, purpose.answers, value);
    case 'rejection': {
      const { approvalId, toolName } = purpose;
      const request = { kind: 'decide', approvalId, toolName, approved: false, reason: value } as const;
      return ask(state, { kind: 'confirm', question: `Reject the call of ${toolName}?`, request });
    }
  }
};

const text = (state: ScreenState, prompt: PromptOf<'text'>, key: Key): Step => {
  const { value, purpose } = prompt;
  switch (key.name) {
    case 'escape':
      return stay(closed(state));
    case 'enter':
      return submit(state, purpose, value.trim());
    case 'backspace':
      return ask(state, { ...prompt, value: withoutLast(value) });
    case 'tab':
      if (purpose.kind !== 'filter' || purpose.member !== 'agentName') return stay(state);
      return ask(state, { ...prompt, value: completed(state.agentNames, value) });
    case 'text':
      return ask(state, { ...prompt, value: value + key.text });
    default:
      return stay(state);
  }
};

/** A key while something is asked. */
export const pressInPrompt = (state: ScreenState, prompt: Prompt, key: Key): Step => {
  switch (prompt.kind) {
    case 'confirm':
      return confirm(state, prompt, key);
    case 'score':
      return score(state, prompt, key);
    case 'answers':
      return pressInAnswers(state, prompt.answers, key);
    case 'filters':
      return filters(state, prompt, key);
    case 'text':
      return text(state, prompt, key);
  }
};
