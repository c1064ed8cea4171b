import { safeLine } from '../../text/text-width.ts';
import type { ScreenState } from '../state/screen-state.ts';
import { type Answers, decided, nextCall, type WaitingRun } from '../state/waiting-run.ts';
import { waitingCallText } from '../view/long-text.ts';
import type { Key } from './key.ts';
import { ask, askText, overlaid, reasonLabel, type Step, stay } from './step.ts';

/** Asks about the calls of a run one after the other. */
export const askAnswers = (state: ScreenState, waiting: WaitingRun): Step =>
  ask(state, { kind: 'answers', answers: { waiting, decisions: [] } });

/** The next call, or all decisions at once: the session goes on with every answer or with none. */
const goOn = (state: ScreenState, answers: Answers): Step =>
  nextCall(answers) === null
    ? { state: { ...state, prompt: null }, request: { kind: 'answer', answers } }
    : ask(state, { kind: 'answers', answers });

export const refuse = (state: ScreenState, answers: Answers, reason: string): Step =>
  goOn(state, decided(answers, false, reason));

export const pressInAnswers = (state: ScreenState, answers: Answers, key: Key): Step => {
  const call = nextCall(answers);
  if (key.name === 'escape' || call === null) return stay({ ...state, prompt: null });
  if (key.text === 'y' || key.text === 'Y') return goOn(state, decided(answers, true));
  if (key.text === 'n' || key.text === 'N') return askText(state, reasonLabel, { kind: 'refusal', answers });
  if (key.name === 'enter') return overlaid(state, `Call of ${safeLine(call.toolName)}`, waitingCallText(call));
  return stay(state);
};
