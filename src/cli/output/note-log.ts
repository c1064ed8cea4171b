import type { Terminal } from './terminal.ts';

/** A log for what works on the store itself: its sentences are notes of the command. */
export const noteLog = (terminal: Pick<Terminal, 'note'>) => {
  const note = (_fields: unknown, message: string): void => terminal.note(message);
  return { warn: note, error: note };
};
