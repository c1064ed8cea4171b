import type { Prompt, Request, TextPurpose } from '../state/prompt.ts';
import type { ScreenState } from '../state/screen-state.ts';
import type { Key } from './key.ts';

/** What a key does: another state, and perhaps something to ask for. */
export interface Step {
  readonly state: ScreenState;
  readonly request?: Request;
}

export const stay = (state: ScreenState): Step => ({ state });

/** Tells why a key does nothing. */
export const notice = (state: ScreenState, text: string): Step =>
  stay({ ...state, notice: { text, tone: 'bad', until: state.now + 4_000 } });

/** A text laid over the screen; a prompt stands below it until it is closed. */
export const overlaid = (state: ScreenState, title: string, text: string): Step =>
  stay({ ...state, overlay: { title, lines: text.split('\n'), top: 0 } });

export const ask = (state: ScreenState, prompt: Prompt): Step => ({ state: { ...state, prompt } });

/** The label of what a person may say about a refused call. */
export const reasonLabel = 'Reason for the model (enter: none)';

export const askText = (state: ScreenState, label: string, purpose: TextPurpose): Step =>
  ask(state, { kind: 'text', label, value: '', purpose });

/** Rows that a page up or down moves by. */
const pageOf = ({ size }: ScreenState): number => Math.max(1, size.rows - 8);

/** By how many rows a key moves a choice; null for keys that move nothing. `Infinity` goes to an end. */
export const movement = (state: ScreenState, key: Key): number | null => {
  switch (key.name === 'text' ? key.text : key.name) {
    case 'up':
    case 'k':
      return -1;
    case 'down':
    case 'j':
      return 1;
    case 'pageup':
      return -pageOf(state);
    case 'pagedown':
    case ' ':
      return pageOf(state);
    case 'home':
    case 'g':
      return Number.NEGATIVE_INFINITY;
    case 'end':
    case 'G':
      return Number.POSITIVE_INFINITY;
    default:
      return null;
  }
};
