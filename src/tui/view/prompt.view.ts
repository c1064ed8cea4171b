import { safeLine } from '../../text/text-width.ts';
import { type Prompt, suggestions } from '../state/prompt.ts';
import { type FilterMember, filterMembers, type RunFilter } from '../state/run-filter.ts';
import { statusLabel } from '../state/run-status.ts';
import type { ScreenState } from '../state/screen-state.ts';
import { nextCall } from '../state/waiting-run.ts';
import { type Line, line, listLine, ruleLine, span, windowStart } from './line.ts';

const caret = '█';
const maxSuggestions = 12;

/** The question, in the row above the keys. */
export const promptLine = (prompt: Prompt): Line => {
  switch (prompt.kind) {
    case 'confirm':
      return line(span(` ${prompt.question}`, 'warn'));
    case 'score':
      return line(span(` Score ${prompt.name}:`, 'strong'), '  1 2 3 4 5 stars   + good   - bad');
    case 'answers': {
      const { agentName } = prompt.answers.waiting;
      const tool = nextCall(prompt.answers)?.toolName ?? '';
      return line(span(` Approve ${safeLine(tool)} for ${safeLine(agentName)}?`, 'warn'));
    }
    case 'filters':
      return line();
    case 'text':
      return line(span(` ${prompt.label}: `, 'strong'), prompt.value, span(caret, 'accent'));
  }
};

/** The keys that answer it, and what a typed name may mean. */
export const promptHints = (prompt: Prompt, { agentNames }: ScreenState): readonly string[] => {
  switch (prompt.kind) {
    case 'confirm':
      return ['y yes', 'n no'];
    case 'score':
      return ['esc leave it'];
    case 'answers':
      return ['y yes', 'n no', 'enter details', 'esc leave it waiting'];
    case 'filters':
      return ['↑↓ choose', '←→ change', 'enter edit', 'x clear all', 'esc close'];
    case 'text': {
      const keys = ['enter done', 'esc leave it'];
      if (prompt.purpose.kind !== 'filter' || prompt.purpose.member !== 'agentName') return keys;
      return [...keys, ...suggestions(agentNames, prompt.value).slice(0, maxSuggestions).map(safeLine)];
    }
  }
};

const filterValue = (filter: RunFilter, member: FilterMember): string => {
  const value = filter[member];
  if (member === 'status') return filter.status === null ? 'any' : statusLabel(filter.status);
  if (member === 'includeChildren') return filter.includeChildren ? 'listed' : 'left out';
  return value === '' ? 'any' : safeLine(String(value));
};

const filterNames: Readonly<Record<FilterMember, string>> = {
  status: 'Status',
  agentName: 'Agent',
  label: 'Label',
  sessionId: 'Session',
  period: 'Started',
  includeChildren: 'Sub-runs',
};

/** The filters, one a row, below the list that they change; in a low window those around the chosen one. */
export const filterPanel = (state: ScreenState, width: number, room: number): readonly Line[] => {
  const { prompt, runs } = state;
  if (prompt?.kind !== 'filters') return [];
  const height = Math.min(filterMembers.length, room - 1);
  const start = windowStart(prompt.row, filterMembers.length, height);
  return [
    ruleLine('Filters', '', width, 'strong'),
    ...filterMembers
      .slice(start, start + height)
      .map((member, index) =>
        listLine(
          start + index === prompt.row,
          span(filterNames[member].padEnd(10)),
          span(filterValue(runs.filter, member), 'accent'),
        ),
      ),
  ];
};
