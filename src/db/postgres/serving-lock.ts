/**
 * Each process that serves a schema has the shared lock of this name, on the connection that listens: whoever needs the
 * schema for itself asks for the whole one.
 */
export const servingLock = (schema: string): string => `acp serves ${schema}`;
