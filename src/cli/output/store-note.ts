import type { Session } from '../session.ts';

/** The line of a command before it works on a store itself: the user may have meant a service. */
export const storeNote = (name: string, verb: 'works on' | 'reads' = 'works on'): string =>
  `This command ${verb} the store ${name} directly, not through a service.`;

/** With `--json` the standard error holds one object at most. */
export const notePlain = ({ terminal, globals }: Pick<Session, 'terminal' | 'globals'>, text: string): void => {
  if (!globals.json) terminal.note(text);
};
