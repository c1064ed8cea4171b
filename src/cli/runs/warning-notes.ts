import type { Frame } from '../../contract/operation.ts';
import type { RunWarning } from '../../contract/run-outcome.ts';
import { frameData } from '../../text/event-line.ts';
import type { Terminal } from '../output/terminal.ts';

const sentences: Readonly<Record<RunWarning, string>> = {
  'quota-not-checked': 'The quotas of this run could not be read; it was made without a look at them.',
  'quota-not-written': 'The store does not count this run for its quotas yet: it takes no writes.',
  'recording-incomplete': 'The record of this run is missing or short: the store took no writes.',
};

const isWarning = (word: unknown): word is RunWarning => typeof word === 'string' && Object.hasOwn(sentences, word);

/** Says beside the answer what the store did not do for a run. */
export const noteWarnings = ({ note, noteStyle }: Pick<Terminal, 'note' | 'noteStyle'>, warnings: unknown): void => {
  if (!Array.isArray(warnings)) return;
  for (const word of warnings.filter(isWarning)) note(`${noteStyle.yellow('warning:')} ${sentences[word]}`);
};

/** The same of the frame that stands before the end of a stream; false for any other frame. */
export const noteWarningFrame = (terminal: Pick<Terminal, 'note' | 'noteStyle'>, frame: Frame): boolean => {
  if (frame.event !== 'warning') return false;
  noteWarnings(terminal, frameData(frame)['warnings']);
  return true;
};

/** The frames that are left once warnings were noted. */
export const withoutWarnings = async function* (
  frames: AsyncIterable<Frame>,
  terminal: Pick<Terminal, 'note' | 'noteStyle'>,
): AsyncGenerator<Frame, void> {
  for await (const frame of frames) if (!noteWarningFrame(terminal, frame)) yield frame;
};
