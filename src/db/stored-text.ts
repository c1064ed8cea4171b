import { storedText } from '../core/documents/stored-text.ts';

const holdsNul = (value: unknown): boolean => typeof value === 'string' && value.includes('\0');

/**
 * Parameters of a statement with their texts as stores hold them; the same array where nothing changes.
 * Design: docs/design/stores.md.
 */
export const storedParameters = (parameters: readonly unknown[]): readonly unknown[] =>
  parameters.some(holdsNul)
    ? parameters.map((value) => (typeof value === 'string' ? storedText(value) : value))
    : parameters;
