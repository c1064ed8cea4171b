import { randomUUID } from 'node:crypto';

const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed();

/** The id of a call, or one of its own where it has none or one that a store could not give back as it was. */
export const callIdOf = (id: string): string => (id !== '' && isStorable(id) ? id : `call_${randomUUID()}`);

/** The name that a model has called, as a store can keep it; no tool has one of the others. */
export const calledName = (name: string): string =>
  isStorable(name) ? name : name.toWellFormed().replaceAll('\0', '\uFFFD');
