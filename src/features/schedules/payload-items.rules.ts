import { AcpError, invalidField } from '../../contract/errors.ts';
import { createTurns } from '../../core/event-loop-turns.ts';
import type { SchedulableKey } from './schedule-keys.ts';

/** An array makes one item per element, any other value one, and null none. */
export const itemsOf = (payload: unknown): readonly unknown[] => {
  if (payload === null || payload === undefined) return [];
  return Array.isArray(payload) ? payload : [payload];
};

/** Why a payload makes no job; null: it does. */
export const payloadProblem = (
  payload: unknown,
  { payload: needs }: Pick<SchedulableKey, 'payload'>,
  maxItems: number,
): string | null => {
  const items = itemsOf(payload);
  const isNull = payload === null || payload === undefined;
  if (needs === 'None') return isNull ? null : 'must be null: the handler makes its own items';
  if (isNull) return needs === 'Required' ? 'is required' : null;
  if (items.length === 0) return 'must have at least one element';
  return items.length > maxItems ? `has ${items.length} elements, and at most ${maxItems} are allowed` : null;
};

// Enough to mend a payload, bounded for a hostile one.
const maxErrors = 8;

/** Throws `validation-failed` for a payload that the key cannot take. */
export const checkPayload = async (payload: unknown, key: SchedulableKey, maxItems: number): Promise<void> => {
  const problem = payloadProblem(payload, key, maxItems);
  if (problem !== null) throw invalidField('payload', problem);
  if (key.itemErrors === undefined) return;
  const isList = Array.isArray(payload);
  const turn = createTurns();
  const errors: { path: string; message: string }[] = [];
  for (const [index, item] of itemsOf(payload).entries()) {
    const place = isList ? `payload[${index}]` : 'payload';
    for (const { path, message } of key.itemErrors(item))
      errors.push({ path: path === '' ? place : `${place}.${path}`, message });
    if (errors.length >= maxErrors) break;
    await turn();
  }
  const [first] = errors;
  if (first === undefined) return;
  throw new AcpError('validation-failed', `${first.path} ${first.message}.`, {
    details: { errors: errors.slice(0, maxErrors) },
  });
};
