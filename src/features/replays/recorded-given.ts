import type { GivenContext } from '../../engine/context/index.ts';
import type { RecordedInput } from '../runs/index.ts';

/** What the caller of the source gave beside its message, and the input without it. */
export const recordedGiven = ({ messages, context }: RecordedInput) => {
  const { given: counted } = context;
  if (counted === undefined) return { given: null, input: messages };
  const first = counted.instructions ? 1 : 0;
  const [instructions] = messages;
  const told = first === 0 ? [] : (instructions?.contents ?? []);
  const given: GivenContext = {
    instructions: first === 0 ? null : told.map((part) => (part.type === 'Text' ? part.text : '')).join(''),
    history: messages.slice(first, first + counted.history),
  };
  return { given, input: messages.slice(first + counted.history) };
};
