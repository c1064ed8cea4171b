import { processMs, eventually as withinMs } from '../support/eventually.ts';

/** Looks as long as a process may take: each look goes over one of several, and after it those who watch try theirs. */
export const eventually = <T>(what: string, look: () => T) => withinMs(what, look, processMs);
