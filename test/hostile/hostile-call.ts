import type { TSchema } from 'typebox';
import { hostileBodies } from './hostile-bodies.ts';
import type { Hostile } from './hostile-json.ts';

export interface HostileCall {
  readonly body: Hostile;
  readonly headers: Readonly<Record<string, string>>;
}

const jsonHeaders = { 'content-type': 'application/json' };

export const hostileCalls = (
  schema: TSchema,
  headers: Readonly<Record<string, string>> = jsonHeaders,
): readonly HostileCall[] => hostileBodies(schema).map((body) => ({ body, headers }));
