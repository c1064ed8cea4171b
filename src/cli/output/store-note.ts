import type { Session } from '../session.ts';

/** What a command says before it works on a store itself: a service may have been meant. */
export const storeNote = (name: string, verb: 'works on' | 'reads' = 'works on'): string =>
  `This command ${verb} the store ${name} directly, not through a service.`;

/** With `--json` the standard error holds one object at most. */
export const notePlain = ({ terminal, globals }: Pick<Session, 'terminal' | 'globals'>, text: string): void => {
  if (!globals.json) terminal.note(text);
};
